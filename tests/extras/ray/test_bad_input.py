"""What is wrong before a session exists: one sentence within ten seconds, and nothing left behind.

A program of its own asks for wrong targets. What there was before each (processes, actors, files in
shared memory) is compared with what there is afterwards.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import grpc
import pytest

from runtime.api import FailedPreconditionError, UnavailableError
from runtime.sessions.ray_cluster import cluster_connection, cluster_probe
from tests.extras.ray.traces import listening, new_traces, traces
from tests.integration.server_process import ROOT
from tests.ray_cluster import RayCluster

SECONDS = 10

PROGRAM = """
import json, sys, time
import tests.ray_cluster
from runtime.api import OpError, SessionOptions, new_session
import ray
for line in sys.stdin:
    started = time.monotonic()
    try:
        new_session(SessionOptions(json.loads(line)))
        told = ["OK", ""]
    except OpError as error:
        told = [error.code.name, error.message]
    print(json.dumps([*told, time.monotonic() - started, ray.is_initialized()]), flush=True)
"""

TOKEN = "a" * 64
# Other clusters of this machine are not found.
FOUND = """
from ray._private import services
services.get_ray_address_from_environment = lambda *_: "{}"
"""


class Program:
    """A program that asks for targets which are wrong."""

    def __init__(self, first: str = "", /, **environment: str) -> None:
        """Start it; `first` is run before it asks."""
        self._process = subprocess.Popen(
            [sys.executable, "-c", first + PROGRAM], cwd=ROOT, env={**os.environ, **environment},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def refused(self, target: str) -> tuple[str, str]:
        """The code and message of the error that it gets."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(target)}\n")
        self._process.stdin.flush()
        code, message, seconds, is_joined = json.loads(self._process.stdout.readline())
        assert seconds < SECONDS
        assert not is_joined
        assert "\n" not in message and len(message) < 600, message
        return code, message

    def end(self) -> None:
        self._process.communicate()
        assert self._process.returncode == 0


@pytest.fixture(scope="module")
def program() -> Iterator[Program]:
    started = Program()
    yield started
    started.end()


