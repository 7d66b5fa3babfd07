"""ElementGrowth: counts what an iterator keeps, now and then while it produces elements.

Iterators keep elements in many places: the buffer of a shuffle, a cache, the groups of a window.
Each element that an iterator gets from its input may be kept, so what all of them together have got
since the last count bounds the growth. When that bound has become as large as the last count, or as
the room that the limit leaves, everything is counted again. Counting therefore takes a small share
of the time of producing, and one call that fills a buffer without end is refused in time.

Guarantees: an ElementGrowth must be used while the lock of its iterator is held; `held` may be
called at any time.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable

from runtime.framework.growth_limit import NO_LIMIT, GrowthLimit
from runtime.framework.held_bytes import ENTRY_BYTES, count_values, unshared_bytes, value_bytes

_LEAST = 1 << 20  # bytes of elements between two counts
_FEW = 10_000  # objects that are counted whenever somebody wants the number (about 10 ms)


class ElementGrowth:
    """What an iterator keeps: `roots` are the iterator itself and what is kept beside it."""

    __slots__ = (
        "_bytes",
        "_due",
        "_got",
        "_is_current",
        "_is_managed",
        "_limit",
        "_lock",
        "_objects",
        "_roots",
    )

    def __init__(self, lock: threading.RLock | None = None) -> None:
        self._lock = lock or threading.RLock()  # held while the iterator produces an element
        self._limit: GrowthLimit = NO_LIMIT
        self._is_managed = False  # whether the limit's resources include these bytes
        self._roots: tuple[object, ...] = ()
        self._bytes = self._objects = 0  # of the last count
        self._got = 0  # bytes of the elements since the last count
        self._due = _LEAST
        self._is_current = True  # whether nothing was produced since the last count

    def limit(self, limit: GrowthLimit, *, is_managed: bool) -> None:
        """Keep within `limit`, whose resources include the iterator if `is_managed`."""
        self._limit, self._is_managed = limit, is_managed

    @property
    def is_limited(self) -> bool:
        """Whether elements have to be noted."""
        return self._limit.max_bytes != sys.maxsize

    def start(self, *roots: object) -> None:
        """Count `roots`, in place of earlier ones."""
        self._roots = roots
        self._count()

    def note(self, element: Iterable[object]) -> None:
        """Note an element that an iterator has got from its input.

        Raises ResourceExhaustedError if the resources of the session hold too many bytes.
        """
        for value in element:
            size = unshared_bytes(value)
            self._got += ENTRY_BYTES + (value_bytes(value) if size is None else size)
        if self._got > self._due:
            self._count()
            self._limit.check(0 if self._is_managed else self._bytes)

    def note_call(self) -> None:
        """Note that the iterator is about to produce an element."""
        self._is_current = False

    def _count(self) -> None:
        self._bytes, self._objects = count_values(self._roots)
        self._got, self._is_current = 0, True
        self._due = max(_LEAST, min(self._bytes, self._limit.max_bytes - self._bytes))

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the bytes of the last count, or of now if they are counted quickly."""
        if not self._is_current and self._objects <= _FEW and self._lock.acquire(blocking=False):
            try:
                self._count()
            finally:
                self._lock.release()
        return self._bytes, ()
