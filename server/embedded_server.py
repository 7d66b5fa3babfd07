"""EmbeddedServer: a whole server inside an actor, which is called and has no ports.

Guarantees: used from one event loop. A call that is cancelled is cancelled as if its client had
gone away.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.types import Message, Scope

from runtime.api import ignore_float_errors, keep_freed_memory, share_processors_among_runs
from server.app import Services, create_app, lifespan, make_services
from server.host import ALONE, Host
from server.log import configure_logging
from server.middleware import PASSED_ON
from server.models.freed_memory import collect_less_often
from server.passed_calls import PassedRequest, PassedResponse, passed_body, received_body
from server.settings import Settings

if TYPE_CHECKING:
    from server.rpc.direct_calls import DirectCalls

_CLOSING_SECONDS = 5.0  # as of a server with ports


class EmbeddedServer:
    """The services and the application of one server.

    If `is_admitted`, whoever passes the calls has admitted them and counted them for their callers.
    """

    def __init__(
        self, settings: Settings, host: Host = ALONE, *, is_admitted: bool = False
    ) -> None:
        """Make the server; raise what `make_services` raises."""
        self.services: Services = make_services(settings, host=host)
        self.app = create_app(self.services)
        self._is_admitted = is_admitted
        self._running = contextlib.AsyncExitStack()
        self._left: set[asyncio.Task[PassedResponse]] = set()  # of callers who went away
        self._rpc: DirectCalls | None = None  # until the first call

    async def start(self) -> None:
        """Start to load the models, in the background, and to answer calls."""
        settings = self.services.settings
        configure_logging(settings.log.level, settings.log.format)
        collect_less_often()
        keep_freed_memory()
        ignore_float_errors()
        share_processors_among_runs()
        if settings.rest.codec_threads is not None:
            threads = ThreadPoolExecutor(settings.rest.codec_threads, "codec")
            asyncio.get_running_loop().set_default_executor(threads)
        await self._running.enter_async_context(lifespan(self.services))

    def not_ready(self) -> list[str]:
        """Return a text for each reason why not every model is served."""
        return [*self.services.lifecycle.not_ready(), *self.services.models.not_ready()]

    async def call(self, request: PassedRequest) -> PassedResponse:
        """Respond to one HTTP request, as a port would."""
        gone = asyncio.Event()
        answering = asyncio.ensure_future(self._answer(request, gone))
        try:
            return await asyncio.shield(answering)
        except asyncio.CancelledError:
            gone.set()
            self._left.add(answering)
            answering.add_done_callback(self._forget)
            raise

    def _forget(self, answering: asyncio.Task[PassedResponse]) -> None:
        self._left.discard(answering)
        if not answering.cancelled():
            answering.exception()  # of a caller who is gone

    async def _answer(self, request: PassedRequest, gone: asyncio.Event) -> PassedResponse:
        is_read = False
        status, headers = 500, []
        parts: list[bytes] = []

        async def receive() -> Message:
            nonlocal is_read
            if not is_read:
                is_read = True
                return {"type": "http.request", "body": received_body(request.body)}
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status, headers = message["status"], list(message["headers"])
            elif message.get("body"):
                parts.append(message["body"])

        await self.app(self._scope(request), receive, send)
        return PassedResponse(status, headers, passed_body(parts))

    def _scope(self, request: PassedRequest) -> Scope:
        path, _, query = request.target.partition(b"?")
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": "http",
            "method": request.method,
            "path": unquote(path.decode("latin-1")),
            "raw_path": path,
            "root_path": "",
            "query_string": query,
            "headers": request.headers,
            "client": None,
            "server": None,
            "state": {},
            "certificate_names": request.certificate_names,
        }
        if self._is_admitted:
            scope[PASSED_ON] = True
        return scope

    async def rpc(
        self,
        path: str,
        data: bytes,
        metadata: Sequence[tuple[str, str]] = (),
        seconds: float | None = None,
    ) -> bytes:
        """Return the response to one gRPC call without streams, as a port would; raise its OpError.

        `path` is that of the method, such as `/tensorflow.MasterService/RunStep`. `seconds` is what
        is left until its deadline.
        """
        if self._rpc is None:
            from server.rpc.grpc_server import direct_calls  # imports grpc

            self._rpc = direct_calls(self.services, is_admitted=self._is_admitted)
        return await self._rpc.call(path, data, metadata, seconds)

    async def stop(self, drain_seconds: float | None = None) -> None:
        """Refuse new work, wait for what runs, `rest.drain_seconds` at most, and end."""
        settings = self.services.settings
        grace = settings.rest.drain_seconds if drain_seconds is None else drain_seconds
        await self.services.lifecycle.drain(grace)
        await self.services.sessions.close_all()
        if self._rpc is not None:
            await self._rpc.stop(_CLOSING_SECONDS)
        await self._running.aclose()
