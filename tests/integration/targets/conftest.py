"""The targets: this process, one server process over gRPC and over HTTP, and a node of Ray.

`--master grpc://host:port` runs the tests against another master service instead, TensorFlow's own
for example (tools/check/tensorflow_server.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.server_process import ServerProcess
from tests.integration.targets.target import Target
from tests.ray_cluster import HAS_RAY, WITHOUT_RAY, RayCluster, ray_cluster

OURS = ("direct", "grpc", "http", "ray")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--master", help="grpc://host:port of the only target to test")
    parser.addoption("--target", choices=OURS, help="the only one of our targets to test")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" in metafunc.fixturenames:
        ours = getattr(metafunc.module, "TARGETS", OURS)
        only = metafunc.config.getoption("--target", None)
        if only is not None:
            ours = tuple(name for name in ours if name == only)
        names = ("tensorflow",) if metafunc.config.getoption("--master", None) else ours
        metafunc.parametrize("target", names, indirect=True)


@pytest.fixture(scope="package")
def server() -> Iterator[ServerProcess]:
    process = ServerProcess("--config=tests/integration/targets/server.yaml")
    try:
        yield process
    finally:
        process.end()


@pytest.fixture(scope="package")
def cluster() -> Iterator[RayCluster]:
    if not HAS_RAY:
        pytest.skip(WITHOUT_RAY)
    with ray_cluster() as started:
        yield started


@pytest.fixture
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    made = Target(request.param, _address(request))
    yield made
    made.close()


def _address(request: pytest.FixtureRequest) -> str:
    match request.param:
        case "tensorflow":
            return str(request.config.getoption("--master"))
        case "grpc":
            return str(request.getfixturevalue("server").grpc_address)
        case "http":
            return str(request.getfixturevalue("server").http_address)
        case "ray":
            return f"ray://{request.getfixturevalue('cluster').address}"
        case _:
            return ""
