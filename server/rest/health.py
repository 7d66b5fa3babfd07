"""Serve `/healthz` and `/readyz` for load balancers and orchestrators."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from runtime.errors import UnavailableError
from server.host import ALONE, Host
from server.lifecycle import Lifecycle, Phase
from server.rest.http_messages import json_response

# Returns the names of the models that are not ready; the server is ready if there are none.
NotReady = Callable[[], Iterable[str]]

_METHODS = frozenset({"GET", "HEAD"})  # HEAD is that of `wget --spider` and some load balancers
HEALTH_PATH = re.compile(r"/(?:healthz|readyz)\Z")


class Health:
    """The endpoints of both calls."""

    def __init__(self, lifecycle: Lifecycle, not_ready: NotReady, host: Host = ALONE) -> None:
        self._lifecycle = lifecycle
        self._not_ready = not_ready
        self._host = host

    async def healthz(self) -> Response:
        """Respond with 200 as long as the process is alive."""
        return json_response({"status": "alive"})

    async def readyz(self) -> Response:
        """Respond with 200 if the server is ready for requests, else with 503.

        The server is ready if every configured port is open, all configured models are loaded,
        every thread pool has a thread for steps and the server is not draining.
        """
        lifecycle = self._lifecycle
        if lifecycle.phase is not Phase.SERVING:
            raise UnavailableError(f"The server is {lifecycle.phase.value}")
        waiting = [*lifecycle.not_ready(), *self._not_ready(), *self._host.not_ready()]
        if waiting:
            raise UnavailableError(f"Not ready: {', '.join(waiting)}")
        return json_response({"status": "ready"})


class HealthCalls:
    """Both calls as an ASGI application, which answers before the framework has been imported.

    Any other method is for `app`, which also has the routes of these calls.
    """

    def __init__(self, health: Health, app: ASGIApp) -> None:
        self._app = app
        self._endpoints = {"/healthz": health.healthz, "/readyz": health.readyz}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        if scope["method"] not in _METHODS:
            await self._app(scope, receive, send)
            return
        endpoint = scope["endpoint"] = self._endpoints[scope["path"]]
        response = await endpoint()
        await response(scope, receive, send)
