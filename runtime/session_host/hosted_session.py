"""HostedSession: a session in a host, and its steps, which clients name by numbers of theirs.

Every method returns at once or is a coroutine: what may take long runs in `threads`.

Guarantees: all methods are called on the host's event loop, which orders them, so there are no
locks. A cancellation may overtake its step: the numbers of the last _EARLY such steps are kept.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import protos as pb
from runtime.foundation.errors import AbortedError, CancelledError
from runtime.foundation.thread_pool import ThreadPool
from runtime.framework.cancellation import CancellationManager
from runtime.sessions.direct.direct_session import DirectSession
from runtime.sessions.direct.session_pools import num_inter_op_threads
from runtime.sessions.runtime_session import RunRequest, Tensor

T = TypeVar("T")
_EARLY = 1024
_CALLER_INDEX = -1  # of RunOptions.inter_op_thread_pool: the caller's thread
_DEFAULT_OPTIONS = pb.RunOptions()


class HostedSession:
    """A direct session of a host. `client` is the program that has opened it."""

    def __init__(
        self, session: DirectSession, client: str, threads: concurrent.futures.Executor
    ) -> None:
        self.session = session
        self.client = client
        self._threads = threads
        self._running: dict[int, CancellationManager] = {}
        self._cancelled_early: collections.deque[int] = collections.deque(maxlen=_EARLY)
        config = session.options.config
        # Such a session runs its steps in the thread that calls `run`.
        self._has_no_pool = (
            not config.session_inter_op_thread_pool and num_inter_op_threads(config) < 0
        )

    # The graph.

    async def extend(self, graph_def: pb.GraphDef, expected_version: int) -> int:
        """Add nodes; raise AbortedError if the version is not the expected one. Return the new."""

        def extend() -> int:
            if self.session.graph_version != expected_version:
                raise AbortedError(
                    f"Current version is {self.session.graph_version} but caller expected "
                    f"{expected_version}."
                )
            self.session.extend(graph_def)
            return self.session.graph_version

        return await self.call(extend)

    async def call(self, work: Callable[[], T]) -> T:
        """Return what `work`, which may take long, returns in another thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    # Steps.

    async def run(self, number: int, request: RunRequest) -> list[Tensor]:
        """Run a step under a number by which it can be cancelled."""
        with _Step(self, number, request):
            index = (request.options or _DEFAULT_OPTIONS).inter_op_thread_pool
            if self._has_no_pool or index == _CALLER_INDEX:
                return await self.call(self.session.run_async(request).result)
            values = self._run_if_short(request, index)
            if values is not None:
                return values
            return await asyncio.wrap_future(self.session.run_async(request))

    def _run_if_short(self, request: RunRequest, index: int) -> list[Tensor] | None:
        """Run a step here if it can't block and has measured short."""
        pools = self.session.thread_pools
        if request.metadata is not None or not 0 <= index < len(pools):
            return None
        request.pool = pools[index]
        return self.session.run_if_short(request)

    async def run_callable(
        self, number: int, handle: int, values: Sequence[Tensor], request: RunRequest
    ) -> list[Tensor]:
        """Run a prepared step; `request` has its metadata and deadline."""
        prepared = self.session.callable(handle).request(values, request.metadata)
        prepared.deadline = request.deadline
        return await self.run(number, prepared)

    async def partial_run_setup(self, request: pb.PartialRunSetupRequest) -> str:
        """Start a partial run on the session's first pool and return its handle."""
        pool = self._first_pool
        return await self.call(
            lambda: self.session.partial_run_setup(
                request.feed, request.fetch, request.target, pool
            )
        )

    async def partial_run(
        self, number: int, handle: str, feeds: Mapping[str, Tensor], request: RunRequest
    ) -> list[Tensor]:
        """Feed some inputs of a partial run; `request` has its fetches and deadline."""
        with _Step(self, number, request) as cancellation:
            future = self.session.partial_run_async(handle, feeds, request.fetches, cancellation)
            return await asyncio.wrap_future(future)

    @property
    def _first_pool(self) -> ThreadPool:
        return self.session.thread_pools[0]

    def cancel(self, number: int) -> None:
        """Cancel a step, also one that has not come yet."""
        cancellation = self._running.get(number)
        if cancellation is None:
            self._cancelled_early.append(number)
        else:
            cancellation.cancel(CancelledError("The step was cancelled."))

    async def close(self) -> None:
        """Cancel the steps and release everything."""
        self.session.close()
        await self.call(self.session.destroy)


class _Step:
    """The time during which a step can be cancelled."""

    def __init__(self, hosted: HostedSession, number: int, request: RunRequest) -> None:
        self._hosted = hosted
        self._number = number
        self._request = request

    def __enter__(self) -> CancellationManager:
        hosted = self._hosted
        if self._number in hosted._cancelled_early:
            hosted._cancelled_early.remove(self._number)
            raise CancelledError("The step was cancelled.")
        cancellation = CancellationManager()
        self._request.cancellation = cancellation
        hosted._running[self._number] = cancellation
        return cancellation

    def __exit__(self, *_: object) -> None:
        self._hosted._running.pop(self._number, None)


def deadline_in(seconds: float | None) -> float | None:
    """Return the instant of `time.monotonic()` in so many seconds."""
    return None if seconds is None else time.monotonic() + seconds
