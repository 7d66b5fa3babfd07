"""Applications of Ray Serve that tests deploy with the command."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import yaml

from tests.integration.access import Authority
from tests.integration.server_process import ROOT
from tests.ray_cluster import RayCluster

SECONDS = 60
HALF_PLUS_TWO = {"name": "half_plus_two", "base_path": "examples/models/half_plus_two"}


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


DEPLOY_RAY = (sys.executable, "-m", "server.main", "deploy", "ray")


def deploy_ray(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `runstep deploy ray`."""
    command = [*DEPLOY_RAY, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)


def interrupted_at(
    number: signal.Signals, told: str, home: pathlib.Path, *arguments: str
) -> tuple[int, str]:
    """Send a signal to `runstep deploy ray` when it tells something; its code and last line."""
    process = subprocess.Popen(
        [*DEPLOY_RAY, *arguments], cwd=ROOT, env={**os.environ, "HOME": str(home)}, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    line = ""
    with process, process.stderr:
        while not line.startswith(told):
            line = process.stderr.readline()
            assert line, f"It ended with {process.wait()}"
        process.send_signal(number)
        lines = process.stderr.readlines()
    return process.returncode, lines[-1]


# One process, because to start and to import Ray Serve takes a command longer than what it does.
_PROGRAM = """
import contextlib, io, json, sys
import tests.ray_cluster
from server.main import main
from server.ray_serve import deployment
for line in sys.stdin:
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = main(["deploy", "ray", *json.loads(line)])
    print("answer", json.dumps([code, out.getvalue(), errors.getvalue()]), flush=True)
"""


class Commands:
    """A program that runs `runstep deploy ray` for tests, one after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."},
        )  # fmt: skip

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(arguments)}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("answer "):
                return subprocess.CompletedProcess(arguments, *json.loads(line[7:]))
        raise AssertionError(f"The program ended with {self._process.wait()}")

    def end(self) -> None:
        """End the program."""
        self._process.communicate()


Command = Callable[..., subprocess.CompletedProcess[str]]


class Deployment:
    """An application and its settings, which a test changes and deploys again."""

    def __init__(
        self,
        cluster: RayCluster,
        folder: pathlib.Path,
        models: list[Any],
        command: Command = deploy_ray,
        authority: Authority | None = None,
        **serve: Any,
    ) -> None:
        """Settings of an application, on ports with TLS if there is an authority."""
        self.cluster = cluster
        self.command = command
        self.file = folder / "serve.yaml"
        self.settings: dict[str, Any] = {
            "rest": {"host": "127.0.0.1", "port": free_port()},
            "grpc": {"port": free_port()},
            "models": models,
            "model_poll_seconds": 0.2,
            "ray": {"address": cluster.address, "serve": serve},
        }
        scheme, verify = "http", ssl.create_default_context()
        if authority is not None:
            issued = authority.issue("localhost", ip="127.0.0.1")
            self.settings["tls"] = {
                "certificate_file": issued.certificate,
                "key_file": issued.key,
            }
            scheme, verify = "https", ssl.create_default_context(cafile=str(authority.path))
        self.http_address = f"{scheme}://127.0.0.1:{self.settings['rest']['port']}"
        self.grpc_address = f"127.0.0.1:{self.settings['grpc']['port']}"
        self.client = httpx.Client(base_url=self.http_address, verify=verify, timeout=SECONDS)
        self._serves: dict[str, Any] = {}

    def deploy(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Deploy what the settings are now."""
        self._serves = {}
        self.file.write_text(yaml.safe_dump(self.settings))
        return self.command("--config", str(self.file), *arguments)

    def must_deploy(self) -> None:
        """Deploy; the models must serve then."""
        done = self.deploy()
        assert done.returncode == 0, done.stderr
        assert self.client.get("/readyz").status_code == 200
        self._serves = copy.deepcopy(self.settings)

    def must_serve(self, settings: dict[str, Any]) -> None:
        """Deploy settings, unless they are what serves."""
        self.settings = copy.deepcopy(settings)
        if self._serves != self.settings:
            self.must_deploy()

    def remove(self) -> None:
        """Remove the application; it must leave nothing."""
        self.client.close()
        done = self.command("--address", self.cluster.address, "--remove")
        assert done.returncode == 0, done.stderr
        until(lambda: self.cluster.num_actors() == 0)


@contextlib.contextmanager
def deployed(
    cluster: RayCluster, folder: pathlib.Path, models: list[Any], command: Command, **serve: Any
) -> Iterator[Deployment]:
    """Deploy an application, and remove it."""
    deployment = Deployment(cluster, folder, models, command, **serve)
    deployment.must_deploy()
    try:
        yield deployment
    finally:
        deployment.remove()


def until(condition: Callable[[], object], seconds: float = SECONDS) -> None:
    """Wait until a condition holds."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it does not come to hold"
        time.sleep(0.05)
