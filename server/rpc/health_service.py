"""grpc.health.v1: whether the server, a service or a model can be called now.

The service "" and the names of the gRPC services stand for the whole server, as `/readyz` does; any
other name is a model's, which serves if one of its versions does. Load balancers and orchestrators
call without credentials.

TF: tensorflow_serving/model_servers/server.cc (--enable_grpc_healthcheck_service);
    https://github.com/grpc/grpc/blob/master/doc/health-checking.md
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection

from grpc_health.v1 import health_pb2 as health

from runtime.errors import NotFoundError, ResourceExhaustedError
from server.lifecycle import Lifecycle, Phase
from server.models.manager import ModelManager
from server.rpc.call import CallContext, Stream

NAME = "grpc.health.v1.Health"
# The names that TensorFlow Serving's health service knows.
_TENSORFLOW_SERVING = ("PredictionService", "ModelService")
_LOOK_SECONDS = 0.25  # how soon those who watch are told of a change
MAX_WATCHERS = 1000  # they need no credentials, so that strangers could be many
_SERVING: int = health.HealthCheckResponse.SERVING
_NOT_SERVING: int = health.HealthCheckResponse.NOT_SERVING
_UNKNOWN: int = health.HealthCheckResponse.SERVICE_UNKNOWN


class HealthService:
    """The service of one server.

    `not_ready` lists what the whole server waits for. `serves` says whether replicas serve a model,
    or None if they do not have it. A server that drains takes no more work, but answers here until
    it ends.
    """

    def __init__(
        self,
        manager: ModelManager,
        lifecycle: Lifecycle,
        services: Collection[str],
        not_ready: Callable[[], list[str]],
        serves: Callable[[str], bool | None] = lambda _: None,
    ) -> None:
        self._manager = manager
        self._lifecycle = lifecycle
        self._services = frozenset(("", *services, *_TENSORFLOW_SERVING))
        self._not_ready = not_ready
        self._serves = serves
        self._look: asyncio.Task[None] | None = None  # while anybody watches
        self._watched: collections.Counter[str] = collections.Counter()  # watchers by name
        self._changed = asyncio.Event()  # is set, and replaced, when a watched status changes

    def methods(self) -> dict[str, Stream]:
        """Return the methods of the service by name."""
        read = health.HealthCheckRequest.FromString
        return {
            "Check": Stream(read, self.check, is_work=False),
            "Watch": Stream(read, self.watch, is_work=False),
        }

    def status(self, service: str) -> int:
        """Return the status of a service or a model, as it is now."""
        if service in self._services:
            return _NOT_SERVING if self._waits() else _SERVING
        serves = self._serves(service)
        if serves is None:
            model = self._manager.served_model(service)
            if model is None:
                return _UNKNOWN
            serves = model.latest is not None
        is_draining = self._lifecycle.phase is Phase.DRAINING
        return _NOT_SERVING if is_draining or not serves else _SERVING

    async def check(
        self, requests: AsyncIterator[health.HealthCheckRequest], call: CallContext
    ) -> AsyncGenerator[health.HealthCheckResponse, None]:
        """Return the status; raise NotFoundError for an unknown name."""
        async for request in requests:
            status = self.status(request.service)
            if status == _UNKNOWN:
                raise NotFoundError(f"No service or model is called {request.service!r:.80}")
            yield health.HealthCheckResponse(status=status)

    async def watch(
        self, requests: AsyncIterator[health.HealthCheckRequest], call: CallContext
    ) -> AsyncGenerator[health.HealthCheckResponse, None]:
        """Return the status now and at every change; the stream ends when the server drains.

        Raises ResourceExhaustedError if there are MAX_WATCHERS already.
        """
        async for request in requests:
            service, last = request.service, None
            self._begin_to_watch(service)
            try:
                while True:
                    # The server may begin to drain while a status is sent; that is told as well.
                    is_draining = self._lifecycle.phase is Phase.DRAINING
                    changed, status = self._changed, self.status(service)
                    if status != last:
                        last = status
                        yield health.HealthCheckResponse(status=status)
                    if is_draining:
                        return
                    await changed.wait()
            finally:
                self._end_to_watch(service)

    def _waits(self) -> bool:
        return self._lifecycle.phase is not Phase.SERVING or bool(self._not_ready())

    def _begin_to_watch(self, service: str) -> None:
        if self._watched.total() >= MAX_WATCHERS:
            raise ResourceExhaustedError(f"{MAX_WATCHERS} clients watch the health already")
        self._watched[service] += 1
        if self._look is None:
            self._look = asyncio.get_running_loop().create_task(self._look_forever())

    def _end_to_watch(self, service: str) -> None:
        self._watched[service] -= 1
        if not self._watched[service]:
            del self._watched[service]
        if not self._watched and self._look is not None:
            self._look.cancel()
            self._look = None

    async def _look_forever(self) -> None:
        """Wake those who watch when a status has changed; one timer serves all of them."""
        before: dict[str, int] = {}
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = {service: self.status(service) for service in self._watched}
            if now != before or self._lifecycle.phase is Phase.DRAINING:
                before = now
                changed, self._changed = self._changed, asyncio.Event()
                changed.set()
