"""Deploy an application of Ray Serve, wait until its models serve, or remove it.

Guarantees: a first deployment that fails leaves nothing: no application, no actor, and no Ray Serve
if it was not there before. After a later one that fails, the replicas from before go on serving.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ray
from ray import serve

from runtime.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    NotFoundError,
    OpError,
)
from runtime.ray_api import (
    NAMESPACE,
    Placement,
    as_ray_error,
    cluster_connection,
    content_of,
    feasible_nodes,
)
from server.addresses import address_of
from server.ray_models.deployment_names import deployment_name
from server.ray_serve.application import build, check_deployable, model_json
from server.ray_serve.reasons import FAILED, failure, refusal, waiting, why
from server.ray_serve.rpc_ports import check_rpc_ports
from server.ray_sessions.cluster_settings import cluster_of, nodes_option
from server.ray_sessions.host_ids import directory_name, host_prefix
from server.settings import Settings
from server.settings_sections.ray_serve import ReplicaRange

_CONTROLLER = ("SERVE_CONTROLLER_ACTOR", "serve")  # the name and namespace of Ray Serve's
_LOOK_SECONDS = 0.2
_FIXED = (
    "its address and its files of TLS can't change while it runs: give the same, or end it "
    "(`serve shutdown`)"
)
_REHEARSAL_SECONDS = 300.0
_REMOVAL_SECONDS = 60.0
_SAY = Callable[[str], None]


def deploy(settings: Settings, name: str, seconds: float, say: _SAY) -> None:
    """Deploy an application, and return when all its models serve.

    Raises the errors of a `ray://` target, InvalidArgumentError if a file of TLS is wrong,
    FailedPreconditionError if the settings or the cluster do not allow it, UnavailableError if
    a port is taken, UnknownError with the reason of each model that does not serve,
    DeadlineExceededError after `seconds`, and CancelledError if SIGINT or SIGTERM comes.
    """
    check_deployable(settings)
    with _interruptible(name) as interruption:
        _check_resources(settings)
        with _joined(settings.ray.address):
            _deploy(settings, name, seconds, say, interruption)


@dataclasses.dataclass
class _Interruption:
    left: str = "nothing was deployed"  # what an interruption leaves


@contextlib.contextmanager
def _interruptible(name: str) -> Iterator[_Interruption]:
    """Let SIGTERM do what SIGINT does; both raise CancelledError."""
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler) if is_main else None
    interruption = _Interruption()
    try:
        yield interruption
    except KeyboardInterrupt:
        raise CancelledError(
            f"The deployment of application {name} was interrupted: {interruption.left}"
        ) from None
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)


def _deploy(
    settings: Settings, name: str, seconds: float, say: _SAY, interruption: _Interruption
) -> None:
    was_running = _is_running()
    if was_running:
        _check_ports(settings)
    else:
        check_rpc_ports(settings, cluster_connection.nodes(), cluster_connection.own_node)
    is_new = not was_running or name not in serve.status().applications
    try:
        if is_new:
            interruption.left = "a part may be left, which `runstep deploy ray --remove` removes"
        else:
            interruption.left = "Ray Serve goes on with the changes that have begun"
            _rehearse(settings, name)
        if not was_running:
            say("Starting Ray Serve")
            _start(settings)
        _run(settings, name, seconds, say)
    except BaseException:
        if is_new:
            _remove(name, is_last=not was_running)
            interruption.left = "what there was of it is removed"
        raise


def remove(address: str, name: str) -> None:
    """Remove an application; after the last one Ray Serve ends too.

    Raises NotFoundError if there is none with this name.
    """
    with _joined(address):
        if not _is_running() or name not in serve.status().applications:
            there = sorted(serve.status().applications) if _is_running() else []
            raise NotFoundError(
                f"Ray Serve has no application {name!r}; it has {', '.join(there) or 'none'}"
            )
        _remove(name, is_last=len(serve.status().applications) == 1)


@contextlib.contextmanager
def _joined(address: str) -> Iterator[None]:
    for logger in ("ray.serve", "ray"):
        logging.getLogger(logger).setLevel(logging.ERROR)
    target = cluster_of(address)
    try:
        cluster_connection.join(target)
        yield
    except ray.exceptions.RayError as error:
        raise as_ray_error(error, "Ray Serve") from None
    finally:
        ray.shutdown()


def _is_running() -> bool:
    try:
        ray.get_actor(*_CONTROLLER)
    except ValueError:
        return False
    return True


# --- what is checked before ---------------------------------------------------------------------


def _check_resources(settings: Settings) -> None:
    """Raise the errors of a `ray://` target, before the cluster is joined.

    Raises FailedPreconditionError if no node can have a replica or a session, or all together have
    no room.
    """
    nodes = cluster_connection.look(cluster_of(settings.ray.address))
    if settings.sessions.enabled:
        feasible_nodes(nodes_option(settings.ray.nodes), nodes)
    room = sum(node.resources.get("CPU", 0.0) for node in nodes)
    wanted = 0.0
    for model in settings.models:
        replicas, cpus = settings.ray.serve.of(model.name)
        try:
            feasible_nodes(Placement(num_cpus=cpus), nodes)
        except FailedPreconditionError as error:
            raise FailedPreconditionError(f"Model {model.name}: {error.message}") from None
        wanted += cpus * (replicas.min if isinstance(replicas, ReplicaRange) else replicas)
    if wanted > room:
        raise FailedPreconditionError(
            f"The replicas of all models take {wanted:g} CPUs of Ray's account; the nodes of the "
            f"cluster have {room:g} together (ray.serve.replicas and ray.serve.cpus)"
        )


def _check_ports(settings: Settings) -> None:
    """Raise FailedPreconditionError if Ray Serve has another HTTP port or other files of TLS.

    It can't change them.
    """
    there = serve.context._get_global_client().http_config
    if (there.host, there.port) != (settings.rest.host, settings.rest.port):
        raise FailedPreconditionError(
            f"Ray Serve listens on {address_of(there.host, there.port)} in this cluster, and "
            f"rest.host and rest.port are {address_of(settings.rest.host, settings.rest.port)}; "
            f"{_FIXED}"
        )
    wanted = _tls_options(settings)
    found = {key: getattr(there, key) for key in ("ssl_certfile", "ssl_keyfile")}
    if {key: value for key, value in found.items() if value is not None} != wanted:
        raise FailedPreconditionError(
            f"Ray Serve has TLS with {found['ssl_certfile'] or 'no certificate'} in this cluster, "
            f"and tls.certificate_file is {wanted.get('ssl_certfile')}; {_FIXED}"
        )


def _rehearse(settings: Settings, name: str) -> None:
    """Make the changes of versions and labels in one replica of each model.

    Raises the error of a model that can't change; all others then undo what they have changed.
    """
    there = serve.status().applications[name].deployments
    for model in settings.models:
        deployment = deployment_name(model.name)
        if deployment not in there or there[deployment].status in FAILED:
            continue
        handle = serve.get_deployment_handle(deployment, name)
        try:
            answer = handle.rehearse.remote(model_json(model)).result(timeout_s=_REHEARSAL_SECONDS)
        except TimeoutError:
            continue  # no replica runs, so that none can be lost
        try:
            content_of(answer)
        except OpError as error:
            raise type(error)(f"Model {model.name}: {error.message}") from None


# --- the deployment -----------------------------------------------------------------------------


def _start(settings: Settings) -> None:
    rest = settings.rest
    http: dict[str, Any] = {
        "host": rest.host,
        "port": rest.port,
        "keep_alive_timeout_s": max(1, round(rest.keep_alive_seconds)),
    }
    try:
        serve.start(proxy_location="EveryNode", http_options=http | _tls_options(settings))
    except ray.exceptions.RayTaskError as error:
        raise refusal(error) from None


def _tls_options(settings: Settings) -> dict[str, str]:
    """Return the options of Ray Serve's proxies for TLS: paths, which each node reads."""
    tls = settings.tls
    if tls.certificate_file is None or tls.key_file is None:
        return {}
    return {
        "ssl_certfile": str(Path(tls.certificate_file).absolute()),
        "ssl_keyfile": str(Path(tls.key_file).absolute()),
    }


