"""ClusterProbe: asks the GCS of a cluster what it is, before this program joins the cluster.

Ray's own connection waits for minutes for a GCS that does not answer, joins before it compares
versions, and has the cluster start workers for the program. A probe leaves nothing behind.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import ray
from ray._private import services
from ray.core.generated import gcs_service_pb2, gcs_service_pb2_grpc

from runtime.foundation.errors import (
    FailedPreconditionError,
    OpError,
    PermissionDeniedError,
    UnavailableError,
)
from runtime.sessions.ray_cluster.nodes import Node
from runtime.sessions.ray_cluster.ray_target import split_address

CONNECT_SECONDS = 3.0
CALL_SECONDS = 4.0  # for both calls together
_LONGEST = 200  # characters of gRPC's own text in a message
_METADATA = {"namespace": b"cluster", "key": b"CLUSTER_METADATA"}
_USE_TLS = "RAY_USE_TLS"
_AUTH_MODE = "RAY_AUTH_MODE"
_PYTHON_LEVEL = "RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL"  # "patch", if it is not set
_KEEPS_LOCALHOST = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
# In the order of the arguments of `grpc.ssl_channel_credentials`.
_TLS_FILES = ("RAY_TLS_CA_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_SERVER_CERT")
_ALIVE = 0  # GcsNodeInfo.GcsNodeState


def check_reachable(address: str) -> None:
    """Raise UnavailableError if nothing accepts connections at `HOST:PORT` in CONNECT_SECONDS."""
    until = time.monotonic() + CONNECT_SECONDS
    reason: OSError | None = None
    try:
        for found in _resolved(*split_address(address)):
            try:
                socket.create_connection(found, _left(until)).close()
                return
            except OSError as error:
                reason = error
    except OSError as error:
        reason = error
    told = "its name has no address" if reason is None else reason.strerror or reason
    raise UnavailableError(
        f"ray://{address} can't be reached: {told}; expected the GCS of a Ray cluster "
        "(`ray start --head` prints its address)"
    )


def _resolved(host: str, port: int) -> list[tuple[str, int]]:
    """Return the addresses of a name; the system's own limit of time is far longer."""
    answers: list[list[tuple[str, int]] | OSError] = []

    def resolve() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answers.append([(str(info[4][0]), port) for info in found])
        except OSError as error:
            answers.append(error)
        except ValueError:  # such as UnicodeError: an empty label, or one of over 63 characters
            answers.append(OSError(errno.EINVAL, f"{host!r:.80} is not the name of a host"))

    thread = threading.Thread(target=resolve, name="ray_address", daemon=True)
    thread.start()
    thread.join(CONNECT_SECONDS)
    if not answers:
        raise TimeoutError(
            errno.ETIMEDOUT, f"its name is not resolved within {CONNECT_SECONDS:g} s"
        )
    if isinstance(answers[0], OSError):
        raise answers[0]
    return answers[0]


def probe(address: str) -> list[Node]:
    """Return the nodes that are alive of the cluster whose GCS is at `address`.

    Raises UnavailableError if no GCS answers there, PermissionDeniedError if it refuses this
    program, and FailedPreconditionError if it is of another version of Ray or Python, if no node
    of the cluster is on this machine, if certificates for the cluster are missing, or if Ray would
    not find it because it listens on 127.0.0.1 only. Takes at most twice CONNECT_SECONDS, and
    CALL_SECONDS.
    """
    check_reachable(address)
    _check_rewritten(address)
    until = time.monotonic() + CALL_SECONDS
    with _channel(address) as channel:
        try:
            _check_versions(address, _cluster_versions(channel, until))
            nodes = _nodes(channel, until)
        except grpc.RpcError as error:
            raise _no_gcs(address, error) from None
        except ray.exceptions.RayError:  # AuthenticationError, which an older Ray has not
            raise FailedPreconditionError(
                f"{_AUTH_MODE} is token, and there is no token: expected one in ~/.ray/auth_token, "
                "RAY_AUTH_TOKEN, or the file that RAY_AUTH_TOKEN_PATH names"
            ) from None
    if not any(os.path.exists(node.socket) for node in nodes):
        raise FailedPreconditionError(
            f"No node of the Ray cluster at {address} is on this machine; a program joins a "
            f"cluster through a node beside it: `ray start --address={address}` starts one"
        )
    return nodes


def _check_rewritten(address: str) -> None:
    """Raise FailedPreconditionError if Ray would look for a cluster of 127.0.0.1 elsewhere."""
    host, port = split_address(address)
    rewritten = services.resolve_ip_for_localhost(host)
    if rewritten == host:
        return
    try:
        check_reachable(f"{rewritten}:{port}")
    except UnavailableError:
        raise FailedPreconditionError(
            f"The Ray cluster at {address} listens on that address only, and Ray replaces it by "
            f"{rewritten}: set {_KEEPS_LOCALHOST}=0 in this program, as in the cluster's processes"
        ) from None


