"""A port that another program has is a sentence and exit code 1, for HTTP and for gRPC."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys

import pytest

from runtime.errors import UnavailableError
from server.rpc.grpc_server import GrpcServer
from tests.integration.rest_server import rest_server
from tests.integration.server_process import ROOT, SECONDS


@pytest.mark.parametrize(("front", "flags"), [("HTTP", "rest_api_port"), ("gRPC", "port")])
def test_a_port_that_is_taken(front: str, flags: str) -> None:
    other = "port" if flags == "rest_api_port" else "rest_api_port"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "server.main", "serve", "--host=127.0.0.1"]
        result = subprocess.run(
            [*command, f"--{flags}={port}", f"--{other}=0"],
            cwd=ROOT / "tests", env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip
    assert result.returncode == 1
    text = f"Cannot listen on 127.0.0.1:{port} for {front}: Address already in use\n"
    assert text in result.stderr
    assert "Loaded version" not in result.stderr  # models take long
    assert "Traceback" not in result.stderr and "[Errno" not in result.stderr


def test_a_grpc_port_that_is_taken_meanwhile_has_the_reason_of_the_system() -> None:
    async def run(port: int) -> None:
        grpc, rest = {"port": port}, {"host": "127.0.0.1"}
        async with rest_server(grpc=grpc, rest=rest) as server:
            text = f"^Cannot listen on 127.0.0.1:{port} for gRPC: Address already in use$"
            with pytest.raises(UnavailableError, match=text):
                GrpcServer(server.services)

    with socket.create_server(("127.0.0.1", 0)) as taken:
        asyncio.run(run(taken.getsockname()[1]))


def test_an_address_that_is_not_there() -> None:
    command = [sys.executable, "-m", "server.main", "serve", "--host=nowhere.invalid", "--port=0"]
    result = subprocess.run(
        command, cwd=ROOT / "tests", env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    assert result.returncode == 1
    assert "Cannot listen on nowhere.invalid:8501 for HTTP: " in result.stderr
    assert "Traceback" not in result.stderr
