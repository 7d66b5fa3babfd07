"""RaySessionCalls: the HTTP calls of sessions that are on the nodes of a Ray cluster.

Guarantees: bodies are received whole, within the limits of any request, before they are passed on.
If the client goes away, the call on the node is cancelled.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from runtime.errors import CancelledError
from server.host import Host
from server.passed_calls import PassedRequest, PassedResponse, passed_body, received_body
from server.ray_sessions.ray_host import RayHost
from server.rest.session_calls import OF_CONNECTION, session_call

_SESSIONS = re.compile(r"/v1/sessions(?:/?$|/([^/:]+))")


class _Paths:
    """Matches the paths of sessions on the cluster, and of the calls that open and list them."""

    def __init__(self, host: RayHost) -> None:
        self._host = host

    def match(self, path: str) -> bool:
        """Return whether a path is one of them."""
        found = _SESSIONS.match(path)
        return found is not None and (not found[1] or self._host.is_elsewhere(found[1]))


def ray_shortcuts_of(host: Host, app: ASGIApp) -> tuple[tuple[_Paths, ASGIApp], ...]:
    """Return the shortcut of RequestMiddleware for the sessions of a cluster."""
    assert isinstance(host, RayHost)
    return ((_Paths(host), RaySessionCalls(host, app)),)


class RaySessionCalls:
    """An ASGI application that passes requests on to the node of their session.

    `app` responds to what is no call on one session: the listing.
    """

    def __init__(self, host: RayHost, app: ASGIApp) -> None:
        self._host = host
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request; raise the error of a node that has ended."""
        found = _SESSIONS.match(scope["path"])
        assert found is not None
        if not found[1] and scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        scope["endpoint"] = session_call
        request = await _received(scope, receive)
        call = self._host.call(found[1], request) if found[1] else self._host.open_session(request)
        response = await _unless_disconnected(call, receive)
        headers = [each for each in response.headers if each[0] not in OF_CONNECTION]
        start = {"type": "http.response.start", "status": response.status, "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": received_body(response.body)})


async def _received(scope: Scope, receive: Receive) -> PassedRequest:
    parts: list[bytes] = []
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


async def _unless_disconnected(
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


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
