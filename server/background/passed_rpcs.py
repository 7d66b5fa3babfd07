"""PassedRpcs: calls of gRPC that another process has received and passes on as HTTP requests.

`server/rpc/process_calls.py` has the form of these, and why they are no calls of gRPC.

Guarantees: used from one event loop. A call whose connection is closed is cancelled.
"""

from __future__ import annotations

import asyncio

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from runtime.errors import OpError
from server.processes.worker_host import RPC_PREFIX
from server.rest.http_messages import read_body
from server.rpc.direct_calls import DirectCalls
from server.rpc.process_calls import ANSWERED, ENDED, METADATA_HEADER, TIMEOUT_HEADER

_UNLIMITED = 1 << 62  # the other process has limited what it received


class PassedRpcs:
    """An ASGI application that makes the calls."""

    def __init__(self, calls: DirectCalls) -> None:
        self._calls = calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        headers = dict(scope["headers"])
        path = scope["path"].removeprefix(RPC_PREFIX)
        data = await read_body(receive, headers, _UNLIMITED)
        metadata = [(name, value) for name, value in orjson.loads(headers[METADATA_HEADER])]
        seconds = headers.get(TIMEOUT_HEADER)
        left = None if seconds is None else float(seconds)
        answering = asyncio.ensure_future(self._calls.call(path, data, metadata, left))
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
    except asyncio.CancelledError:  # by `DirectCalls.stop`: it is no answer
        return Response(status_code=503)
    except OpError as error:
        ended = {
            "code": int(error.code),
            "message": error.message,
            "retry_after": error.retry_after_seconds,
        }
        return Response(orjson.dumps(ended), ENDED)
