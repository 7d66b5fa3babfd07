"""A real process with keys: what its log says first, and how the session targets reach it."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator

import numpy as np
import pytest
import yaml

from runtime.api import SessionOptions, new_session
from runtime.errors import UnauthenticatedError
from server.rest.session_docs import half_plus_two_graph
from tests.integration.access import key_of, write_keys
from tests.integration.server_process import ServerProcess


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[ServerProcess]:
    settings = {
        "access": {"keys_file": write_keys(tmp_path / "keys.yaml")},
        "grpc": {"tensorflow_port": 0},
    }
    config = tmp_path / "server.yaml"
    config.write_text(yaml.safe_dump(settings))
    made = ServerProcess(f"--config={config}")
    try:
        yield made
    finally:
        made.end()


def run_y(target: str) -> float:
    session = new_session(SessionOptions(target))
    try:
        session.create(half_plus_two_graph())
        (y,) = session.run({"x:0": np.float32(2)}, ["y:0"])
        return float(y)
    finally:
        session.close()


def test_targets_reach_a_server_with_keys(server: ServerProcess) -> None:
    address = server.http_address.removeprefix("http://")
    assert run_y(f"http://:{key_of('alice')}@{address}") == 3.0
    with pytest.raises(UnauthenticatedError, match="The API key is unknown"):
        run_y(f"http://:wrong@{address}")
    with pytest.raises(UnauthenticatedError, match="requires an API key"):
        run_y(f"http://{address}")
    with pytest.raises(UnauthenticatedError, match="requires an API key"):
        run_y(server.grpc_address)
    port = re.search(r"port (\d+)", server.wait_for("TensorFlow's clients may use port"))
    assert port is not None
    assert run_y(f"grpc://127.0.0.1:{port[1]}") == 3.0
    assert server.stop() == 0
    assert "OPEN TO THE NETWORK" not in "".join(server.log)


@pytest.mark.parametrize(("flags", "warnings"), [((), 1), (("--host=127.0.0.1",), 0)])
def test_the_log_says_what_is_open(flags: tuple[str, ...], warnings: int) -> None:
    server = ServerProcess(
        "--config=tests/integration/targets/server.yaml", "--host=0.0.0.0", *flags
    )
    try:
        assert server.stop() == 0
    finally:
        server.end()
    lines = [line for line in server.log if "OPEN TO THE NETWORK" in line]
    assert len(lines) == warnings
    assert all("WARNING" in line and "SECURITY.md" in line for line in lines)
