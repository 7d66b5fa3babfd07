"""Tables that replace characters of many texts at once.

Texts are strs in which a malformed byte of UTF-8 is a surrogate (see `normal_forms.decoded`), and
are joined by a surrogate that no such text has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from runtime.foundation.running_task import check_task
from runtime.op_packages.text.unicode_properties import CODE_POINTS

SEPARATOR = "\ud800"
_UNKNOWN = -1
_SEVERAL = -2  # an entry of this or less means a replacement of no or several characters
# characters that are replaced at a time, between two looks at whether the step has ended
_BLOCK = 1 << 20


def code_points(text: str) -> np.ndarray:
    """Return the code points of a text, int32 `[n]`."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.int32)


def text_of(points: np.ndarray) -> str:
    """Undo `code_points`."""
    return points.astype("<i4", copy=False).tobytes().decode("utf-32-le", "surrogatepass")


def utf8_sizes(points: np.ndarray) -> np.ndarray:
    """Return how many bytes each of `code_points` has in UTF-8, int64 `[n]`; a separator has 1."""
    sizes = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
    sizes[(points >= 0xD800) & (points < 0xDD00)] = 1  # malformed bytes, and the separator
    return sizes


def groups(texts: list[str]) -> Iterator[list[str]]:
    """Divide texts into groups that are worked on at once; call `check_task` after each."""
    group: list[str] = []
    size = 0
    for text in texts:
        group.append(text)
        size += len(text) + 1
        if size > _BLOCK:
            yield group
            check_task()
            group, size = [], 0
    if group:
        yield group


class CharacterTable:
    """What replaces each character, which `replacement` returns when it is first met.

    Guarantees: thread-safe. Threads may look up the same character at the same time; they write
    equal entries.
    """

    def __init__(self, replacement: Callable[[int], str]) -> None:
        self._replacement = replacement
        self._entries = np.full(CODE_POINTS, _UNKNOWN, np.int32)
        self._longer: dict[int, np.ndarray] = {}  # replacements of no or several characters
        for point in (ord(SEPARATOR), *range(0xDC80, 0xDD00)):
            self._entries[point] = point

    def _entries_of(self, points: np.ndarray) -> np.ndarray:
        found: np.ndarray = self._entries[points]
        unknown = found == _UNKNOWN
        if not unknown.any():
            return found
        for point in np.unique(points[unknown]).tolist():
            new = code_points(self._replacement(point))
            if len(new) != 1:
                self._longer[point] = new
            self._entries[point] = new[0] if len(new) == 1 else _SEVERAL
        found[unknown] = self._entries[points[unknown]]
        return found

    def replaced(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (the code points with replacements, how many of these each has), both `[n]`."""
        found = self._entries_of(points)
        counts = np.ones(len(points), np.int64)
        places = np.flatnonzero(found == _SEVERAL)
        if not len(places):
            return found, counts
        # each kind of character has its replacement in one pool
        kinds, kind_of = np.unique(points[places], return_inverse=True)
        parts = [self._longer[point] for point in kinds.tolist()]
        sizes = np.array([len(each) for each in parts], np.int64)
        pool = np.concatenate(parts)
        counts[places] = sizes[kind_of]
        result = np.repeat(found, counts)
        targets = _ranges(np.cumsum(counts)[places] - counts[places], counts[places])
        sources = _ranges((np.cumsum(sizes) - sizes)[kind_of], counts[places])
        result[targets] = pool[sources]
        return result, counts


def _ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return `start, start + 1, …` for each start, as many as its count."""
    begins = np.cumsum(counts) - counts
    found: np.ndarray = np.arange(counts.sum()) + np.repeat(starts - begins, counts)
    return found
