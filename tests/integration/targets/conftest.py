"""The targets: this process, and one server process over gRPC and over HTTP.

`--master grpc://host:port` runs the tests against another master service instead, TensorFlow's own
for example (tools/check_tensorflow_server.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.server_process import ServerProcess
from tests.integration.targets.target import Target

OURS = ("direct", "grpc", "http")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--master", help="grpc://host:port of the only target to test")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" in metafunc.fixturenames:
        ours = getattr(metafunc.module, "TARGETS", OURS)
        names = ("tensorflow",) if metafunc.config.getoption("--master", None) else ours
        metafunc.parametrize("target", names, indirect=True)


@pytest.fixture(scope="package")
def server() -> Iterator[ServerProcess]:
    process = ServerProcess("--config=tests/integration/targets/server.yaml")
    try:
        yield process
    finally:
        process.end()


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
        case _:
            return ""
