"""Characters that normal forms may change, and patterns that find them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from runtime.op_packages.text.unicode_properties import later_characters

# Characters that no normal form changes, and that compose with nothing before them.
_INERT_RANGES = (
    (0x3400, 0x4DBF), (0x4E00, 0xA47F), (0xAC00, 0xD7A3), (0xD800, 0xF8FF), (0x17000, 0x1BC00),
)  # fmt: skip
_LAST_DECOMPOSED = 0x2FA1D


def special_characters() -> Iterator[str]:
    """Yield every character that may have a property that matters here."""
    point = 0xA0
    for first, last in (*_INERT_RANGES, (_LAST_DECOMPOSED + 1, _LAST_DECOMPOSED)):
        yield from map(chr, range(point, first))
        point = last + 1
    yield from later_characters()


def any_of(characters: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds each of some characters, and all that are wide."""
    ranges: list[list[int]] = []
    for point in sorted(map(ord, characters)):
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    parts = (f"{re.escape(chr(a))}-{re.escape(chr(b))}" for a, b in ranges if b < 0x10000)
    # Ranges of wider characters would be searched one by one, so all of these are found.
    return re.compile(f"[{''.join(parts)}\U00010000-\U0010ffff]")
