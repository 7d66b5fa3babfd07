"""Search, count and cut large texts, a slice at a time.

One call of a method of `bytes` holds the interpreter lock until it returns. A call on a slice holds
it for well under a millisecond, and other threads run between two calls.
"""

from __future__ import annotations

from collections.abc import Iterator

SLICE_BYTES = 1 << 17  # of numbers: about 0.4 ms to parse
STEP_BYTES = 1 << 20  # of text that is only searched: 0.1 ms


def steps(start: int, end: int, size: int = STEP_BYTES) -> Iterator[tuple[int, int]]:
    """Yield the bounds of consecutive steps of at most `size` that cover `start` to `end`."""
    for begin in range(start, end, size):
        yield begin, min(begin + size, end)


def find(text: bytes, what: bytes, start: int, end: int) -> int:
    """Return the position of the first `what` within `start` to `end`, or −1."""
    for begin, stop in steps(start, end):
        found = text.find(what, begin, min(stop + len(what) - 1, end))
        if found >= 0:
            return found
    return -1


def rfind(text: bytes, character: bytes, start: int, end: int) -> int:
    """Return the position of the last `character` within `start` to `end`, or −1."""
    stop = end
    while stop > start:
        begin = max(start, stop - STEP_BYTES)
        found = text.rfind(character, begin, stop)
        if found >= 0:
            return found
        stop = begin
    return -1


def count(text: bytes, character: bytes, start: int, end: int) -> int:
    """Return how often `character` occurs within `start` to `end`."""
    return sum(text.count(character, begin, stop) for begin, stop in steps(start, end))