def _run(settings: Settings, name: str, seconds: float, say: _SAY) -> None:
    until = time.monotonic() + seconds
    # Ray Serve's own waiting has no limit of time, and `serve.run` always waits.
    target = serve.RunTarget(build(settings, name), name, "/")
    try:
        serve.run_many(
            [target],
            wait_for_ingress_deployment_creation=False,
            wait_for_applications_running=False,
        )
    except Exception as error:
        raise refusal(error) from None
    told = ""
    while (status := _status(name)) != "RUNNING":
        if status == "DEPLOY_FAILED":
            raise failure(settings, _deployments(name), _told(name))
        waits = ", ".join(sorted(waiting(settings, _deployments(name))))
        if waits and waits != told:
            say(f"Waiting for {waits}")
            told = waits
        if time.monotonic() > until:
            reasons = "; ".join(why(settings, _deployments(name))) or "the application"
            raise DeadlineExceededError(f"After {seconds:g} s these do not serve: {reasons}")
        time.sleep(_LOOK_SECONDS)
    handle = serve.get_app_handle(name)
    while waits := handle.not_ready.remote().result(timeout_s=seconds):
        if time.monotonic() > until:
            raise DeadlineExceededError(f"After {seconds:g} s: {'; '.join(waits)}")
        time.sleep(_LOOK_SECONDS)


def _status(name: str) -> str:
    application = serve.status().applications.get(name)
    return "" if application is None else application.status.value


def _told(name: str) -> str:
    application = serve.status().applications.get(name)
    return "the application is gone" if application is None else application.message


def _deployments(name: str) -> dict[str, Any]:
    application = serve.status().applications.get(name)
    return {} if application is None else dict(application.deployments)


# --- removal ------------------------------------------------------------------------------------


def _remove(name: str, *, is_last: bool) -> None:
    """Remove an application and its sessions; `is_last` is whether Ray Serve ends too."""
    if _is_running():
        with contextlib.suppress(TimeoutError):
            serve.delete(name)
        if is_last:
            serve.shutdown()
    _end_sessions(name)


def _end_sessions(application: str) -> None:
    try:
        directory = ray.get_actor(directory_name(application), NAMESPACE)
    except ValueError:
        return  # no front has started it
    with contextlib.suppress(ray.exceptions.RayError):
        ray.get(directory.stop.remote(), timeout=_REMOVAL_SECONDS)
    until = time.monotonic() + _REMOVAL_SECONDS
    while _is_there(application) and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)


def _is_there(application: str) -> bool:
    names = [each["name"] for each in ray.util.list_named_actors(all_namespaces=True)]
    prefix = host_prefix(application)
    return any(each == directory_name(application) or each.startswith(prefix) for each in names)
