"""One open session: the runtime's session and what the server knows about it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import protos as pb
from runtime.api import (
    CancellationManager,
    DataType,
    DirectSession,
    ThreadPool,
    global_thread_pools,
)
from runtime.errors import CancelledError, InvalidArgumentError, ResourceExhaustedError
from server.sessions.lease import Clock, Lease

CHECK_SECONDS = 0.1  # between two counts of what a session holds
Shape = tuple[int, ...] | None  # None: unknown rank; −1: unknown dimension


@dataclasses.dataclass(slots=True)
class OpenSession:
    """A session in the registry. Used from the event loop only, apart from `session` itself."""

    id: str
    session: DirectSession
    name: str
    model: dict[str, Any] | None
    shared_weights: bool
    lease: Lease
    clock: Clock
    operation_timeout_ms: int = 0
    runs_in_caller: bool = False  # see session_config
    steps: int = 0
    last_used_at: float = 0  # wall time
    _next_check: float = 0.0  # instant from which bytes are counted again
    _bytes: int = 0
    # Extends are checked against the version and applied one after the other.
    extend_lock: asyncio.Lock = dataclasses.field(default_factory=asyncio.Lock)
    _callables: dict[int, pb.CallableOptions] = dataclasses.field(default_factory=dict)
    _newest_callable: int = 0
    _running: dict[str, list[CancellationManager]] = dataclasses.field(default_factory=dict)
    # An extend only adds nodes, so what was known of a tensor stays true.
    _tensor_info: dict[str, tuple[DataType, Shape]] = dataclasses.field(default_factory=dict)

    @property
    def is_running(self) -> bool:
        """Whether a step is in flight."""
        return bool(self._running)

    @property
    def graph_version(self) -> int:
        """How many extends the graph has had."""
        return self.session.graph_version

    def tensor_info(self, name: str) -> tuple[DataType, Shape]:
        """Element type and static shape; the direct session's error for an unknown name."""
        known = self._tensor_info.get(name)
        if known is None:
            known = self._tensor_info[name] = self.session.tensor_info(name)
        return known

    def check_bytes(self, limit: int) -> None:
        """Refuse a step of a session whose resources hold too much: ResourceExhaustedError.

        Counting takes time for many variables, so it happens every CHECK_SECONDS at most; a step
        may exceed the limit by what it adds.
        """
        now = self.clock.monotonic()
        if now >= self._next_check:
            self._next_check = now + CHECK_SECONDS
            self._bytes = self.session.bytes_held
        if self._bytes > limit:
            self._next_check = 0.0  # it may be less by the next step
            raise ResourceExhaustedError(
                f"The resources of the session hold {self._bytes} bytes; "
                f"sessions.max_session_bytes is {limit}"
            )

    def callable_made(self, handle: int, options: pb.CallableOptions) -> None:
        """Note what a callable was made with."""
        self._callables[handle] = options
        self._newest_callable = max(self._newest_callable, handle)

    def callable_released(self, handle: int) -> None:
        """Forget it."""
        self._callables.pop(handle, None)

    def callable_options(self, handle: int) -> pb.CallableOptions:
        """What a callable was made with; the direct session's errors for one that there is not."""
        options = self._callables.get(handle)
        if options is not None:
            return options
        if 0 < handle <= self._newest_callable:
            raise InvalidArgumentError("Attempted to run callable after handle was released")
        raise InvalidArgumentError("No such callable handle")

    def thread_pools(self) -> list[tuple[str, ThreadPool]]:
        """(name as listed, pool) by index; a pool of the session alone is `<id>/Compute0`."""
        return [
            (pool.name if self._is_global(pool) else f"{self.id}/Compute{index}", pool)
            for index, pool in enumerate(self.session.thread_pools)
        ]

    def own_thread_pools(self) -> list[tuple[str, ThreadPool]]:
        """The entries of `thread_pools` that end with the session."""
        if self.runs_in_caller:  # it has the process's pool, and does not use it
            return []
        return [(name, pool) for name, pool in self.thread_pools() if not self._is_global(pool)]

    @staticmethod
    def _is_global(pool: ThreadPool) -> bool:
        return global_thread_pools.find(pool.name) is pool

    @contextlib.contextmanager
    def using(self) -> Iterator[None]:
        """Hold the lease while something other than a step works on the session."""
        self.lease.hold(self.clock.monotonic())
        try:
            yield
        finally:
            self.lease.release(self.clock.monotonic())
            self.last_used_at = self.clock.wall()

    @contextlib.contextmanager
    def step(self, request_id: str, cancellation: CancellationManager) -> Iterator[None]:
        """Count a step, hold the lease for it, and let it be found by its request id."""
        self.steps += 1
        running = self._running.setdefault(request_id, [])
        running.append(cancellation)
        try:
            with self.using():
                yield
        finally:
            running.remove(cancellation)
            if not running and self._running.get(request_id) is running:
                del self._running[request_id]

    def cancel(self, request_id: str) -> bool:
        """Cancel the steps of a request; False when none is running."""
        running = self._running.get(request_id)
        if not running:
            return False
        for cancellation in list(running):
            cancellation.cancel(CancelledError("Step was cancelled by request."))
        return True

    def cancel_all(self, message: str) -> None:
        """Cancel every running step."""
        for running in list(self._running.values()):
            for cancellation in list(running):
                cancellation.cancel(CancelledError(message))
