"""StepLimits: the thread pool and the deadline of a step.

TF: tensorflow/core/common_runtime/direct_session.cc (Run: inter_op_thread_pool, timeout_in_ms)
"""

from __future__ import annotations

import time

import protos as pb
from runtime.foundation.thread_pool import ThreadPool
from runtime.sessions.direct.session_pools import SessionPools
from runtime.sessions.runtime_session import RunRequest

_DEFAULT_OPTIONS = pb.RunOptions()


class StepLimits:
    """Chooses the pool and the deadline of each request to a session with `config` and `pools`."""

    def __init__(self, config: pb.ConfigProto, pools: SessionPools) -> None:
        self._milliseconds = config.operation_timeout_in_ms
        self._pools = pools

    def pool_of(self, request: RunRequest) -> ThreadPool | None:
        """Return the pool to run on; None means the calling thread.

        Raises InvalidArgumentError if no pool has the index that the request gives.
        """
        if request.pool is not None:
            return request.pool
        return self._pools.choose((request.options or _DEFAULT_OPTIONS).inter_op_thread_pool)

    def timeout_seconds(self, request: RunRequest) -> float:
        """Return the time limit of the step's options, else of the configuration; 0: no limit."""
        options = request.options
        milliseconds = options.timeout_in_ms if options is not None else 0
        if milliseconds <= 0:
            milliseconds = self._milliseconds
        return milliseconds / 1000 if milliseconds > 0 else 0.0

    def deadline_of(self, request: RunRequest) -> float | None:
        """Return the `time.monotonic()` instant of the step's deadline, or None for no limit."""
        if request.deadline is not None:
            return request.deadline
        seconds = self.timeout_seconds(request)
        return time.monotonic() + seconds if seconds else None
