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
# A step that takes less may run on the event loop (runtime/executors/duration_estimate.py).
SHORT_SECONDS = 0.4e-3
COUNTED_ARRIVAL = 32  # of so many, the last has the turn after it counted, if there is no crowd
RUN_AT_ONCE = 64  # of so many steps that should wait, one runs at once
RUNS_THAT_DECIDE = 16  # the shortest of so many that ran at once is how long steps take


class Crowd:
    """Counts arrivals by turn of the running event loop, and steps that are batched.

    To count a turn takes the loop another one, up to a tenth of what a tiny request takes. So only
    some turns are counted while there is no crowd.
    """

    def __init__(self) -> None:
        self.batched = 0  # steps that wait or run
        self._passed = 0  # arrivals since a turn was counted
        self._is_counting = False
        self._now = 0  # arrivals in this turn, if it is counted
        self._before = 0  # in the last turn that was counted

    @property
    def is_crowded(self) -> bool:
        """Whether a short step that arrives now should be batched."""
        return self._before >= TOGETHER or self._now + self.batched >= TOGETHER

    def add(self) -> None:
        """Count an arrival."""
        if not self._is_counting:
            if self._before < TOGETHER and not self.batched:
                self._passed += 1
                if self._passed == COUNTED_ARRIVAL:
                    self._passed = 0
                    asyncio.get_running_loop().call_soon(self._begin_turn)
                return
            self._begin_turn()
        self._now += 1

    def _begin_turn(self) -> None:
        """Count until the loop's next turn; it calls this and the end before all that arrives."""
        if not self._is_counting:
            self._is_counting = True
            asyncio.get_running_loop().call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._before, self._now, self._is_counting = self._now, 0, False
