"""rpc_services(): every gRPC service of the server in one table."""

from __future__ import annotations

from typing import Protocol

from server.access.access import Access
from server.host import Host
from server.inference_protocol.service import InferenceProtocol
from server.lifecycle import Lifecycle
from server.memory_in_flight import MemoryInFlight
from server.metrics import Metrics
from server.models.administration import Administration
from server.models.inference_service import InferenceService
from server.models.manager import ModelManager
from server.rpc import health_service, inference_protocol_service, reflection_service
from server.rpc.call import Service
from server.rpc.health_service import HealthService
from server.rpc.inference_protocol_service import InferenceProtocolService
from server.rpc.master_service import MasterService
from server.rpc.model_service import ModelService
from server.rpc.prediction_service import PredictionService
from server.rpc.reflection_service import ReflectionService
from server.rpc.serving_session_service import ServingSessionService
from server.runtime_metrics import exhausted_pools
from server.sessions.service import SessionService
from server.settings import Settings

# The services of the port for TensorFlow's clients, which send no credentials.
MASTER = "tensorflow.MasterService"
TENSORFLOW_SERVICES = frozenset({MASTER})


class RpcServices(Protocol):
    """The services of one server that gRPC calls reach; `server.app.Services` has them."""

    @property
    def settings(self) -> Settings: ...  # noqa: D102 - as in Services
    @property
    def lifecycle(self) -> Lifecycle: ...  # noqa: D102
    @property
    def access(self) -> Access: ...  # noqa: D102
    @property
    def memory(self) -> MemoryInFlight: ...  # noqa: D102
    @property
    def metrics(self) -> Metrics: ...  # noqa: D102
    @property
    def models(self) -> ModelManager: ...  # noqa: D102
    @property
    def inference(self) -> InferenceService: ...  # noqa: D102
    @property
    def sessions(self) -> SessionService: ...  # noqa: D102
    @property
    def administration(self) -> Administration: ...  # noqa: D102
    @property
    def inference_protocol(self) -> InferenceProtocol: ...  # noqa: D102
    @property
    def host(self) -> Host: ...  # noqa: D102


def rpc_services(services: RpcServices) -> tuple[Service, ...]:
    """Return the services; their names and those of their methods are TensorFlow's."""
    settings, inference = services.settings, services.inference
    administration = services.administration
    master = MasterService(services.sessions, settings).methods()
    if services.host.has_others:
        from server.rpc.master_calls import master_calls

        master = master_calls(services.host, MASTER, master)
    elif services.host.is_on_ray:
        from server.rpc.ray_master_calls import ray_master_calls  # imports Ray

        master = ray_master_calls(services.host, MASTER, master)
    calls: tuple[Service, ...] = (
        Service(MASTER, master),
        Service(
            "tensorflow.serving.PredictionService",
            PredictionService(inference, settings).methods(),
        ),
        Service(
            "tensorflow.serving.ModelService",
            ModelService(services.models, administration, services.metrics).methods(),
        ),
        Service(
            "tensorflow.serving.SessionService",
            ServingSessionService(inference, administration, settings).methods(),
        ),
        Service(
            inference_protocol_service.NAME,
            InferenceProtocolService(services.inference_protocol).methods(),
        ),
    )
    if services.host.has_replicas:
        from server.rpc.ray_model_calls import passed_to_replicas  # imports Ray

        calls = tuple(passed_to_replicas(services.host, each) for each in calls)
    return (*calls, *_for_operators(services, [each.name for each in calls]))


def _for_operators(services: RpcServices, names: list[str]) -> tuple[Service, ...]:
    """Return the services that are about the services `names`."""
    lifecycle, models = services.lifecycle, services.models
    health = HealthService(
        models,
        lifecycle,
        names,
        lambda: [
            *lifecycle.not_ready(),
            *models.not_ready(),
            *exhausted_pools(),
            *services.host.not_ready(),
        ],
        services.host.serves,
    )
    reflection = ReflectionService([*names, health_service.NAME, *reflection_service.NAMES])
    return (
        Service(health_service.NAME, health.methods()),
        *(Service(name, reflection.methods()) for name in reflection_service.NAMES),
    )
