"""What can't be deployed is said in a sentence, and nothing is left behind."""

from __future__ import annotations

import pathlib
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from typing import Any

import grpc
import httpx
import pytest
import yaml

import protos as pb
from runtime.errors import UnavailableError
from runtime.ray_api import Node
from server.ray_serve.rpc_ports import check_rpc_ports
from server.settings import Settings
from tests.extras.ray.deployments import (
    HALF_PLUS_TWO,
    Commands,
    Deployment,
    deploy_ray,
    interrupted_at,
    until,
)
from tests.integration.access import Authority
from tests.ray_cluster import RayCluster

LATEST = 10.0  # seconds until the command says that a port is taken
NODES = {"own": "127.0.0.1", "other": "127.0.0.2"}  # addresses by id
MISSING = {"name": "missing", "base_path": "/nonexistent"}


@pytest.fixture
def deployment(
    one_node: RayCluster, tmp_path: pathlib.Path, commands: Commands
) -> Iterator[Deployment]:
    """A model that could be deployed; nothing must be there afterwards."""
    made = Deployment(one_node, tmp_path, [HALF_PLUS_TWO], commands)
    yield made
    made.client.close()
    assert one_node.num_actors() == 0


def is_refused(deployment: Deployment, changes: dict[str, Any], temporary: pathlib.Path) -> str:
    """Deploy settings with changes; the message of the command."""
    for key, value in changes.items():
        old = deployment.settings.get(key)
        is_section = isinstance(old, dict) and isinstance(value, dict)
        deployment.settings[key] = old | value if is_section else value
    done = deployment.deploy()
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    assert deployment.cluster.num_actors() == 0
    assert not list(temporary.glob("runstep-*"))
    return done.stderr


def test_a_model_that_does_not_load(deployment: Deployment, temporary: pathlib.Path) -> None:
    message = is_refused(deployment, {"models": [HALF_PLUS_TWO, MISSING]}, temporary)
    assert "What does not serve: model missing: " in message
    assert "half_plus_two:" not in message.partition("What does not serve")[2]


