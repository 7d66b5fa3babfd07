"""PassedRpcs: calls of gRPC that another process has received and passes on as HTTP requests.

To send a large message by a second gRPC channel takes the event loop that has received it 1.2 ms
for 600 KB; to send it over a socket by a thread (`server/connections/socket_transfers.py`) takes it
almost nothing, and our HTTP connections receive it in such a thread too.

| | |
| --- | --- |
| path | RPC_PREFIX, then that of the method: `/tensorflow.serving.PredictionService/Predict` |
| METADATA_HEADER | a JSON list of the pairs of `passed_metadata` |
| TIMEOUT_HEADER | the seconds that are left to the call; it is missing if there is no limit |
| body | the serialized request |
| response ANSWERED | the serialized response |
| response ENDED | the error, as JSON: `code`, a number, `details` and `trailers`, pairs |

Guarantees: used from one event loop. A call whose connection is closed is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import grpc
import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from server.processes.worker_host import RPC_PREFIX
from server.rest.http_messages import read_large_body

METADATA_HEADER = b"x-runstep-rpc-metadata"
TIMEOUT_HEADER = b"x-runstep-rpc-seconds"
ANSWERED = 200
ENDED = 422  # the status of a response that has the error of a call, and of no other
_UNLIMITED = 1 << 62  # the other process has limited what it received
Pairs: TypeAlias = Sequence[tuple[str, str]]
# Takes a serialized request and the context of a call; returns the serialized response.
Handler: TypeAlias = Callable[[bytes, Any], Awaitable[bytes]]


class _CallEndedError(Exception):
    """A handler has ended its call with an error."""

    def __init__(self, code: grpc.StatusCode, details: str, trailers: Pairs) -> None:
        super().__init__(details)
        self.content = orjson.dumps(
            {"code": code.value[0], "details": details, "trailers": trailers}
        )


class _Context:
    """What a handler of RpcListener uses of gRPC's context."""

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
        raise _CallEndedError(code, details, trailers)


class PassedRpcs:
    """An ASGI application; `handlers` are those of methods by their paths."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        headers = dict(scope["headers"])
        handler = self._handlers.get(scope["path"].removeprefix(RPC_PREFIX))
        if handler is None:
            await Response(status_code=404)(scope, receive, send)
            return
        data = bytes(await read_large_body(receive, headers, _UNLIMITED))
        metadata = [(name, value) for name, value in orjson.loads(headers[METADATA_HEADER])]
        seconds = headers.get(TIMEOUT_HEADER)
        context = _Context(metadata, None if seconds is None else float(seconds))
        answering = asyncio.ensure_future(handler(data, context))
        leaving = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                await _response_of(answering)(scope, receive, send)
        finally:
            for each in (answering, leaving):
                each.cancel()


async def _disconnected(receive: Receive) -> None:
    """Return when the other process has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _response_of(answering: asyncio.Future[bytes]) -> Response:
    try:
        return Response(answering.result(), ANSWERED)
    except _CallEndedError as error:
        return Response(error.content, ENDED)
