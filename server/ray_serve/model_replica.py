"""ModelReplica: one replica of a served model, as a server without ports.

A front passes it whole calls, which the front has admitted. Calls return an Answer
(`runtime.ray_api`). A call that Ray Serve cancels is cancelled as if its client had gone away.

Guarantees: a replica that has started serves its model. A change that fails leaves what served.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import ray
from ray import serve

from runtime.errors import DeadlineExceededError, as_op_error
from runtime.ray_api import Answer, refusal
from server.embedded_server import EmbeddedServer
from server.host import Host
from server.internal_calls import says_of
from server.models.administration import check_versions
from server.models.model_config import from_settings
from server.passed_calls import PassedRequest
from server.ray_sessions.listening import listen
from server.runtime_metrics import exhausted_pools
from server.settings import ModelSettings, Settings

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.02
_REHEARSED_SECONDS = 60.0  # until a change that is not made everywhere is undone


class ModelNotServedError(Exception):
    """A replica can't start, or can't make a change; the text is an OpError's."""


def replica_origin() -> dict[str, str]:
    """Return what tells the figures of this replica from those of all others."""
    context = serve.get_replica_context()
    replica = f"{context.deployment}#{context.replica_tag}"
    return {"node": ray.util.get_node_ip_address(), "replica": replica}


class _ReplicaHost(Host):
    def __init__(self) -> None:
        self.origin = replica_origin()


class ModelReplica:
    """The program of a replica; `settings` are those of a server without models, as JSON.

    `reconfigure` brings the model, whose versions and labels can change later.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._server: EmbeddedServer | None = None
        self._model: dict[str, Any] = {}
        self._undo: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Task[None] | None = None

    async def reconfigure(self, model: dict[str, Any]) -> None:
        """Start with a model, or change its versions and labels; return when it serves."""
        try:
            self._end_rehearsal()
            if self._server is None:
                await self._start(model)
            else:
                await self._change(model)
        except Exception as error:
            told = as_op_error(error)
            raise ModelNotServedError(f"{told.code.name}: {told.message}") from None
        self._model = model

    async def _start(self, model: dict[str, Any]) -> None:
        for config in from_settings([ModelSettings(**model)]):
            await asyncio.to_thread(check_versions, config)
        host = _ReplicaHost()
        settings = Settings(**self._settings, models=(ModelSettings(**model),))
        server = EmbeddedServer(settings, host, is_admitted=True)
        await server.start()
        models, name = server.services.models, model["name"]
        try:
            while server.not_ready():
                failed = [each for each in models.known_statuses(name) if each.has_failed]
                if failed and failed[0].error is not None:
                    raise failed[0].error
                await asyncio.sleep(_LOOK_SECONDS)
        except BaseException:
            await server.stop(0.0)
            raise
        application = serve.get_replica_context().app_name
        listening = listen(application, host.origin, says_of(server.services))
        self._listening = asyncio.ensure_future(listening)
        self._server = server

    async def _change(self, model: dict[str, Any]) -> None:
        administration = self._running.services.administration
        await administration.configure(from_settings([ModelSettings(**model)]))

    @property
    def _running(self) -> EmbeddedServer:
        assert self._server is not None  # Ray Serve calls `reconfigure` before anything else
        return self._server

    async def rehearse(self, model: dict[str, Any]) -> Answer:
        """Make a change which, if it succeeds, all replicas are to make soon."""
        try:
            await self._change(model)
        except Exception as error:
            return refusal(error)
        self._end_rehearsal()
        loop = asyncio.get_running_loop()
        self._undo = loop.call_later(_REHEARSED_SECONDS, self._undo_rehearsal)
        return (0, None)

    def _end_rehearsal(self) -> None:
        if self._undo is not None:
            self._undo.cancel()
            self._undo = None

    def _undo_rehearsal(self) -> None:
        _log.warning("A change was not made everywhere, and is undone")
        task = asyncio.ensure_future(self._change(self._model))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def call(self, request: PassedRequest) -> Answer:
        """Respond to an HTTP request."""
        try:
            return (0, await self._running.call(request))
        except Exception as error:
            return refusal(error)

    async def rpc(
        self, path: str, data: bytes, metadata: Sequence[tuple[str, str]], seconds: float | None
    ) -> Answer:
        """Respond to a gRPC call."""
        try:
            if seconds is not None and seconds <= 0:
                raise DeadlineExceededError("Deadline exceeded on the way to a replica")
            return (0, await self._running.rpc(path, data, metadata, seconds))
        except Exception as error:
            return refusal(error)

    async def not_ready(self) -> Answer:
        """Return a text for each reason why the model is not served."""
        return (0, self._running.not_ready())

    def check_health(self) -> None:
        """Raise RuntimeError if the replica can run no step any more: Ray Serve replaces it."""
        if exhausted := list(exhausted_pools()):
            raise RuntimeError(f"No thread is left in: {', '.join(exhausted)}")

    async def __del__(self) -> None:
        """End; Ray Serve has waited for the requests."""
        server, self._server = self._server, None
        if self._listening is not None:
            self._listening.cancel()
        if server is not None:
            await server.stop(0.0)
