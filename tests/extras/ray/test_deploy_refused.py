"""What can't be deployed is said in a sentence, and nothing is left behind."""

from __future__ import annotations

import pathlib
import socket
import ssl
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import grpc
import httpx
import pytest
import yaml

import protos as pb
from tests.extras.ray.conftest import QUICK
from tests.extras.ray.deployments import HALF_PLUS_TWO, Deployment, deploy_ray, until
from tests.integration.access import Authority
from tests.ray_cluster import RayCluster, ray_cluster

MISSING = {"name": "missing", "base_path": "/nonexistent"}
EARLY = 15.0  # seconds, of which the interpreter and its imports take some


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[RayCluster]:
    with ray_cluster(num_cpus=2, _system_config=QUICK) as started:
        yield started


def left_behind() -> set[str]:
    return {path.name for path in pathlib.Path(tempfile.gettempdir()).glob("runstep-*")}


def is_refused(cluster: RayCluster, folder: pathlib.Path, changes: dict[str, Any]) -> str:
    """Deploy settings with changes; the message of the command."""
    deployment = Deployment(cluster, folder, [HALF_PLUS_TWO])
    for key, value in changes.items():
        old = deployment.settings.get(key)
        is_section = isinstance(old, dict) and isinstance(value, dict)
        deployment.settings[key] = old | value if is_section else value
    before = left_behind()
    done = deployment.deploy()
    deployment.client.close()
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    assert cluster.num_actors() == 0
    assert left_behind() == before
    return done.stderr


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"ray": {"address": "127.0.0.1:1"}}, "127.0.0.1:1 can't be reached"),
        ({"ray": {"address": "127.0.0.1:10001"}}, "the port of Ray Client"),
        ({"ray": {"serve": {"cpus": 3}}},
         "Model half_plus_two: No node of the Ray cluster has 3 CPU"),
        ({"ray": {"serve": {"replicas": 3}}},
         "The replicas of all models take 3 CPUs of Ray's account; the nodes of the cluster have"),
        ({"ray": {"serve": {"replicas": 0}}}, "replicas must be at least 1, got 0"),
        ({"models": []}, "can't have no models"),
        ({"processes": 2}, "can't have processes above 1"),
        ({"rest": {"port": "free"}}, "can't have rest.port 0 or free"),
        ({"grpc": {"port": "free"}}, "can't have grpc.port free"),
        ({"model_config_file": "models.config"}, "can't have model_config_file"),
        ({"tls": {"certificate_file": "/nonexistent", "key_file": "/nonexistent"}},
         "tls.certificate_file, key_file or client_ca_file is wrong"),
    ],
)  # fmt: skip
def test_settings_and_clusters(
    own_cluster: RayCluster, tmp_path: pathlib.Path, changes: dict[str, Any], sentence: str
) -> None:
    began = time.monotonic()
    assert sentence in is_refused(own_cluster, tmp_path, changes)
    assert time.monotonic() - began < EARLY


@pytest.mark.parametrize("versions", [{"ray_version": "1.0.0"}, {"python_version": "3.8.1"}])
def test_other_versions(
    own_cluster: RayCluster, tmp_path: pathlib.Path, versions: dict[str, str]
) -> None:
    with own_cluster.claiming(**versions):
        message = is_refused(own_cluster, tmp_path, {})
    assert f"runs {'Ray' if 'ray_version' in versions else 'Python'}" in message


def test_a_model_that_does_not_load(own_cluster: RayCluster, tmp_path: pathlib.Path) -> None:
    message = is_refused(own_cluster, tmp_path, {"models": [HALF_PLUS_TWO, MISSING]})
    assert "What does not serve: model missing: " in message
    assert "half_plus_two:" not in message.partition("What does not serve")[2]


def test_a_model_that_does_not_load_in_time(
    own_cluster: RayCluster, tmp_path: pathlib.Path
) -> None:
    deployment = Deployment(own_cluster, tmp_path, [HALF_PLUS_TWO])
    done = deployment.deploy("--timeout", "0.1")
    deployment.client.close()
    assert done.returncode == 1
    assert "DEADLINE_EXCEEDED: After 0.1 s" in done.stderr
    assert own_cluster.num_actors() == 0


@pytest.mark.parametrize("key", ["rest", "grpc"])
def test_a_port_that_is_taken(own_cluster: RayCluster, tmp_path: pathlib.Path, key: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = is_refused(own_cluster, tmp_path, {key: {"port": port}})
    assert str(port) in message


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
    own_cluster: RayCluster, tmp_path: pathlib.Path
) -> None:
    authority = Authority(tmp_path)
    deployment = Deployment(own_cluster, tmp_path, [HALF_PLUS_TWO], authority)
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
        actors = own_cluster.actors()
        other = authority.issue("other", ip="127.0.0.1")
        tls = {"certificate_file": other.certificate, "key_file": other.key}
        for changes, sentence in (
            ({"rest": {"host": "127.0.0.1", "port": 1}}, "Ray Serve listens on 127.0.0.1:"),
            ({"tls": tls}, "Ray Serve has TLS with"),
            ({"tls": {}}, "and tls.certificate_file is None; its address and its files of TLS"),
        ):
            file = tmp_path / "other.yaml"
            file.write_text(yaml.safe_dump(deployment.settings | changes))
            done = deploy_ray("--config", str(file))
            assert done.returncode == 1
            assert sentence in done.stderr
        missing = deploy_ray("--address", own_cluster.address, "--name", "other", "--remove")
        assert missing.returncode == 1
        assert "Ray Serve has no application 'other'; it has runstep" in missing.stderr
        assert own_cluster.actors() == actors
        assert deployment.client.get("/readyz").status_code == 200
    finally:
        deployment.remove()


def test_nothing_to_remove(own_cluster: RayCluster) -> None:
    done = deploy_ray("--address", own_cluster.address, "--remove")
    assert done.returncode == 1
    assert "Ray Serve has no application 'runstep'; it has none" in done.stderr
    assert own_cluster.num_actors() == 0
