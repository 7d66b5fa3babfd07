"""DirectCalls: calls of gRPC methods in this process, which came by another way than gRPC's.

Guarantees: used from one event loop. A call that is cancelled is cancelled as if its client had
gone away; at its deadline it ends in any case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NoReturn, TypeAlias

import grpc

from runtime.errors import DeadlineExceededError, OpError, UnimplementedError
from server.rpc.rpc_answers import Handler
from server.rpc.status import error_of
from server.steps.step_waiter import TIMED_OUT

Pairs: TypeAlias = Sequence[tuple[str, str]]


class _CallEndedError(Exception):
    """A handler has ended its call with an error."""

    def __init__(self, error: OpError) -> None:
        super().__init__(error.message)
        self.error = error


class _Context:
    """What a handler uses of gRPC's context."""

    def __init__(self, metadata: Pairs, seconds_left: float | None) -> None:
        self._metadata = metadata
        self._seconds_left = seconds_left

    def invocation_metadata(self) -> Pairs:
        """Return the metadata of the call."""
        return self._metadata

    def time_remaining(self) -> float | None:
        """Return the seconds until the deadline; None if there is none."""
        return self._seconds_left

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailers: Pairs = ()
    ) -> NoReturn:
        """End the call with an error."""
        raise _CallEndedError(error_of(code, details, trailers))


class DirectCalls:
    """The calls of one server; `handlers` are those of methods without streams, by their paths."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._running: set[asyncio.Future[bytes]] = set()

    async def call(
        self, path: str, data: bytes, metadata: Pairs = (), seconds_left: float | None = None
    ) -> bytes:
        """Return the serialized response to a request; raise its OpError.

        `path` is that of the method, such as `/tensorflow.MasterService/RunStep`.
        """
        handler = self._handlers.get(path)
        if handler is None:
            raise UnimplementedError("Method not found!")  # as gRPC says
        # In a task of its own, whose context has what the request holds.
        answering = asyncio.ensure_future(handler(data, _Context(metadata, seconds_left)))
        self._running.add(answering)
        answering.add_done_callback(self._running.discard)
        try:
            return await asyncio.wait_for(answering, seconds_left)
        except _CallEndedError as ended:
            raise ended.error from None
        except TimeoutError:
            raise DeadlineExceededError(TIMED_OUT) from None

    async def stop(self, grace_seconds: float) -> None:
        """Cancel what still runs after `grace_seconds`."""
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=grace_seconds)
            for each in late:
                each.cancel()
