"""An ASGI application on a Unix socket, with the HTTP protocol of the server."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator, Awaitable, Callable

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from server.connections.connection_limits import ConnectionLimits, Connections
from server.connections.http_protocol import HttpProtocol

SECONDS = 20.0  # for what takes some milliseconds
_LIMITS = ConnectionLimits(
    max_connections=100,
    max_header_bytes=1 << 16,
    max_headers=100,
    header_seconds=SECONDS,
    body_seconds=SECONDS,
    keep_alive_seconds=SECONDS,
)


class App:
    """What the protocol requires of an application, around any."""

    answer_now = None

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.connections = Connections(_LIMITS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


@contextlib.asynccontextmanager
async def serving(path: pathlib.Path, app: ASGIApp) -> AsyncIterator[Connections]:
    """Serve `app` on a Unix socket; at the end its connections are closed at once."""
    served = App(app)
    config = uvicorn.Config(served, http=HttpProtocol, log_config=None)
    config.load()
    state = uvicorn.server.ServerState()

    def protocol() -> asyncio.Protocol:
        made: asyncio.Protocol = HttpProtocol(config=config, server_state=state, app_state={})
        return made

    server = await asyncio.get_running_loop().create_unix_server(protocol, str(path))
    try:
        yield served.connections
    finally:
        server.close()
        for each in list(state.connections):
            each.transport.abort()  # type: ignore[union-attr] # it is connected
        while state.connections:
            await asyncio.sleep(0)
        path.unlink(missing_ok=True)  # Python 3.13 has removed it


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario in an event loop, for SECONDS at most."""

    async def limited() -> None:
        await asyncio.wait_for(scenario(), SECONDS)

    asyncio.run(limited())
