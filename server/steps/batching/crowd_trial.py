"""CrowdTrial: whether batches of short steps pay where many callers come together, as measured.

Pure state; time is passed in, in seconds. For some arrivals steps wait for batches, for as many
they run at once, in turns: such a turn is a phase. What a batch costs its requests outside of the
step depends on the machine, and on how much of it the callers take. A phase shows all of that:
callers who wait for their answers before they call again make it the shorter, the less a request
takes. Callers who come at a rate of their own make all phases equally long, and batches then stay.

The quickest phase of a kind counts, because sizes of batches are learned and models compiled in
others. What is decided holds for more and more arrivals, if the next trial decides the same; that
one ends as soon as the other way is not better.
"""

from __future__ import annotations

import math

SETTLING = 256  # arrivals at the beginning of a phase that do not count: others still wait
PHASE = SETTLING + 512  # arrivals
_PHASES = 4  # of a trial, two of each kind; one of each if that is decided which was before
# Steps run at once if these phases take less than this part of those with batches.
_GAIN = 0.97
# In a trial that is repeated, the way that was not chosen loses as soon as its phase has taken this
# many times as long as that of the other.
_CLEARLY = 1.1
# A phase begins anew if nobody arrives for so long; a batch of short steps takes a tenth of it.
GAP_SECONDS = 0.25
_MOST_ALONE = PHASE // 4  # arrivals without a crowd in a phase that decides
FIRST_PAUSE = 16_384  # arrivals until the next trial
LONGEST_PAUSE = 262_144
_LONGER = 4  # times as long is a pause, if a trial decides as the one before


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
        self._latest = 0.0  # the newest arrival that was counted
        self._longest = math.inf  # seconds after which this phase is clearly not the quicker one
        self._count = 0  # arrivals in this phase
        self._alone = 0  # those without a crowd

    @property
    def runs_at_once(self) -> bool:
        """Whether steps run at once until the next trial, whoever comes together."""
        return self._left > 0 and not self.batches

    def passes(self) -> bool:
        """Count an arrival if steps run at once until the next trial; return whether they do.

        Others have to be added. This is for every request, and takes less than `add`.
        """
        if not self._left or self.batches:
            return False
        self._left -= 1
        return True

    @property
    def is_under_way(self) -> bool:
        """Whether a trial has begun that has not decided yet."""
        return self._count > 0 or self._phases > 0

    def add(self, now: float, *, is_crowded: bool) -> None:
        """Count an arrival; a phase begins with one of a crowd."""
        if self._left:
            self._left -= 1
            return
        if self._count and now > self._latest + GAP_SECONDS:
            self._count = self._alone = 0
        self._latest = now
        if not self._count and not is_crowded:
            return
        if self._count == SETTLING:
            self._began = now
        self._count += 1
        self._alone += not is_crowded
        if self._count <= SETTLING:
            return
        seconds = now - self._began
        if self._count > PHASE or seconds > self._longest:
            self._end_phase(seconds)

    def _end_phase(self, seconds: float) -> None:
        decides = self._alone <= _MOST_ALONE
        self._count = self._alone = 0
        if not decides:
            return
        self._shortest[self.batches] = min(seconds, self._shortest[self.batches])
        self._phases += 1
        self.batches = not self.batches
        if self._phases == _PHASES or (self._phases == 2 and self._pays() is self._decided):
            self._decide()
        elif self._phases == 1 and self._decided is not None:
            self._longest = _CLEARLY * self._shortest[self._decided]
        else:
            self._longest = math.inf

    def _pays(self) -> bool:
        """Return whether batches pay, as far as this trial has shown."""
        return self._shortest[False] >= _GAIN * self._shortest[True]

    def _decide(self) -> None:
        self.batches = self._pays()
        is_same = self.batches is self._decided
        self._decided = self.batches
        self._pause = min(LONGEST_PAUSE, _LONGER * self._pause) if is_same else FIRST_PAUSE
        self._left = self._pause
        self._phases = 0
        self._longest = math.inf
        self._shortest = {True: math.inf, False: math.inf}
