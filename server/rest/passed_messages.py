"""Whole HTTP messages between a connection and the process or actor that they are passed to.

Guarantees: bodies are received whole, within the limits of any request, before they are passed on.
If the client goes away, the call that it waits for is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from starlette.types import Receive, Scope, Send

from runtime.errors import CancelledError
from server.passed_calls import PassedRequest, PassedResponse, passed_body, received_body
from server.rest.session_calls import OF_CONNECTION


async def received_request(scope: Scope, receive: Receive) -> PassedRequest:
    """Return a request with its whole body; raise CancelledError if the client goes away."""
    parts: list[bytes | memoryview] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise CancelledError("The client went away.")
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            break
    body = passed_body(parts)
    headers = [each for each in scope["headers"] if each[0] not in OF_CONNECTION]
    headers = [each for each in headers if each[0] != b"content-length"]
    headers.append((b"x-request-id", scope["request_id"].encode()))
    headers.append((b"content-length", b"%d" % len(body)))
    target: bytes = scope["raw_path"]
    if scope["query_string"]:
        target += b"?" + scope["query_string"]
    names = tuple(scope.get("certificate_names", ()))
    return PassedRequest(scope["method"], target, headers, body, names)


async def unless_disconnected(
    call: Coroutine[Any, Any, PassedResponse], receive: Receive
) -> PassedResponse:
    """Return the response; cancel the call and raise CancelledError if the client goes away."""
    calling = asyncio.ensure_future(call)
    watching = asyncio.ensure_future(_disconnect(receive))
    try:
        await asyncio.wait((calling, watching), return_when=asyncio.FIRST_COMPLETED)
        if not calling.done():
            raise CancelledError("The client went away.")
        return calling.result()
    finally:
        for each in (calling, watching):
            each.cancel()


async def send_response(response: PassedResponse, send: Send) -> None:
    """Send a response that was passed."""
    headers = [each for each in response.headers if each[0] not in OF_CONNECTION]
    start = {"type": "http.response.start", "status": response.status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": received_body(response.body)})


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