def test_nothing_listens(program: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    before = traces()
    code, message = program.refused(f"ray://127.0.0.1:{port}")
    assert code == "UNAVAILABLE"
    assert f"ray://127.0.0.1:{port} can't be reached: Connection refused; expected" in message
    assert new_traces(before) == {}


def test_a_host_without_a_name(program: Program) -> None:
    code, message = program.refused("ray://no-such-host.invalid:6379")
    assert code == "UNAVAILABLE"
    assert "ray://no-such-host.invalid:6379 can't be reached: " in message


@pytest.mark.parametrize("answer", [None, b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_what_listens_is_something_else(program: Program, answer: bytes | None) -> None:
    before = traces()
    with listening(answer) as address:
        code, message = program.refused(f"ray://{address}")
    assert code == "UNAVAILABLE"
    assert f"What listens at ray://{address} is not the GCS of a Ray cluster" in message
    assert new_traces(before) == {}


def test_another_grpc_server(program: Program) -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        code, message = program.refused(f"ray://127.0.0.1:{port}")
        server.stop(None)
    assert code == "UNAVAILABLE"
    assert "is not the GCS of a Ray cluster" in message and "UNIMPLEMENTED" in message


def test_the_port_of_ray_client(program: Program) -> None:
    code, message = program.refused("ray://127.0.0.1:10001")
    assert code == "INVALID_ARGUMENT"
    assert "10001 is the port of Ray Client" in message


@pytest.mark.parametrize(
    ("key", "version", "sentence"),
    [
        ("ray_version", "1.13.0", "runs Ray 1.13.0, this program Ray "),
        ("python_version", "3.8.1", "runs Python 3.8.1, this program Python 3."),
    ],
)
def test_another_version(
    program: Program, one_node: RayCluster, key: str, version: str, sentence: str
) -> None:
    before = traces(one_node)
    with one_node.claiming(**{key: version}):
        code, message = program.refused(f"ray://{one_node.address}")
    assert code == "FAILED_PRECONDITION"
    assert message.startswith(f"The Ray cluster at {one_node.address} {sentence}")
    assert message.endswith("; they must be the same")
    assert new_traces(before, one_node) == {}


@pytest.mark.parametrize(
    ("query", "code", "sentence"),
    [
        ("?num_cpus=64", "FAILED_PRECONDITION", "No node of the Ray cluster has 64 CPU; the nodes"),
        ("?memory=64TiB", "FAILED_PRECONDITION", "has 65536.0 GiB of memory; the nodes have"),
        ("?resources.tpu=1&isolation=actor", "FAILED_PRECONDITION", "has 1 tpu; the nodes have"),
        (
            "?label.zone=b",
            "FAILED_PRECONDITION",
            "has label zone=b; the nodes have 127.0.0.1: 4 CPU",
        ),
        ("?node=10.9.9.9", "NOT_FOUND", "has no node '10.9.9.9'; its nodes are 127.0.0.1 ("),
        ("?num_cpu=1", "INVALID_ARGUMENT", "unknown option num_cpu; the options are"),
    ],
)
def test_what_no_node_has(
    program: Program, one_node: RayCluster, query: str, code: str, sentence: str
) -> None:
    before = traces(one_node)
    told = program.refused(f"ray://{one_node.address}{query}")
    assert told[0] == code
    assert sentence in told[1]
    assert new_traces(before, one_node) == {}


def test_a_cluster_without_a_node_on_this_machine(program: Program, one_node: RayCluster) -> None:
    """A GCS that says what the real one says, but for the sockets of its nodes."""
    from ray.core.generated import gcs_service_pb2, gcs_service_pb2_grpc

    class Versions(gcs_service_pb2_grpc.InternalKVGcsServiceServicer):  # type: ignore[misc]
        def InternalKVGet(self, *_: object) -> object:
            return gcs_service_pb2.InternalKVGetReply(value=b"{}")

    class Nodes(gcs_service_pb2_grpc.NodeInfoGcsServiceServicer):  # type: ignore[misc]
        def GetAllNodeInfo(self, *_: object) -> object:
            reply = gcs_service_pb2.GetAllNodeInfoReply()
            reply.node_info_list.add(node_id=b"n", raylet_socket_name="/elsewhere/raylet")
            return reply

    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads)
        gcs_service_pb2_grpc.add_InternalKVGcsServiceServicer_to_server(Versions(), server)
        gcs_service_pb2_grpc.add_NodeInfoGcsServiceServicer_to_server(Nodes(), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        code, message = program.refused(f"ray://127.0.0.1:{port}")
        server.stop(None)
    assert code == "FAILED_PRECONDITION"
    assert f"No node of the Ray cluster at 127.0.0.1:{port} is on this machine" in message
    assert f"`ray start --address=127.0.0.1:{port}` starts one" in message


def test_auto_without_a_cluster(tmp_path: pathlib.Path) -> None:
    for address, code, sentence in (
        ("127.0.0.1:1", "UNAVAILABLE", "ray://127.0.0.1:1 can't be reached"),
        ("ray://127.0.0.1:10001", "INVALID_ARGUMENT", "10001 is the port of Ray Client"),
    ):
        program = Program(RAY_ADDRESS=address, RAY_TMPDIR=str(tmp_path))
        told = program.refused("ray://auto")
        program.end()
        assert told[0] == code
        assert sentence in told[1]


def test_another_patch_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    major, minor, patch = sys.version_info[:3]
    cluster = {"python_version": f"{major}.{minor}.{patch + 1}"}
    level = "RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL"
    text = f"runs Python {major}.{minor}.{patch + 1}, this program Python {major}.{minor}.{patch};"
    for value in ("patch", None):
        monkeypatch.setenv(level, value) if value else monkeypatch.delenv(level)
        with pytest.raises(FailedPreconditionError, match=re.escape(text)):
            cluster_probe._check_versions("far.example:6379", cluster)
    monkeypatch.setenv(level, "minor")
    cluster_probe._check_versions("far.example:6379", cluster)
    with pytest.raises(FailedPreconditionError, match=f"runs Python {major}.1.1, this program"):
        cluster_probe._check_versions("far.example:6379", {"python_version": f"{major}.1.1"})


def test_a_token_that_the_user_has(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GCS that refuses everyone, and says which token it got."""
    for variable in ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text(TOKEN)

    def refuse(_: object, context: grpc.ServicerContext) -> None:
        told = dict(context.invocation_metadata()).get("authorization")
        context.abort(grpc.StatusCode.UNAUTHENTICATED, f"got\n{told}")

    class Everything(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, _: object) -> grpc.RpcMethodHandler:
            return grpc.unary_unary_rpc_method_handler(refuse)

    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads, handlers=(Everything(),))
        address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        refused = f"The Ray cluster at {address} refuses this program: got "
        hint = "; RAY_AUTH_MODE=token lets the program send its token"
        home = {"HOME": str(tmp_path)}
        given = (address, f"None{hint}")
        for program, asked in (
            (Program(FOUND.format(address), **home), (given, ("auto", f"Bearer {TOKEN}"))),
            (Program(RAY_ADDRESS=address, **home), (("auto", f"None{hint}"),)),
        ):
            for target, told in asked:
                answer = program.refused(f"ray://{target}")
                assert answer == ("PERMISSION_DENIED", refused + told)
            program.end()
        server.stop(None)


def test_a_token_that_the_user_has_not(tmp_path: pathlib.Path) -> None:
    with listening(None) as address:
        program = Program(HOME=str(tmp_path), RAY_AUTH_MODE="token")
        code, message = program.refused(f"ray://{address}")
        program.end()
    assert code == "FAILED_PRECONDITION"
    assert message.startswith("RAY_AUTH_MODE is token, and there is no token: expected one in ~/.")


def test_a_name_that_is_not_resolved_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def slow(*_: object, **__: object) -> list[object]:
        released.wait(SECONDS)
        return []

    monkeypatch.setattr(cluster_probe.socket, "getaddrinfo", slow)
    monkeypatch.setattr(cluster_probe, "CONNECT_SECONDS", 0.01)
    text = "ray://far.example:6379 can't be reached: its name is not resolved within 0.01 s; "
    with pytest.raises(UnavailableError, match=re.escape(text)):
        cluster_probe.check_reachable("far.example:6379")
    released.set()


@pytest.mark.parametrize("host", ["a..b", "a" * 64, f"{'a' * 64}.example"])
def test_what_is_not_the_name_of_a_host(host: str, capfd: pytest.CaptureFixture[str]) -> None:
    text = f"ray://{host}:6379 can't be reached: '{host}' is not the name of a host; expected the"
    with pytest.raises(UnavailableError, match=re.escape(text)):
        cluster_probe.check_reachable(f"{host}:6379")
    assert not cluster_connection._is_same(f"{host}:6379", "127.0.0.1:6379")
    assert capfd.readouterr().err == ""


def test_every_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = {"two.example": ["127.0.0.2", "127.0.0.1"], "none.example": []}

    def resolved(host: str, port: int, *_: object, **__: object) -> list[object]:
        kind = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
        return [(*kind, (address, port)) for address in addresses.get(host, [host])]

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(cluster_probe.socket, "getaddrinfo", resolved)
        cluster_probe.check_reachable(f"two.example:{port}")
        with pytest.raises(UnavailableError, match="its name has no address"):
            cluster_probe.check_reachable(f"none.example:{port}")


def test_a_cluster_that_ray_looks_for_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def rewritten(_: str) -> str:
        return "127.0.0.2"

    monkeypatch.setattr(cluster_probe.services, "resolve_ip_for_localhost", rewritten)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        text = (
            f"The Ray cluster at {address} listens on that address only, and Ray replaces it by "
            "127.0.0.2: set RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 in this program"
        )
        with pytest.raises(FailedPreconditionError, match=re.escape(text)):
            cluster_probe.probe(address)
