"""The application of Ray Serve: one deployment for each model, and the fronts.

What a change of the configuration does to running replicas: the number of replicas, and the
versions and labels of models, change without a restart; anything else has another `version`, so
that Ray Serve starts new replicas and then ends the old ones.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from typing import Any

from ray import serve

from runtime.errors import FailedPreconditionError
from server.package import package_version
from server.ray_models.deployment_names import FRONT, deployment_name
from server.ray_serve.front import Front, FrontApplication
from server.ray_serve.model_replica import ModelReplica
from server.settings import ModelSettings, Settings
from server.settings_paths import with_absolute_paths
from server.settings_sections.ray_serve import ReplicaRange
from server.tls import read_tls_files, rpc_tls

# What a replica changes without a restart, apart from the name.
VERSION_KEYS = ("version_policy", "latest_versions", "specific_versions", "version_labels")
_START_ATTEMPTS = 2  # of a replica, until its deployment has failed
_SHUTDOWN_SECONDS = 10.0  # beyond the time in which requests end
_FRONT_REQUESTS = 10_000
_NO_GRPC = {"port": 0, "background_port": 0, "socket_path": None, "tensorflow_port": None}
_SURGE = "max_surge_percent"  # new replicas start before old ones end; Ray 2.60 has it


def check_deployable(settings: Settings) -> None:
    """Raise FailedPreconditionError if the settings are not possible for an application.

    Raises InvalidArgumentError if a certificate or its key is wrong.
    """
    read_tls_files(settings.tls)
    rpc_tls(settings).read()
    wrong = {
        "model_config_file: give the models in models": settings.model_config_file is not None,
        "processes above 1: ray.serve.replicas takes its place": settings.processes != 1,
        "rest.port 0 or free: every node must have the same": not _is_number(settings.rest.port),
        "grpc.port free: every node must have the same": settings.grpc.port == "free",
        "grpc.socket_path: fronts may be on any node": settings.grpc.socket_path is not None,
        "tls.client_ca_file: Ray Serve's proxy does not tell who a client is": (
            settings.tls.client_ca_file is not None
        ),
    }
    for text, is_wrong in wrong.items():
        if is_wrong:
            raise FailedPreconditionError(f"An application of Ray Serve can't have {text}")
    if not settings.models:
        raise FailedPreconditionError(
            "An application of Ray Serve needs a model: expected a name and a base_path in models, "
            "got an empty list"
        )


def _is_number(port: int | str) -> bool:
    return isinstance(port, int) and port != 0


def build(settings: Settings, name: str) -> Any:
    """Return the application, as `serve.run` takes it."""
    plain = plain_settings(settings, name)
    replicas = [_model(settings, plain, model) for model in settings.models]
    front = plain | {"placement": "ray" if settings.sessions.enabled else "local"}
    models = [model_json(model) for model in settings.models]
    options = {
        "num_replicas": settings.ray.serve.fronts,
        "max_ongoing_requests": _FRONT_REQUESTS,
        "user_config": {"models": models},
        "ray_actor_options": {"num_cpus": 0},
    }
    program = serve.ingress(FrontApplication())(Front)
    return _deployment(program, FRONT, settings, front, options).bind(front, replicas)


def _model(settings: Settings, plain: dict[str, Any], model: ModelSettings) -> Any:
    limits = settings.ray.serve
    replicas, cpus = limits.of(model.name)
    given = plain | {
        "placement": "local",
        "grpc": plain["grpc"] | _NO_GRPC,
        "ray": {},
    }
    options: dict[str, Any] = {
        "max_ongoing_requests": limits.max_ongoing,
        "max_queued_requests": limits.max_queued,
        "user_config": model_json(model),
        "ray_actor_options": {"num_cpus": cpus},
    }
    if isinstance(replicas, ReplicaRange):
        options["autoscaling_config"] = {
            "min_replicas": replicas.min,
            "max_replicas": replicas.max,
            "target_ongoing_requests": replicas.queued_per_replica,
            "upscale_delay_s": replicas.more_after_seconds,
            "downscale_delay_s": replicas.fewer_after_seconds,
        }
    else:
        options["num_replicas"] = replicas
    fixed = {key: value for key, value in model_json(model).items() if key not in VERSION_KEYS}
    name = deployment_name(model.name)
    return _deployment(ModelReplica, name, settings, [given, fixed], options).bind(given)


def _deployment(
    program: type, name: str, settings: Settings, fixed: Any, options: dict[str, Any]
) -> Any:
    """Return a deployment; replicas are replaced if `fixed` differs from that of the last one."""
    told = json.dumps([package_version(), fixed], sort_keys=True).encode()
    if _SURGE in inspect.signature(serve.deployment).parameters:
        options = options | {_SURGE: 100}
    deployment = serve.deployment(
        name=name,
        graceful_shutdown_timeout_s=settings.rest.drain_seconds + _SHUTDOWN_SECONDS,
        max_constructor_retry_count=_START_ATTEMPTS,
        logging_config={"enable_access_log": settings.rest.access_log},
        **options,
    )(program)
    return deployment.options(version=hashlib.sha256(told).hexdigest()[:16], _internal=True)


def plain_settings(settings: Settings, name: str) -> dict[str, Any]:
    """Return the settings of an application without its models, as JSON."""
    given = with_absolute_paths(settings.model_dump(mode="json"))
    del given["models"]
    given["console"] = {"enabled": False}
    given["ray"] = given["ray"] | {"address": "auto", "application": name, "serve": {}}
    return given


def model_json(model: ModelSettings) -> dict[str, Any]:
    """Return the settings of a model; a replica runs in another folder than this process."""
    return with_absolute_paths(model.model_dump(mode="json"))
