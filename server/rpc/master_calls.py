"""MasterCalls: calls of TensorFlow's master service that another process must answer.

Sessions of one owner share their resources there, so the master is in one process, the first: it
opens the sessions of gRPC clients, and Reset is its. A call on a session goes to the process of the
session, however it was opened.

Guarantees: used from one event loop; requests and responses are passed on as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

import protos as pb
from runtime.errors import AbortedError, OpError, UnavailableError
from server.host import Host
from server.processes.session_ids import Place, place_of
from server.processes.worker_host import WorkerHost
from server.rpc.call import CallContext, Method, Reply
from server.rpc.process_calls import ProcessCalls
from server.sessions.session_errors import SessionGoneError

_OF_MASTER = frozenset({"CreateSession", "Reset"})
_Handle = pb.CloseSessionRequest
_ABORTED = "Session {} is not found. Possibly, this master has restarted."


def master_calls(host: Host, service: str, methods: dict[str, Method]) -> dict[str, Method]:
    """Return the methods of the master service for one of several processes."""
    assert isinstance(host, WorkerHost)
    return MasterCalls(host).wrapped(service, methods)


class _Elsewhere:
    """A request that another process must answer, as it was received."""

    def __init__(self, data: bytes, place: Place, handle: str) -> None:
        self.data = data
        self.place = place
        self.handle = handle


class MasterCalls:
    """Wraps the methods of the master service of one process."""

    def __init__(self, host: WorkerHost) -> None:
        self._host = host
        self._calls = ProcessCalls(host)

    def wrapped(self, service: str, methods: dict[str, Method]) -> dict[str, Method]:
        """Return the methods of `service`, which pass on what this process does not answer."""
        return {
            name: Method(
                functools.partial(self._read, name, method.read),
                functools.partial(self._answer, f"/{service}/{name}", method.answer),
                method.frees_memory,
            )
            for name, method in methods.items()
        }

    def _read(self, name: str, read: Callable[[bytes], Any], data: bytes) -> Any:
        if self._host.is_alone:
            return read(data)
        # Field 1 is the handle, apart from the master's messages; the rest is not looked at.
        handle = "" if name in _OF_MASTER else _Handle.FromString(data).session_handle
        place = place_of(handle) if handle else self._host.master
        if place is None or place == self._host.place:
            return read(data)
        return _Elsewhere(data, place, handle)

    async def _answer(
        self, path: str, answer: Callable[..., Any], request: Any, context: CallContext
    ) -> Message | Reply:
        if not isinstance(request, _Elsewhere):
            found: Message | Reply = await answer(request, context)
            return found
        if request.handle:
            try:
                self._host.process_of(request.handle)
            except OpError as error:
                raise AbortedError(_ABORTED.format(request.handle)) from error
        try:
            content = await self._calls.call(request.place, path, request.data, context)
        except OSError as error:
            raise await self._lost(request) from error
        if isinstance(content, OpError):
            raise content
        return Reply(len(content), bytes, (content,))

    async def _lost(self, request: _Elsewhere) -> OpError:
        error = await self._host.lost(request.place)
        if isinstance(error, SessionGoneError) and request.handle:
            return AbortedError(_ABORTED.format(request.handle))
        return UnavailableError(error.message)