def test_a_model_that_does_not_load_in_time(
    deployment: Deployment, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    deployment.command = deploy_ray
    done = deployment.deploy("--timeout", "0.1")
    assert done.returncode == 1
    text = "DEADLINE_EXCEEDED: After 0.1 s these do not serve: model half_plus_two: "
    assert text in done.stderr
    assert "; the fronts: " in done.stderr
    assert ": ;" not in done.stderr and not done.stderr.endswith(": \n")
    assert not (tmp_path / ".ray").exists()  # no other cluster was started, which has a token


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_first_deployment_that_is_interrupted(
    deployment: Deployment, tmp_path: pathlib.Path, number: signal.Signals
) -> None:
    deployment.file.write_text(yaml.safe_dump(deployment.settings))
    config = ("--config", str(deployment.file))
    code, told = interrupted_at(number, "Waiting for ", tmp_path, *config)
    assert code == 1
    assert told == (
        "runstep: CANCELLED: The deployment of application runstep was interrupted: "
        "what there was of it is removed\n"
    )
    assert not (tmp_path / ".ray").exists()


@pytest.mark.parametrize("key", ["rest", "grpc"])
def test_a_port_that_is_taken(deployment: Deployment, temporary: pathlib.Path, key: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        began = time.monotonic()
        message = is_refused(deployment, {key: {"port": port}}, temporary).splitlines()[-1]
        assert time.monotonic() - began < LATEST
    expected = {
        "rest": f"Ray Serve cannot listen on 127.0.0.1:{port} for HTTP: on a node the port is in "
        "use, or the address is not the node's (rest.host and rest.port)",
        "grpc": f"No front can serve: Cannot listen on 127.0.0.1:{port} for gRPC: "
        "Address already in use",
    }
    assert message == f"runstep: UNAVAILABLE: {expected[key]}"


def test_a_port_that_another_node_has_free() -> None:
    nodes = [Node(name, address, name, {}, {}) for name, address in NODES.items()]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = Settings(rest={"host": "127.0.0.1"}, grpc={"port": port})  # type: ignore[arg-type]
        check_rpc_ports(settings, nodes, "own")
        with (
            socket.create_server((NODES["other"], port)),
            pytest.raises(
                UnavailableError, match=f"No front can serve: Cannot listen on 127.0.0.1:{port}"
            ),
        ):
            check_rpc_ports(settings, nodes, "own")


def serial_at(port: int, authority: Authority) -> int:
    """The serial number of the certificate at a port."""
    context = ssl.create_default_context(cafile=str(authority.path))
    with (
        socket.create_connection(("127.0.0.1", port), 10) as connection,
        context.wrap_socket(connection, server_hostname="localhost") as wrapped,
    ):
        told = wrapped.getpeercert()
    assert told is not None
    return int(str(told["serialNumber"]), 16)


def test_tls_and_other_ports_than_those_of_ray_serve(
    one_node: RayCluster, tmp_path: pathlib.Path, commands: Commands
) -> None:
    authority = Authority(tmp_path)
    deployment = Deployment(one_node, tmp_path, [HALF_PLUS_TWO], commands, authority)
    deployment.must_deploy()
    rest, rpc = (deployment.settings[key]["port"] for key in ("rest", "grpc"))
    try:
        predict = "/v1/models/half_plus_two:predict"
        answer = deployment.client.post(predict, json={"instances": [1.0]})
        assert answer.json() == {"predictions": [2.5]}
        assert answer.http_version == "HTTP/1.1"
        with pytest.raises(httpx.TransportError):
            httpx.post(f"http://127.0.0.1:{rest}{predict}", json={"instances": [1.0]})
        credentials = grpc.ssl_channel_credentials(authority.path.read_bytes())
        request = pb.serving.GetModelStatusRequest()
        request.model_spec.name = "half_plus_two"
        with grpc.secure_channel(f"localhost:{rpc}", credentials) as channel:
            status = channel.unary_unary("/tensorflow.serving.ModelService/GetModelStatus")
            assert status(request.SerializeToString(), timeout=10)
        # A certificate that is renewed is read by the fronts, but not by Ray Serve's proxy.
        old = serial_at(rest, authority)
        assert serial_at(rpc, authority) == old
        authority.issue("localhost", ip="127.0.0.1")
        until(lambda: serial_at(rpc, authority) != old)
        assert serial_at(rest, authority) == old
        actors = one_node.actors()
        other = authority.issue("other", ip="127.0.0.1")
        tls = {"certificate_file": other.certificate, "key_file": other.key}
        for changes, sentence in (
            ({"rest": {"host": "127.0.0.1", "port": 1}}, "Ray Serve listens on 127.0.0.1:"),
            ({"tls": tls}, "Ray Serve has TLS with"),
            ({"tls": {}}, "and tls.certificate_file is None; its address and its files of TLS"),
        ):
            file = tmp_path / "other.yaml"
            file.write_text(yaml.safe_dump(deployment.settings | changes))
            done = commands("--config", str(file))
            assert done.returncode == 1
            assert sentence in done.stderr
        second = commands("--config", str(deployment.file), "--name", "other")
        assert second.returncode == 1
        assert second.stderr.splitlines()[-1].startswith(
            "runstep: FAILED_PRECONDITION: Ray Serve: "
        )
        assert 'is being used by application "runstep"' in second.stderr
        missing = commands("--address", one_node.address, "--name", "other", "--remove")
        assert missing.returncode == 1
        assert "Ray Serve has no application 'other'; it has runstep" in missing.stderr
        assert one_node.actors() == actors
        assert deployment.client.get("/readyz").status_code == 200
    finally:
        deployment.remove()


def test_nothing_to_remove(one_node: RayCluster, commands: Commands) -> None:
    done = commands("--address", one_node.address, "--remove")
    assert done.returncode == 1
    assert "Ray Serve has no application 'runstep'; it has none" in done.stderr
    assert one_node.num_actors() == 0
