"""Where a step may run and until when, by its request and its session's configuration.

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
    """The pool and the deadline of requests to one session."""

    def __init__(self, config: pb.ConfigProto, pools: SessionPools) -> None:
        self._config = config
        self._pools = pools

    def pool_of(self, request: RunRequest) -> ThreadPool | None:
        """The pool to run on; None is the calling thread.

        Raises InvalidArgumentError for an index that no pool has.
        """
        if request.pool is not None:
            return request.pool
        return self._pools.choose((request.options or _DEFAULT_OPTIONS).inter_op_thread_pool)

    def timeout_seconds(self, request: RunRequest) -> float:
        """How long the step may take by its options, else by the configuration; 0: no limit."""
        options = request.options
        milliseconds = options.timeout_in_ms if options is not None else 0
        if milliseconds <= 0:
            milliseconds = self._config.operation_timeout_in_ms
        return max(0, milliseconds) / 1000

    def deadline_of(self, request: RunRequest) -> float | None:
        """The instant (`time.monotonic()`) at which the step has to be over, or None."""
        if request.deadline is not None:
            return request.deadline
        seconds = self.timeout_seconds(request)
        return time.monotonic() + seconds if seconds else None
