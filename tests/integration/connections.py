"""An application behind the server's HTTP protocol, on a port of the running event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from server.connections.http_protocol import HttpProtocol


@contextlib.asynccontextmanager
async def on_a_port(app: Any, **options: Any) -> AsyncIterator[str]:
    """Serve `app` without its lifespan; yields `http://127.0.0.1:<port>`.

    `options` are those of uvicorn.
    """
    config = uvicorn.Config(
        app, http=HttpProtocol, lifespan="off", log_config=None, access_log=False,
        server_header=False, **options,
    )  # fmt: skip
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: HttpProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for connection in list(state.connections):
            connection.shutdown()
        await asyncio.gather(*state.tasks, return_exceptions=True)
        while state.connections:  # the loop tells them that they are closed
            await asyncio.sleep(0)
        await server.wait_closed()
