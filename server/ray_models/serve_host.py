"""ServeHost: a front of a Ray Serve application, whose models are replicas and sessions on nodes.

Guarantees: used from one event loop, apart from what RayHost says of `connect`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from ray import serve

from runtime.errors import FailedPreconditionError, OpError
from server.access.caller import LOCAL, Caller, told_caller
from server.host import Apply
from server.ray_models.deployment_names import deployment_name
from server.ray_models.model_handle import ModelHandle
from server.ray_sessions.ray_host import ASK_SECONDS, HOSTS_SECONDS, RayHost, up_metric
from server.settings import Settings

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
_OF_REPLICAS = frozenset({"threadpools"})  # what is asked of fronts and replicas too


class ServeHost(RayHost):
    """The way of a front to the replicas of models, and to the session hosts.

    `settings` are those of the whole application, whose name is `ray.application`. `origin` is what
    tells the figures of this front from those of others.
    """

    has_replicas = True

    def __init__(self, settings: Settings, origin: Mapping[str, str]) -> None:
        super().__init__(settings)
        self.origin = origin
        self.is_on_ray = settings.sessions.enabled
        self._models: dict[str, ModelHandle] = {}
        self._looking: asyncio.Task[None] | None = None

    @property
    def shares_ports(self) -> bool:
        """Whether other fronts, on the same node, listen on the same gRPC port."""
        return True

    def set_models(self, names: Iterable[str]) -> None:
        """Pass on the calls of these models."""
        old = self._models
        self._models = {name: old.get(name) or self._found(name) for name in names}
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look_forever())

    def _found(self, name: str) -> ModelHandle:
        return ModelHandle(
            name, serve.get_deployment_handle(deployment_name(name), self._application)
        )

    def model(self, name: str) -> ModelHandle | None:
        """Return a model of the application, or None."""
        return self._models.get(name)

    def models(self) -> list[ModelHandle]:
        """Return all models, in the order of the settings."""
        return list(self._models.values())

    def serves(self, model: str) -> bool | None:
        """Return whether a model's replicas serve it, or None if there is no such model."""
        found = self._models.get(model)
        return None if found is None else not found.fault

    def not_ready(self) -> list[str]:
        """Return why sessions can't be opened, and which models do not serve."""
        faults = [each.fault for each in self.models() if each.fault]
        return [*self._faults, *faults] if self.is_on_ray else faults

    async def ask(self, what: str, caller: Caller = LOCAL) -> list[Any]:
        """Return what each session host says to a caller, and each other front and replica."""
        answers = await super().ask(what, caller)
        if what in _OF_REPLICAS:
            told = await self._ask_listeners(what, caller)
            answers += [each for _, each in told if each is not None]
        return answers

    async def metrics_of_nodes(self) -> list[dict[str, tuple[str, str]]] | None:
        """Return the metrics of each session host, and of each other front and replica."""
        of_hosts = await super().metrics_of_nodes() or []
        told = await self._ask_listeners("metrics_text", LOCAL)
        up = up_metric("runstep_replica_up", "a front or a replica", told)
        return [*of_hosts, *(each for _, each in told if each is not None), up]

    async def _ask_listeners(self, what: str, caller: Caller) -> list[tuple[dict[str, str], Any]]:
        """Return the labels of each other front and replica, with what it says, or with None."""
        but, told = dict(self.origin), told_caller(caller)
        try:
            async with asyncio.timeout(HOSTS_SECONDS + ASK_SECONDS):
                found: list[tuple[dict[str, str], Any]] = await self._told(
                    "ask_listeners", but, what, *told, ASK_SECONDS
                )
        except (OpError, TimeoutError) as error:
            _log.info("The directory does not say the %s of fronts and replicas: %r", what, error)
            return []
        return found

    def change_turn(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Raise FailedPreconditionError: a call reaches one replica, and all must be the same."""
        raise FailedPreconditionError(
            "The models of this server are replicas of Ray Serve, which a call does not change; "
            "`runstep deploy ray` with a changed configuration does"
        )

    async def follow_changes(self, apply: Apply) -> None:
        """Do nothing: a front has no models."""

    async def _look_forever(self) -> None:
        while True:
            await asyncio.gather(*(each.look() for each in self.models()))
            await asyncio.sleep(_LOOK_SECONDS)

    def stop_looking(self) -> None:
        """End the looks at the models."""
        if self._looking is not None:
            self._looking.cancel()
