"""InternalCalls: the application on a process's Unix socket, for the other processes.

It says what the others ask for (`WorkerHost.ask`), makes the changes of models that they have made,
answers the calls of gRPC that they pass on, and passes on every other request, which another
process has received and admitted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from server.access.caller import Caller, caller_of
from server.app import Services
from server.connections.connection_limits import ConnectionLimits, Connections
from server.middleware import PASSED_ON, RequestMiddleware
from server.processes.host_changes import CHANGE_PATH
from server.processes.labelled_metrics import OF_THE_FRONT, labelled_text
from server.processes.merged_metrics import families_to_wire
from server.processes.told_changes import ToldChanges
from server.processes.worker_host import (
    CERTIFICATE_NAMES,
    INTERNAL_PREFIX,
    RPC_PREFIX,
    WorkerHost,
)
from server.rest.operations import pool_figures
from server.rest.sessions import described_sessions
from server.runtime_metrics import named_global_pools

_log = logging.getLogger(__name__)

Say = Callable[[Caller], Any]
# The other processes hold their connections to this one, and limit what they receive.
_UNLIMITED = ConnectionLimits(
    max_connections=1 << 20,
    max_header_bytes=1 << 20,
    max_headers=1 << 10,
    header_seconds=3600,
    body_seconds=3600,
    keep_alive_seconds=3600,
)


def says_of(services: Services, *, is_front: bool = False) -> dict[str, Say]:
    """Return what a process says of itself to a caller, by the name of what is asked.

    Unless it `is_front`, its metrics are without what the fronts count that pass calls on to it.
    """
    sessions, metrics, origin = services.sessions, services.metrics, services.host.origin
    is_background = isinstance(services.host, WorkerHost) and services.host.is_background
    without = () if is_front else OF_THE_FRONT

    def pools(caller: Caller) -> list[dict[str, Any]]:
        named = pool_figures(named_global_pools(), origin)
        if is_background:  # its threads take turns with those of the others, or are idle
            for each in named:
                each["num_threads"] = 0
        return [*named, *pool_figures(sessions.thread_pools(caller), origin)]

    return {
        "metrics": lambda _: families_to_wire(metrics.families()),
        "metrics_text": lambda _: labelled_text(metrics.families(), origin, without),
        "sessions": lambda caller: described_sessions(sessions, caller),
        "threadpools": pools,
    }


class InternalCalls:
    """An ASGI application; `says` has a function that returns JSON values for each question."""

    def __init__(
        self,
        app: RequestMiddleware,
        says: Mapping[str, Say],
        changes: ToldChanges,
        host: WorkerHost,
    ) -> None:
        self._host = host
        self._app = app
        self._says = says
        self._changes = changes
        self.answer_now = app.answer_now  # see HttpProtocol
        self.connections = Connections(_UNLIMITED)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        path = scope.get("path", "")
        if scope["type"] != "http" or not path.startswith(INTERNAL_PREFIX):
            if scope["type"] == "http":
                names = dict(scope["headers"]).get(CERTIFICATE_NAMES, b"[]")
                scope["certificate_names"] = tuple(orjson.loads(names))
                scope[PASSED_ON] = True
            await self._app(scope, receive, send)
            return
        if path.startswith(RPC_PREFIX) and self._host.passed_rpcs is not None:
            await self._host.passed_rpcs(scope, receive, send)
            return
        if path == CHANGE_PATH:
            answer = await self._changes.answer(Request(scope, receive))
            await answer(scope, receive, send)
            return
        say = self._says.get(path.removeprefix(INTERNAL_PREFIX))
        if say is None:
            await Response(status_code=404)(scope, receive, send)
            return
        await Response(orjson.dumps(say(_caller_in(scope))), media_type="application/json")(
            scope, receive, send
        )


def _caller_in(scope: Scope) -> Caller:
    """Return for whom another process asks; nobody is known on a server without authentication."""
    asked = dict(parse_qsl(scope["query_string"].decode(), keep_blank_values=True))
    roles = asked.get("roles", "").split(",")
    return caller_of(asked.get("owner"), filter(None, roles))  # an owner may have no roles
