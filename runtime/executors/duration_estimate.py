"""DurationEstimate: an estimate of an executor's next run time from its past runs.

The estimate decides whether a step may run on an event loop, where one long step delays every
request. Therefore it is rather too long than too short:
* A run longer than the estimate replaces the estimate at once.
* A shorter run lowers it by the fraction DECAY of the difference. After one run of S
  seconds, runs of q seconds bring the estimate below a limit T after
  ln((S - q) / (T - q)) / ln(1 / (1 - DECAY)) runs. If T is 0.4 ms and q is 0.1 ms, this is 19 runs
  for S = 4 ms and 61 runs for S = 1 s.
* The first WARM_UP runs fill caches (a step plan is interpreted in its first run and generated as
  Python in its second), so the run after each of them replaces its estimate.
* The estimate is for feeds of the sizes of short runs; `size_limit` says for which it holds. A long
  run of larger feeds than the smallest of a short run lowers that limit and leaves the estimate: a
  batch of many rows is no reason to expect that one row takes as long.
* A failed run may have skipped most of the work, so it can only raise the estimate.

What was decided because runs are short can be decided again: `watch` reports a much longer run.

Guarantees: thread-safe. `note` updates under a lock, so that a concurrent short run cannot
overwrite the time of a long one; `seconds` is a plain attribute, read without the lock.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable

import numpy as np

from runtime.framework.tensor_value import TensorValue

DECAY = 1 / 8  # fraction of the difference by which a shorter run lowers the estimate
# A step that is estimated to be shorter may run in its caller's thread. To hand it to a pool takes
# an event loop 0.2 ms, and 0.4 ms beside other work.
SHORT_SECONDS = 0.0004
# Of a run in its caller's thread that took less, only the processor time counts: it may have waited
# for a processor or for the interpreter lock, because others were busy. Longer waits are for locks,
# for which the next run may have to wait too.
MOST_WAITING_SECONDS = 0.02
# A short step stays short while its runs take less processor time: beside other work, whose data is
# in the caches, they take two to three times as long. If one such run counted, the next runs would
# be queued, and each would take three times as long again, so that the step might stay queued.
STAYS_SHORT_SECONDS = 0.001
SMALL_SIZE = 64  # elements; feeds of this size keep no kernel busy for long
# How many times larger feeds may be than those of a short run. If a kernel takes the third power of
# the size, its run is then 8 times as long and becomes the estimate.
MOST_GROWTH = 2
WARM_UP = 2  # number of runs whose time is not representative


class DurationEstimate:
    """The estimated seconds of the next run; infinite before the first completed run."""

    __slots__ = (
        "_lock", "_notify", "_runs", "_short_size", "_watched_seconds", "seconds", "size_limit",
    )  # fmt: skip

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards writes of `_runs` and `seconds`
        self._runs = 0  # number of completed runs
        self._short_size: float = math.inf  # the smallest feeds of a short run
        # The estimate holds for feeds of at most this size (see `size_of`).
        self.size_limit = MOST_GROWTH * SMALL_SIZE
        self.seconds = math.inf
        self._watched_seconds = math.inf
        self._notify: Callable[[], object] | None = None

    def note_here(self, waited: float, worked: float, *, is_completed: bool, size: int) -> None:
        """Update the estimate with a run in its caller's thread.

        It took `waited` seconds, of which `worked` are of processor time. A run that may have been
        slow because others were busy does not count.
        """
        if not SHORT_SECONDS <= waited < MOST_WAITING_SECONDS:
            self.note(waited, is_completed=is_completed, size=size)
            return
        seconds = min(waited, worked)
        if not self.seconds < SHORT_SECONDS <= seconds < STAYS_SHORT_SECONDS:
            self.note(seconds, is_completed=is_completed, size=size)

    def watch(self, seconds: float, notify: Callable[[], object]) -> None:
        """Call `notify` when a run completes that takes longer than `seconds`, once.

        It is called in the thread that notes the run. This replaces an earlier watch.
        """
        with self._lock:
            self._watched_seconds, self._notify = seconds, notify

    def note(self, seconds: float, *, is_completed: bool = True, size: int = 0) -> None:
        """Update the estimate with a run that took `seconds`.

        They include long waits for locks where it ran at once (MOST_WAITING_SECONDS), and no waits
        where it ran in a pool, whose other threads it waited for. `size` is the size of its feeds.
        """
        with self._lock:
            is_known_size = self._short_size <= size <= self.size_limit / MOST_GROWTH
            if seconds < self.seconds and is_known_size and is_completed and self._runs > WARM_UP:
                self.seconds += (seconds - self.seconds) * DECAY  # as below: most runs are such
                return
            if MOST_GROWTH * size > self.size_limit and is_completed and seconds < SHORT_SECONDS:
                self.size_limit = MOST_GROWTH * size
            if is_completed:
                if size < self._short_size and seconds < SHORT_SECONDS:
                    self._short_size = size
                self._runs += 1
                if self._runs <= WARM_UP + 1:
                    self.seconds = seconds
                    return
            if seconds >= SHORT_SECONDS > self.seconds and is_completed and size > self._short_size:
                self.size_limit = min(self.size_limit, size - 1)
            elif math.inf > self.seconds <= seconds:
                self.seconds = seconds
            elif is_completed:
                self.seconds += (seconds - self.seconds) * DECAY
                return
            if seconds <= self._watched_seconds or not is_completed:
                return
            self._watched_seconds, notify = math.inf, self._notify
            self._notify = None
        if notify is not None:
            notify()


def size_of(values: Iterable[TensorValue]) -> int:
    """Return the number of elements of `values`; a string counts as many as it has bytes."""
    size = 0
    for value in values:
        if isinstance(value, np.ndarray | np.generic):
            size += value.size if value.dtype != object else _bytes_of(value)
    return size


def _bytes_of(strings: np.ndarray | np.generic) -> int:
    return sum(len(item) for item in np.asarray(strings).ravel() if isinstance(item, bytes))
