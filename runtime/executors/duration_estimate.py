"""DurationEstimate: how long the next run of an executor may take, from the runs before.

The figure decides whether a step may run on an event loop, where one long step delays every
request. So it errs on the slow side:
* a run that took longer than the estimate becomes the estimate at once;
* a run that took less moves it down by DECAY of the difference. After a run of S seconds, quick
  ones of q bring it under a limit T after ln((S - q) / (T - q)) / ln(1 / (1 - DECAY)) of them:
  with T = 0.2 ms and q = 0.1 ms 28 runs for S = 4 ms, 69 for S = 1 s;
* the first WARM_UP runs fill caches (a plan is interpreted in its first and generated as Python in
  its second): each of them is forgotten with the next one;
* a run that failed may have left out the most part of the work: it moves the estimate up only.

Guarantees: thread-safe. `note` reads and writes under a lock, so that a slow run is not lost to a
quick one that ends at the same time; `seconds` is one read of an attribute, without the lock.
"""

from __future__ import annotations

import math
import threading

DECAY = 1 / 8  # of the difference, for each run that was quicker
WARM_UP = 2  # runs


class DurationEstimate:
    """Seconds that the next run may take; infinite before the first that was completed."""

    __slots__ = ("_lock", "_runs", "seconds")

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the changes of the two below
        self._runs = 0  # that were completed
        self.seconds = math.inf

    def note(self, seconds: float, *, is_completed: bool = True) -> None:
        """Count a run that took `seconds`, waiting for locks included."""
        with self._lock:
            if is_completed:
                self._runs += 1
                if self._runs <= WARM_UP + 1:
                    self.seconds = seconds
                    return
            if math.inf > self.seconds <= seconds:
                self.seconds = seconds
            elif is_completed:
                self.seconds += (seconds - self.seconds) * DECAY
