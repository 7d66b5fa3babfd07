"""Beats: how the processes of one server know of each other that their event loops run.

Each loop notes the time in the row of its process (HostTable) every BEAT_SECONDS. A process that is
stopped, hangs, or holds the interpreter lock for long does not.
"""

from __future__ import annotations

import time

from server.processes.host_table import Row

BEAT_SECONDS = 0.25
# After so long nothing more is expected of a process.
LATE_SECONDS = 3.0
# After so long a process is said not to answer, and who waits for it gets an error.
SILENT_SECONDS = 10.0


def beat_now() -> int:
    """Return what a process notes: milliseconds of the system's monotonic clock."""
    return time.monotonic_ns() // 1_000_000


def seconds_since_beat(row: Row) -> float:
    """Return how long ago a process has shown that it runs; 0 if it has not begun to."""
    return (beat_now() - row.beat) / 1000 if row.beat else 0.0
