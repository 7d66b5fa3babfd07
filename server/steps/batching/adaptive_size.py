"""AdaptiveSize: the number of rows of a batch that costs the least time per row, as measured.

Pure state. Sizes are powers of two. A size twice as large as the best is tried, and if it is slower
per row, it is tried again only after more and more batches: a form that is compiled meanwhile may
be faster. Sizes are compared by the quickest of their newest batches: other work on the machine
makes equal steps take several times as long, and never less.
"""

from __future__ import annotations

import collections

LARGEST = 64  # rows
# A larger size must take less than this part of the time per row: a batch also costs copies.
_GAIN = 0.85
TRIES = 7  # batches of a size until it is judged
_KEPT = 63  # the newest batches of a size, by which it is judged
_FIRST_PAUSE = 16  # batches until a slower size is tried again; doubled each time
_LONGEST_PAUSE = 4096


class AdaptiveSize:
    """Learns from the seconds of steps; `limit` is the largest number of rows of the next batch."""

    def __init__(self) -> None:
        self.limit = 2
        self._best = 1
        self._per_row: dict[int, collections.deque[float]] = {}  # seconds by size
        self._pause = _FIRST_PAUSE
        self._left = 0  # batches until the next try

    @property
    def is_one(self) -> bool:
        """Whether batches have turned out to cost more per row than single rows."""
        return self._best == 1 and self._left > 0

    def add(self, rows: int, seconds: float) -> None:
        """Take in the duration of a step of `rows` rows; larger ones than `limit` tell nothing."""
        if rows > self.limit:
            return
        size = 1 << (rows.bit_length() - 1)
        self._per_row.setdefault(size, collections.deque(maxlen=_KEPT)).append(seconds / rows)
        self.pass_by()

    def pass_by(self) -> None:
        """Take in that a step ran, of whose duration nothing is known."""
        if self._left:
            self._left -= 1
            if not self._left:
                self._try_again()
        self._choose()

    def _choose(self) -> None:
        best = self._quickest(self._best)
        smaller, larger = self._quickest(self._best // 2), self._quickest(self._best * 2)
        if best is not None and smaller is not None and best > smaller:
            self._best //= 2
            self._wait()
        elif best is not None and larger is not None and not self._left:
            if larger < best * _GAIN:
                self._best *= 2
                self._pause = _FIRST_PAUSE
                self._try_again()
            else:
                self._wait()
        best, larger = self._quickest(self._best), self._quickest(self._best * 2)
        must_see_best = larger is not None and best is None
        is_trying = not self._left and not must_see_best
        self.limit = min(LARGEST, self._best * 2) if is_trying else self._best

    def _quickest(self, size: int) -> float | None:
        """Return the least seconds per row of a size, or None if too few batches had it."""
        seen = self._per_row.get(size, ())
        return min(seen) if len(seen) >= TRIES else None

    def _try_again(self) -> None:
        self._per_row.pop(self._best * 2, None)

    def _wait(self) -> None:
        self._left = self._pause
        self._pause = min(_LONGEST_PAUSE, self._pause * 2)
