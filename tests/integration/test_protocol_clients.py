"""The real clients of the Open Inference Protocol on the real process.

They need an older protobuf than the server, so each is in an environment of its own:
`make test-tritonclient` and `make test-kserve` make them and run these tests.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from collections.abc import Iterator

import pytest
import yaml

from tests.integration.echo_model import write_echo_model
from tests.integration.server_process import ROOT, ServerProcess

CALLS = 23  # of each client; the program itself checks that it calls all of them
PROGRAMS = ROOT / "tests" / "clients"


def python_of(name: str) -> str:
    """The interpreter with the client `name`; skip the test if there is none."""
    default = ROOT / f".venv-{name}" / "bin" / "python"
    found = os.environ.get(f"PYTHON_{name.upper()}", str(default))
    if not pathlib.Path(found).exists():
        pytest.skip(f"{name} is not installed; make test-{name} installs it")
    return found


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[ServerProcess]:
    half = ROOT / "examples" / "models" / "half_plus_two"
    settings = {
        "models": [
            {"name": "half_plus_two", "base_path": str(half)},
            {"name": "echo", "base_path": str(write_echo_model(tmp_path / "echo"))},
        ],
        "admin": {"enabled": True},
    }
    (tmp_path / "server.yaml").write_text(yaml.safe_dump(settings))
    process = ServerProcess(f"--config={tmp_path / 'server.yaml'}")
    try:
        process.wait_for("gRPC listens on port")
        while process.client.get("/readyz").status_code != 200:
            assert process.process.poll() is None
        yield process
    finally:
        process.end()


def output_of(python: str, program: str, http: str, grpc: str) -> str:
    command = [python, str(PROGRAMS / program), http, grpc]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.timeout(300)
def test_tritonclient_calls_everything(server: ServerProcess) -> None:
    python = python_of("tritonclient")
    http, grpc = server.http_address, server.grpc_address
    output = output_of(
        python, "tritonclient_calls.py", http.removeprefix("http://"), grpc.removeprefix("grpc://")
    )
    called = json.loads(output)
    assert {name: len(calls) >= CALLS for name, calls in called.items()} == {
        "tritonclient.http": True,
        "tritonclient.http.aio": True,
        "tritonclient.grpc": True,
        "tritonclient.grpc.aio": True,
    }, called


@pytest.mark.timeout(300)
def test_kserve_infers_over_rest_and_grpc(server: ServerProcess) -> None:
    python = python_of("kserve")
    grpc = server.grpc_address.removeprefix("grpc://")
    assert output_of(python, "kserve_calls.py", server.http_address, grpc).strip() == "done"


@pytest.mark.timeout(120)
def test_kserve_knows_every_key_of_the_manifests() -> None:
    manifests = sorted(map(str, (ROOT / "configs" / "kserve").glob("*.yaml")))
    assert len(manifests) == 2
    command = [python_of("kserve"), str(PROGRAMS / "kserve_manifests.py"), *manifests]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ended.stdout.strip() == "done", ended.stderr