def _channel(address: str) -> grpc.Channel:
    """Return a channel as Ray's own are: with TLS, and this program's certificate, if Ray's are."""
    options = (("grpc.enable_http_proxy", 0),)
    if os.environ.get(_USE_TLS, "0").lower() not in ("1", "true"):
        return _with_token(grpc.insecure_channel(address, options=options))
    contents = []
    for variable in _TLS_FILES:
        path = os.environ.get(variable, "")
        try:
            contents.append(Path(path).read_bytes())
        except OSError as error:
            raise FailedPreconditionError(
                f"{_USE_TLS} is set, and the file {path!r} of {variable} can't be read: "
                f"{error.strerror}"
            ) from None
    credentials = grpc.ssl_channel_credentials(*contents)
    return _with_token(grpc.secure_channel(address, credentials, options=options))


def use_own_token() -> None:
    """Let this program send the user's token, if there is one and RAY_AUTH_MODE is not set.

    `ray start --head` and `ray.init("auto")` do so, but never with an address that is given.
    """
    try:
        from ray._private.authentication import authentication_token_setup
    except ImportError:  # an older Ray, whose clusters have no tokens
        return
    name = "maybe_enable_token_auth_if_token_available"
    enable = getattr(authentication_token_setup, name, None)
    if enable is not None:  # Ray 2.60 has it
        enable(warn_if_disabled=False)


def _has_token() -> bool:
    """Return whether this program sends a token."""
    try:
        from ray._private.authentication import authentication_utils
    except ImportError:
        return False
    return bool(authentication_utils.is_token_auth_enabled())


def _with_token(channel: grpc.Channel) -> grpc.Channel:
    """Return a channel that sends this program's token if RAY_AUTH_MODE says that there is one."""
    if not _has_token():
        return channel
    from ray._private.authentication import grpc_authentication_client_interceptor

    own = grpc_authentication_client_interceptor.SyncAuthenticationMetadataClientInterceptor()
    return grpc.intercept_channel(channel, own)


def _cluster_versions(channel: grpc.Channel, until: float) -> dict[str, str]:
    stub = gcs_service_pb2_grpc.InternalKVGcsServiceStub(channel)
    request = gcs_service_pb2.InternalKVGetRequest(**_METADATA)
    value = stub.InternalKVGet(request, timeout=_left(until)).value
    try:
        told = json.loads(value)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _check_versions(address: str, cluster: dict[str, str]) -> None:
    python = ".".join(str(part) for part in sys.version_info[:3])  # as Ray tells it
    mine = {"ray_version": ray.__version__, "python_version": python}
    patch_may_differ = os.environ.get(_PYTHON_LEVEL) == "minor"
    for key, what in (("ray_version", "Ray"), ("python_version", "Python")):
        theirs = str(cluster.get(key, mine[key]))
        is_same = theirs == mine[key]
        if key == "python_version" and patch_may_differ:
            is_same = _minor(theirs) == _minor(mine[key])
        if not is_same:
            raise FailedPreconditionError(
                f"The Ray cluster at {address} runs {what} {theirs}, this program "
                f"{what} {mine[key]}; they must be the same"
            )


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]


def _nodes(channel: grpc.Channel, until: float) -> list[Node]:
    stub = gcs_service_pb2_grpc.NodeInfoGcsServiceStub(channel)
    request = gcs_service_pb2.GetAllNodeInfoRequest()
    told: Sequence[Any] = stub.GetAllNodeInfo(request, timeout=_left(until)).node_info_list
    return [
        Node(
            info.node_id.hex(),
            info.node_manager_address,
            info.node_name,
            dict(info.resources_total),
            dict(info.labels),
            info.raylet_socket_name,
        )
        for info in told
        if info.state == _ALIVE
    ]


def _left(until: float) -> float:
    return max(until - time.monotonic(), 0.001)


def _no_gcs(address: str, error: grpc.RpcError) -> OpError:
    code = error.code()
    if code in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
        hint = "" if _has_token() else f"; {_AUTH_MODE}=token lets the program send its token"
        return PermissionDeniedError(
            f"The Ray cluster at {address} refuses this program: {_details(error)}{hint}"
        )
    return UnavailableError(
        f"What listens at ray://{address} is not the GCS of a Ray cluster, does not answer, or "
        f"differs in {_USE_TLS} ({code.name}: {_details(error)})"
    )


def _details(error: grpc.RpcError) -> str:
    return " ".join(str(error.details()).split())[:_LONGEST]
