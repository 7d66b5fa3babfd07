"""The statistics of a thread pool, as metrics and `/v1/threadpools` show them."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class ThreadPoolStats:
    """Statistics of one pool; times are in seconds and are summed since the pool was created."""

    name: str
    num_threads: int
    low_priority: bool
    queued: int
    running: int
    completed: int
    wait_seconds_total: float
    run_seconds_total: float
    stuck: int = 0  # number of threads that run kernels of ended steps; included in `running`

    @property
    def tasks(self) -> int:
        """The number of tasks that wait or run."""
        return self.queued + self.running

    @property
    def run_ratio(self) -> float:
        """The fraction, from 0 to 1, of the pool's threads that run a task."""
        return self.running / self.num_threads
