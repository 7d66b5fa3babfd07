"""Front: a replica of the application's ingress, which is the ordinary server without models.

HTTP comes from Ray Serve's proxy, one on each node; gRPC comes to a port of the front's own
(`server/rpc/ray_model_calls.py` says why), which fronts on one node share. Callers are identified
and counted here.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ray import serve
from starlette.types import Message, Receive, Scope, Send

from runtime.errors import as_op_error
from server.embedded_server import EmbeddedServer
from server.internal_calls import says_of
from server.ray_models.serve_host import ServeHost
from server.ray_serve.model_replica import ModelNotServedError, replica_origin
from server.ray_sessions.listening import listen
from server.settings import ModelSettings, Settings

_GRPC = "gRPC"
_CLOSING_SECONDS = 5.0
_REQUEST_ID = b"x-request-id"  # which the proxy adds


class Front:
    """The program of a front; `settings` are those of the application without models, as JSON.

    `reconfigure` brings the models. `replicas` are their deployments' handles, which are given for
    Ray Serve to know what belongs to the application.
    """

    def __init__(self, settings: dict[str, Any], replicas: list[Any]) -> None:
        name = serve.get_replica_context().app_name  # who built the application may not know it
        self._settings = settings | {"ray": settings["ray"] | {"application": name}}
        self._host: ServeHost | None = None
        self._server: EmbeddedServer | None = None
        self._grpc: Any = None
        self._listening: asyncio.Task[None] | None = None

    async def reconfigure(self, given: dict[str, Any]) -> None:
        """Start, or pass on the calls of other models than before."""
        models: list[dict[str, Any]] = given["models"]
        try:
            settings = Settings(
                **self._settings, models=tuple(ModelSettings(**model) for model in models)
            )
            if self._host is None:
                await self._start(settings)
            else:
                await self._host.reconfigure(settings)
            assert self._host is not None
            self._host.set_models([model["name"] for model in models])
        except Exception as error:
            told = as_op_error(error)
            raise ModelNotServedError(f"{told.code.name}: {told.message}") from None

    async def _start(self, settings: Settings) -> None:
        origin = replica_origin()
        host = ServeHost(settings, origin)
        await asyncio.to_thread(host.connect)
        server = EmbeddedServer(Settings(**self._settings), host)
        services = server.services
        if services.settings.grpc.port != 0:
            from server.rpc.grpc_server import GrpcServer

            services.lifecycle.expect_port(_GRPC)
            self._grpc = GrpcServer(services)
            await self._grpc.start()
            services.lifecycle.port_is_open(_GRPC)
        await server.start()
        says = says_of(services, is_front=True)
        self._listening = asyncio.ensure_future(listen(settings.ray.application, origin, says))
        self._host, self._server = host, server

    async def not_ready(self) -> list[str]:
        """Return why the application does not serve everything."""
        assert self._host is not None
        return self._host.not_ready()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one HTTP request."""
        assert self._server is not None

        async def send_once(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [each for each in message["headers"] if each[0] != _REQUEST_ID]
                message["headers"] = kept
            await send(message)

        await self._server.app(scope, receive, send_once)

    async def __del__(self) -> None:
        """End; Ray Serve has waited for the HTTP requests, but does not know those of gRPC."""
        server, self._server = self._server, None
        if self._host is not None:
            self._host.stop_looking()
        if self._listening is not None:
            self._listening.cancel()
        if server is None:
            return
        await server.services.lifecycle.drain(server.services.settings.rest.drain_seconds)
        if self._grpc is not None:
            await self._grpc.stop(_CLOSING_SECONDS)
        await server.stop(0.0)


class FrontApplication:
    """The ASGI application that Ray Serve calls in the process of a front."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request, or to the start and the end of the process."""
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        front: Front = serve.get_replica_context().servable_object
        await front.answer(scope, receive, send)
