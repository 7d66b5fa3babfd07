"""Crowd: whether so many requests come together that short steps had better be batched.

A short step runs at once in the loop's thread, so that nothing ever waits and nothing could be
batched, however many callers there are. But if many requests are ready in one turn of the event
loop, they can run as one step. A request that is batched takes about 0.1 ms more to receive and to
answer, so a few callers do better without, and a single one never waits for others.
"""

from __future__ import annotations

import asyncio

# With steps of 0.2 ms, 8 callers lose a tenth and 32 gain a fifth.
TOGETHER = 12
# A shorter step gains nothing: with steps of 0.04 ms, 32 callers made 9,400 requests a second, and
# 3,400 in batches.
WORTH_SECONDS = 0.15e-3
RUN_AT_ONCE = 64  # of so many steps that should wait, one runs at once
RUNS_THAT_DECIDE = 16  # the shortest of so many that ran at once is how long steps take


class Crowd:
    """Counts arrivals by turn of the running event loop, and steps that are batched."""

    def __init__(self) -> None:
        self.batched = 0  # steps that wait or run
        self._now = 0  # arrivals in this turn
        self._before = 0  # in the last turn with any

    @property
    def is_crowded(self) -> bool:
        """Whether a short step that arrives now should be batched."""
        return self._before >= TOGETHER or self._now + self.batched >= TOGETHER

    def add(self) -> None:
        """Count an arrival."""
        if not self._now:
            asyncio.get_running_loop().call_soon(self._end_turn)
        self._now += 1

    def _end_turn(self) -> None:
        self._before, self._now = self._now, 0
