"""create_app(): the services of a server, its application and the lifespan on one page.

An HTTP request passes RequestMiddleware, for most calls the routers of `server/framework`, a
resource (`server/rest`) and its codec. From there a step goes to `server/steps`, and any other call
to a service (`server/sessions` or `server/models`). Both continue to the runtime.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.routing import Router
from starlette.types import ASGIApp

from runtime.api import process_account, set_tensor_limit
from server.access.access import Access
from server.access.reloading import reload_keys
from server.codec.body_process import BodyProcesses
from server.codec.scalars import NonFinite
from server.connections.connection_limits import ConnectionLimits, Connections
from server.connections.plain_requests import AnswerPlain
from server.host import ALONE, Host
from server.inference_protocol.service import InferenceProtocol
from server.lifecycle import Lifecycle
from server.memory_in_flight import MemoryInFlight
from server.metrics import Metrics
from server.middleware import PathPattern, RequestMiddleware
from server.models.administration import Administration
from server.models.freed_memory import trim_when_idle
from server.models.inference_service import InferenceService
from server.models.load_metrics import LoadMetrics
from server.models.manager import ModelManager
from server.models.manager_options import manager_options
from server.models.model_batching import ModelBatching
from server.models.model_config import from_settings
from server.models.model_config_file import ModelConfigFile
from server.models.poller import ModelPoller
from server.models.request_log import RequestLog
from server.models.saved_model_loading import SavedModelLoading
from server.models.serving_metrics import ServingMetrics
from server.rest.health import HEALTH_PATH, Health, HealthCalls
from server.rest.inference_protocol.api import PROTOCOL_PATH, InferenceProtocolApi
from server.rest.late_app import LateApp
from server.rest.models import MODELS_PATH, ModelsApi, ModelsOptions
from server.rest.session_steps import STEPS_PATH, SessionSteps, StepCalls
from server.runtime_metrics import exhausted_pools
from server.sessions.clock import Clock
from server.sessions.folder_sessions import FolderSessions
from server.sessions.model_sessions import ModelSessions
from server.sessions.service import SessionService
from server.settings import Settings
from server.settings_sections.ports import RestSettings
from server.steps.batching.batch_metrics import BatchMetrics
from server.steps.batching.batch_scheduler import BatchScheduler
from server.steps.priorities import Priorities
from server.steps.step_runner import StepRunner


@dataclasses.dataclass(frozen=True, slots=True)
class Services:
    """The services of one server, which are independent of the transport.

    The REST and gRPC endpoints call them.
    """

    settings: Settings
    priorities: Priorities
    metrics: Metrics
    lifecycle: Lifecycle
    access: Access
    memory: MemoryInFlight
    models: ModelManager
    inference: InferenceService
    sessions: SessionService
    administration: Administration
    request_log: RequestLog
    inference_protocol: InferenceProtocol
    host: Host = ALONE
    bodies: BodyProcesses = dataclasses.field(default_factory=BodyProcesses)
    config_file: ModelConfigFile | None = None


def make_services(settings: Settings, clock: Clock | None = None, host: Host = ALONE) -> Services:
    """Make the services; models are not loaded here but when the application starts.

    `clock` measures the leases of sessions; by default it is the system's. `host` has the other
    processes of the server.

    Raises InvalidArgumentError if the settings do not fit the process's thread pools, or a file of
    keys is wrong.
    """
    set_tensor_limit(settings.sessions.max_tensor_bytes)
    process_account.set_limits(
        settings.memory.max_process_bytes, settings.memory.refuse_above_bytes, host.processes
    )
    priorities = Priorities(settings)
    metrics = Metrics()
    load_metrics = LoadMetrics()
    metrics.registry.register(load_metrics)
    path = settings.model_config_file
    config_file = None if path is None else ModelConfigFile(Path(path), host.model_config)
    configured = (
        from_settings(settings.models) if config_file is None else config_file.models_in_force()
    )
    batch_metrics = BatchMetrics()
    batching = ModelBatching(settings, BatchScheduler(batch_metrics))
    models = ModelManager(
        configured,
        SavedModelLoading(settings).load,
        priorities.load_pool,
        manager_options(settings.model_loading, batching.batches_of, load_metrics),
    )
    runner = StepRunner(priorities, metrics, settings.rest.max_answer_bytes)
    sessions = SessionService(
        settings,
        runner,
        metrics,
        open_model=ModelSessions(models).open,
        open_folder=FolderSessions(
            settings.sessions.model_folders, settings.sessions.allowed_paths, load_metrics
        ).open,
        clock=clock,
        host=host,
    )
    serving_metrics = ServingMetrics(models.is_configured)
    metrics.registry.register(serving_metrics)
    metrics.registry.register(batch_metrics)
    request_log = RequestLog(models.request_log_of)
    metrics.registry.register(request_log)
    inference = InferenceService(models, runner, serving_metrics, request_log)
    access = Access(
        settings,
        sessions.owner_of,
        model_folders=lambda: [config.base_path for config in models.configs()],
        cells=host.cells,
    )
    metrics.watch_refusals(access.refusals)
    memory = MemoryInFlight(settings.rest.max_bytes_in_flight)
    administration, lifecycle = Administration(models, settings, host), Lifecycle()
    return Services(
        settings, priorities, metrics, lifecycle, access, memory, models, inference, sessions,
        administration, request_log,
        InferenceProtocol(inference, lifecycle, administration, host.not_ready),
        host,
        config_file=config_file,
    )  # fmt: skip


def create_app(services: Services) -> RequestMiddleware:
    """Make the ASGI application of one server.

    RequestMiddleware wraps the framework and is not one of its middlewares. Therefore a prediction
    passes none of the framework's layers, which take as long as the prediction itself. The
    framework is imported at the first request that it routes; `prepare` does so before.
    """
    settings, sessions = services.settings, services.sessions
    steps = SessionSteps(sessions, settings, services.bodies)
    models_api = ModelsApi(services.inference, models_options(settings.rest), services.bodies)
    protocol_api = InferenceProtocolApi(services.inference_protocol, settings.rest)
    answers_now: dict[str, tuple[str, AnswerPlain]] = {"infer": ("infer", protocol_api.infer_now)}
    if not (settings.rest.strict_tensorflow_serving or settings.rest.cors):
        answers_now["predict"] = ("predict", models_api.predict_now)
        answers_now["run"] = ("run_session", steps.run_now)
    health = Health(
        services.lifecycle,
        lambda: [*services.models.not_ready(), *exhausted_pools()],
        services.host,
    )

    def make() -> ASGIApp:
        from server.framework.framework_app import make_framework_app

        return make_framework_app(
            services.access, services.administration, services.metrics, services.lifecycle,
            sessions, services.inference, services.priorities, settings,
            host=services.host, health=health, steps=steps, models_api=models_api,
        )  # fmt: skip

    framework = LateApp(make)
    # The framework's lifespan would have to wait for its import.
    app = Router(default=framework, lifespan=lambda _: lifespan(services), redirect_slashes=False)
    elsewhere: tuple[tuple[PathPattern, ASGIApp], ...] = ()
    if services.host.has_others:
        from server.rest.sessions_elsewhere import shortcuts_of

        elsewhere = shortcuts_of(services.host, app)
    elif services.host.is_on_ray:
        from server.rest.ray_session_calls import ray_shortcuts_of  # imports Ray

        elsewhere = ray_shortcuts_of(services.host, app)
    models_app: ASGIApp = models_api
    protocol_app: ASGIApp = protocol_api
    if services.host.has_replicas:
        from server.rest.ray_model_calls import ModelCalls, ProtocolCalls  # imports Ray

        rest = settings.rest
        models_app = ModelCalls(
            services.host, models_api, rest.timeout_ms, strict=rest.strict_tensorflow_serving
        )
        protocol_app = ProtocolCalls(services.host, protocol_api, rest.timeout_ms)
    return RequestMiddleware(
        app,
        prepare=framework.prepare,
        shortcuts=(
            *elsewhere,
            (HEALTH_PATH, HealthCalls(health, app)),
            (MODELS_PATH, models_app),
            (STEPS_PATH, StepCalls(steps, app)),
            (PROTOCOL_PATH, protocol_app),
        ),
        answers_now=answers_now,
        access=services.access,
        connections=Connections(connection_limits(settings.rest)),
        memory=services.memory,
        lifecycle=services.lifecycle,
        metrics=services.metrics,
        max_body_bytes=settings.rest.max_body_bytes,
        access_log=settings.rest.access_log,
    )


def connection_limits(rest: RestSettings) -> ConnectionLimits:
    """Return the limits of connections."""
    return ConnectionLimits(
        max_connections=rest.max_connections,
        max_header_bytes=rest.max_header_bytes,
        max_headers=rest.max_headers,
        header_seconds=rest.header_seconds,
        body_seconds=rest.body_seconds,
        keep_alive_seconds=rest.keep_alive_seconds,
    )


def models_options(rest: RestSettings) -> ModelsOptions:
    """Return the options of `/v1/models`.

    If the setting `non_finite` is "string", which is for sessions, models write bare NaN tokens.
    """
    return ModelsOptions(
        timeout_ms=rest.timeout_ms,
        max_body_bytes=rest.max_body_bytes,
        strict=rest.strict_tensorflow_serving,
        cors=rest.cors,
        non_finite=NonFinite.TOKEN if rest.non_finite == "string" else NonFinite(rest.non_finite),
    )


@contextlib.asynccontextmanager
async def lifespan(services: Services) -> AsyncIterator[None]:
    """Start the model poller, and the tasks that end leases, read keys and make the changes of
    models that other processes make; close all at the end.
    """
    settings = services.settings
    poller = ModelPoller(
        services.models,
        settings.model_poll_seconds,
        services.config_file,
        settings.model_config_file_poll_seconds,
    )
    poller.start()
    tasks = [
        asyncio.create_task(services.sessions.reap_forever()),
        asyncio.create_task(reload_keys(services.access)),
        asyncio.create_task(trim_when_idle(services.lifecycle)),
        asyncio.create_task(services.host.follow_changes(services.administration.apply)),
    ]
    services.lifecycle.begin_serving()
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await services.sessions.close_all()
        await asyncio.to_thread(services.administration.shutdown)
        await asyncio.to_thread(poller.stop)
        await asyncio.to_thread(services.models.stop)
        await asyncio.to_thread(services.request_log.close)
        await asyncio.to_thread(services.bodies.close)
        services.priorities.shutdown()
