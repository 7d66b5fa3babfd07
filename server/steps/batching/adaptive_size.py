"""AdaptiveSize: the number of rows of a batch that costs the least time per row, as measured.

Pure state. Sizes are powers of two. A size twice as large as the best is tried, and if it is slower
per row, it is tried again only after more and more batches: a form that is compiled meanwhile may
be faster.
"""

from __future__ import annotations

LARGEST = 64  # rows
_WEIGHT = 0.25  # of the newest time in the average
# A larger size must take less than this part of the time per row, on the average of so many
# batches: less is hardly worth the wait, and other work on the machine hides it.
_GAIN = 0.85
_TRIES = 4
_FIRST_PAUSE = 16  # batches until a slower size is tried again; doubled each time
_LONGEST_PAUSE = 1024


class AdaptiveSize:
    """Learns from the seconds of steps; `limit` is the largest number of rows of the next batch."""

    def __init__(self) -> None:
        self.limit = 2
        self._best = 1
        self._per_row: dict[int, float] = {}  # seconds by size
        self._tries = 0  # batches of the size that is tried
        self._pause = _FIRST_PAUSE
        self._left = 0  # batches until the next try

    def add(self, rows: int, seconds: float) -> None:
        """Take in the duration of a step of `rows` rows; larger ones than `limit` tell nothing."""
        if rows > self.limit:
            return
        size = 1 << (rows.bit_length() - 1)
        known = self._per_row.get(size)
        new = seconds / rows
        self._tries += size == self._best * 2
        self._per_row[size] = new if known is None else known + _WEIGHT * (new - known)
        if self._left:
            self._left -= 1
            if not self._left:
                self._try_again()
        self._choose()

    def _choose(self) -> None:
        best, larger = self._per_row.get(self._best), self._per_row.get(self._best * 2)
        smaller = self._per_row.get(self._best // 2)
        if best is not None and smaller is not None and best > smaller:
            self._best //= 2
            self._wait()
        elif best and larger and self._tries >= _TRIES and not self._left:
            if larger < best * _GAIN:
                self._best *= 2
                self._pause = _FIRST_PAUSE
                self._try_again()
            else:
                self._wait()
        self.limit = self._best if self._left else min(LARGEST, self._best * 2)

    def _try_again(self) -> None:
        self._tries = 0
        self._per_row.pop(self._best * 2, None)

    def _wait(self) -> None:
        self._left = self._pause
        self._pause = min(_LONGEST_PAUSE, self._pause * 2)
