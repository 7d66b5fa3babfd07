"""Mutations of bytes, and smaller forms of them.

Pure: the same random numbers give the same mutations.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

_LARGEST = 1 << 20  # bytes of an input
_BYTES = (0, 1, 0x7F, 0x80, 0xFF, 0x0A, 0x0D, 0x20, 0x22, 0x7B)
_NUMBERS = (0, 1, -1, 127, 128, 255, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 31, 1 << 40, 1 << 63)
_SIZES = (1, 1, 2, 4, 8, 16, 100)


def mutated_bytes(
    data: bytes, random_state: random.Random, tokens: Sequence[bytes] = (), most: int = 4
) -> bytes:
    """Return the bytes after 1 to `most` changes; `tokens` are words of their format."""
    content = bytearray(data)
    for _ in range(random_state.randint(1, most)):
        kind = random_state.randrange(10)
        at = random_state.randrange(len(content) + 1)
        size = random_state.choice(_SIZES)
        if kind == 0 and at < len(content):
            content[at] ^= 1 << random_state.randrange(8)
        elif kind == 1 and at < len(content):
            content[at] = random_state.choice(_BYTES)
        elif kind == 2:
            del content[at : at + size]
        elif kind == 3:
            content[at:at] = content[at : at + size] * random_state.choice((1, 1, 1, 50))
        elif kind == 4:
            content[at:at] = random_state.randbytes(size)
        elif kind == 5:
            del content[at:]
        elif kind == 6:
            width = random_state.choice((2, 4, 8))
            number = random_state.choice(_NUMBERS) % (1 << 8 * width)
            order = random_state.choice(("little", "big"))
            content[at : at + width] = number.to_bytes(width, order)  # type: ignore[arg-type] # one of two
        elif kind == 7:
            other = random_state.randrange(len(content) + 1)
            content[at : at + size] = content[other : other + size]
        elif tokens:
            token = random_state.choice(tokens)
            content[at : at + random_state.choice((0, len(token)))] = token
    return bytes(content[:_LARGEST])


def smaller_bytes(data: bytes) -> Iterator[bytes]:
    """Yield the bytes without a part: halves first, single bytes last."""
    size = (len(data) + 1) // 2
    while size:
        for at in range(0, len(data), size):
            yield data[:at] + data[at + size :]
        size //= 2


def join_frames(frames: Sequence[bytes]) -> bytes:
    """Return the byte strings, each after its length (u32 little-endian)."""
    return b"".join(len(frame).to_bytes(4, "little") + frame for frame in frames)


def split_frames(data: bytes) -> list[bytes]:
    """Return what `join_frames` joined."""
    frames, at = [], 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        frames.append(data[at + 4 : end])
        at = end
    return frames
