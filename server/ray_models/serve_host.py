"""ServeHost: a front of a Ray Serve application, whose models are replicas and sessions on nodes.

Guarantees: used from one event loop, apart from what RayHost says of `connect`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

from ray import serve

from runtime.errors import FailedPreconditionError
from server.access.caller import LOCAL, Caller
from server.host import Apply
from server.ray_models.deployment_names import deployment_name
from server.ray_models.model_handle import ModelHandle
from server.ray_sessions.ray_host import RayHost
from server.settings import Settings

_LOOK_SECONDS = 1.0


class ServeHost(RayHost):
    """The way of a front to the replicas of models, and to the session hosts.

    `settings` are those of the whole application, whose name is `ray.application`.
    """

    has_replicas = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
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
        return [self._fault, *faults] if self._fault else faults

    async def ask(self, what: str, caller: Caller = LOCAL) -> list[Any]:
        """Return what each session host says to a caller."""
        return await super().ask(what, caller) if self.is_on_ray else []

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
