"""SessionCalls: HTTP calls on a session that another process has, or is to open.

Guarantees: bodies and responses are passed on as they arrive; if the client goes away, the other
process sees that its connection ends. A process that does not begin its response is waited for as
`Patience` says, and for no longer than the request says.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncIterator
from typing import Any

import orjson
from starlette.types import Message, Receive, Scope, Send

from runtime.errors import CancelledError
from server.passed_calls import PassedRequest
from server.processes.patience import LOOK_SECONDS, Patience
from server.processes.process_client import Response
from server.processes.session_ids import SESSION_PATH, Place
from server.processes.worker_host import CERTIFICATE_NAMES, WorkerHost
from server.rest.passed_deadline import passed_deadline

# What belongs to one connection, or is added by each process (RFC 9110 §7.6.1).
OF_CONNECTION = frozenset({
    b"connection", b"keep-alive", b"transfer-encoding", b"te", b"trailer", b"upgrade",
    b"proxy-connection", b"expect", b"x-request-id", b"date", b"server", CERTIFICATE_NAMES,
})  # fmt: skip

# The body of a request whose own deadline is looked for in it, at most.
_LARGE_BYTES = 64 << 10


async def session_call() -> None:
    """Name the calls that are passed on, in the metrics of the process that receives them."""


class SessionCalls:
    """An ASGI application that passes requests on to the process of their session."""

    def __init__(self, host: WorkerHost) -> None:
        self._host = host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request; raise the error of a process that has ended."""
        found = SESSION_PATH.match(scope["path"])
        assert found is not None
        await self.pass_on(self._host.process_of(found[1]), scope, receive, send)

    async def pass_on(self, place: Place, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a process respond to one request; raise the error of one that has ended.

        Raises UnavailableError if it does not answer, and DeadlineExceededError soon after the
        request's deadline.
        """
        scope["endpoint"] = session_call
        headers = [each for each in scope["headers"] if each[0] not in OF_CONNECTION]
        if all(name != b"host" for name, _ in headers):  # as HTTP/1.0 permits
            headers.append((b"host", b"process"))
        headers.append((b"x-request-id", scope["request_id"].encode()))
        if certificate_names := scope.get("certificate_names"):
            headers.append((CERTIFICATE_NAMES, orjson.dumps(certificate_names)))
        has_body = any(
            name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"]
        )
        body = _Body(receive, has_body)
        target = scope["raw_path"]
        if scope["query_string"]:
            target += b"?" + scope["query_string"]
        deadline = functools.partial(
            _deadline, scope, target, body, scope.get("received_at") or time.monotonic()
        )
        patience = self._host.patience(place, deadline)
        parts = body.parts() if has_body else None
        client = self._host.client_of(place)
        sending = asyncio.ensure_future(client.send(scope["method"], target, headers, parts))
        try:
            response = await body.unless_disconnected(sending, patience)
        except OSError as error:
            raise await self._host.lost(place) from error
        try:
            await _send(response, send)
        finally:
            response.end()


class _Body:
    """The body of a request, and after it the end of the client's connection."""

    def __init__(self, receive: Receive, has_body: bool) -> None:
        self._receive = receive
        self._is_read = asyncio.Event()
        self._content: bytearray | None = bytearray()  # None if it is large
        if not has_body:
            self._is_read.set()

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the parts of the body; raise CancelledError if the client goes away."""
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise CancelledError("The client went away.")
            if message.get("body"):
                self._keep(message["body"])
                yield message["body"]
            if not message.get("more_body"):
                self._is_read.set()
                return

    def _keep(self, part: bytes) -> None:
        if self._content is not None and len(self._content) + len(part) <= _LARGE_BYTES:
            self._content += part
        else:
            self._content = None

    def content(self) -> bytes | None:
        """Return the whole body; None if it is large, or the client has not sent it all yet."""
        if self._content is None or not self._is_read.is_set():
            return None
        return bytes(self._content)

    async def unless_disconnected(
        self, sending: asyncio.Future[Response], patience: Patience
    ) -> Response:
        """Return the response; cancel the call and raise CancelledError if the client goes away.

        Raises what `Patience.check` raises, too.
        """
        watching = asyncio.ensure_future(self._disconnect())
        try:
            while not await _first_of(sending, watching):
                patience.check()
            if not sending.done():
                raise CancelledError("The client went away.")
            return sending.result()
        except BaseException:
            if sending.done() and not sending.cancelled() and sending.exception() is None:
                sending.result().end()
            raise
        finally:
            for each in (sending, watching):
                if not each.done():
                    each.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await each

    async def _disconnect(self) -> Message:
        await self._is_read.wait()
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                return message


def _deadline(scope: Scope, target: bytes, body: _Body, received_at: float) -> float | None:
    content = body.content()
    if content is None:
        return None
    request = PassedRequest(scope["method"], target, scope["headers"], content)
    return passed_deadline(request, received_at)


async def _first_of(*waiting: asyncio.Future[Any]) -> set[asyncio.Future[Any]]:
    """Return what is done; nothing if that is nothing in LOOK_SECONDS."""
    done, _ = await asyncio.wait(waiting, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    return done


async def _send(response: Response, send: Send) -> None:
    headers = [each for each in response.headers if each[0] not in OF_CONNECTION]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    async for part in response.parts():
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
