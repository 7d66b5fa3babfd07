"""A bare ASGI application that answers the JSON of the request: the limit of the HTTP server.

    python -m bench.http.echo        # prints its address, then serves until it is killed

It parses and writes the body with orjson, under the same uvicorn, event loop and HTTP parser as
Runstep.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import uvicorn


async def echo(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Answer the request's JSON with status 200."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    answer = orjson.dumps(orjson.loads(body))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(answer)).encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


class PrintingServer(uvicorn.Server):
    """uvicorn's server, which prints its address once it listens."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        print(f"http://127.0.0.1:{port}", flush=True)


if __name__ == "__main__":
    options = {"log_config": None, "access_log": False, "server_header": False}
    PrintingServer(uvicorn.Config(echo, port=0, lifespan="off", **options)).run()
