"""CrowdTrial: whether batches of short steps pay where many callers come together, as measured.

Pure state; time is passed in, in seconds. For some arrivals steps wait for batches, for as many
they run at once, in turns: such a turn is a phase. What a batch costs its requests outside of the
step depends on the machine, and on how much of it the callers take. A phase shows all of that:
callers who wait for their answers before they call again make it the shorter, the less a request
takes. Callers who come at a rate of their own make all phases equally long, and batches then stay.

The quickest phase of a kind counts, because sizes of batches are learned and models compiled in
others. What is decided holds for more and more arrivals, if the next trial decides the same.
"""

from __future__ import annotations

import math

SETTLING = 256  # arrivals at the beginning of a phase that do not count: others still wait
PHASE = SETTLING + 512  # arrivals
_PHASES = 4  # of a trial, two of each kind
# Steps run at once if these phases take less than this part of those with batches.
_GAIN = 0.97
_MOST_ALONE = PHASE // 4  # arrivals without a crowd in a phase that decides
FIRST_PAUSE = 16_384  # arrivals until the next trial
LONGEST_PAUSE = 262_144


class CrowdTrial:
    """Decides from arrivals; `batches` says whether a step of a crowd should wait for a batch."""

    def __init__(self) -> None:
        self.batches = True
        self._decided: bool | None = None  # what the trial before has decided
        self._pause = FIRST_PAUSE
        self._left = 0  # arrivals until the next trial
        self._phases = 0  # of this trial
        self._shortest = {True: math.inf, False: math.inf}  # phase, with batches and without
        self._began = 0.0
        self._count = 0  # arrivals in this phase
        self._alone = 0  # those without a crowd

    @property
    def runs_at_once(self) -> bool:
        """Whether steps run at once until the next trial, whoever comes together."""
        return self._left > 0 and not self.batches

    def add(self, now: float, *, is_crowded: bool) -> None:
        """Count an arrival; a phase begins with one of a crowd."""
        if self._left:
            self._left -= 1
            return
        if not self._count and not is_crowded:
            return
        if self._count == SETTLING:
            self._began = now
        self._count += 1
        self._alone += not is_crowded
        if self._count > PHASE:
            self._end_phase(now - self._began)

    def _end_phase(self, seconds: float) -> None:
        decides = self._alone <= _MOST_ALONE
        self._count = self._alone = 0
        if not decides:
            return
        self._shortest[self.batches] = min(seconds, self._shortest[self.batches])
        self._phases += 1
        self.batches = not self.batches
        if self._phases == _PHASES:
            self._decide()

    def _decide(self) -> None:
        self.batches = self._shortest[False] >= _GAIN * self._shortest[True]
        is_same = self.batches is self._decided
        self._decided = self.batches
        self._pause = min(LONGEST_PAUSE, 2 * self._pause) if is_same else FIRST_PAUSE
        self._left = self._pause
        self._phases = 0
        self._shortest = {True: math.inf, False: math.inf}
