"""RaySessionCalls: the HTTP calls of sessions that are on the nodes of a Ray cluster.

Guarantees: bodies are received whole, within the limits of any request, before they are passed on.
If the client goes away, the call on the node is cancelled.
"""

from __future__ import annotations

import re
import time

from starlette.types import ASGIApp, Receive, Scope, Send

from server.host import Host
from server.ray_sessions.host_ids import timeout_of
from server.ray_sessions.ray_host import RayHost
from server.rest.passed_deadline import passed_deadline
from server.rest.passed_messages import received_request, send_response, unless_disconnected
from server.rest.session_calls import session_call

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
        request = await received_request(scope, receive)
        received_at = scope.get("received_at") or time.monotonic()
        deadline = passed_deadline(request, received_at, timeout_of(found[1] or ""))
        if found[1]:
            call = self._host.call(found[1], request, deadline)
        else:
            call = self._host.open_session(request, deadline)
        await send_response(await unless_disconnected(call, receive), send)
