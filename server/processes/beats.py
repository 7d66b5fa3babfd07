"""Beats: how the processes of one server know of each other that their event loops run.

Each loop notes the time in the row of its process (HostTable) every BEAT_SECONDS. A process that is
stopped, hangs, or holds the interpreter lock for long does not.

`BeatWatch` is for who supervises a process: it says when the process is to be killed. That ends
sessions, so it is sure: it counts only time in which the supervising process itself was running.
"""

from __future__ import annotations

import time

from server.processes.host_table import Row, WorkerState, how_it_ended

BEAT_SECONDS = 0.25
# After so long nothing more is expected of a process, and nothing handed over to it.
LATE_SECONDS = 3.0
# After so long a process is said not to answer, and who waits for it gets an error.
SILENT_SECONDS = 10.0
# After so long it is killed. Code that holds the interpreter lock, such as that which prepares a
# large model, may take tens of seconds.
HUNG_SECONDS = 60.0
# Between two looks of a supervising process, which takes 0.1 s: the machine was stopped or stalled.
_STALL_SECONDS = 5.0
_BEATING = (WorkerState.READY, WorkerState.DRAINING)


def beat_now() -> int:
    """Return what a process notes: milliseconds of the system's monotonic clock."""
    return time.monotonic_ns() // 1_000_000


def seconds_since_beat(row: Row) -> float:
    """Return how long ago a process has shown that it runs; 0 if it has not begun to."""
    beat = row.beat  # which another process may clear
    return (beat_now() - beat) / 1000 if beat else 0.0


class BeatWatch:
    """What one supervising process has seen of the beats of another, from its start to its end."""

    def __init__(self) -> None:
        self.is_hung = False  # it stays so: the process is to be killed
        self._beat = 0
        self._silent_seconds = 0.0
        self._looked_at: float | None = None

    def look(self, row: Row, now: float) -> bool:
        """Look at a process, at an instant in seconds; return whether it hangs since this look."""
        passed = 0.0 if self._looked_at is None else now - self._looked_at
        self._looked_at = now
        if self.is_hung:
            return False
        if row.beat != self._beat or row.state not in _BEATING or passed > _STALL_SECONDS:
            self._beat, self._silent_seconds = row.beat, 0.0
            return False
        self._silent_seconds += passed
        self.is_hung = self._silent_seconds >= HUNG_SECONDS
        return self.is_hung

    def how_it_ended(self, code: int) -> str:
        """Return how the process has ended, as the rest of a sentence."""
        if self.is_hung:
            return f"did not answer for {HUNG_SECONDS:g} s and was killed"
        return how_it_ended(code)
