"""Runstep's server as a process of its own, for the benchmarks over HTTP."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping

ROOT = pathlib.Path(__file__).parent.parent
END_SECONDS = 20
READY_SECONDS = 120  # for all models to be loaded, on a busy machine
POLL_SECONDS = 0.02


@dataclasses.dataclass(frozen=True)
class Served:
    """A running server: its addresses and its process."""

    http: str
    grpc: str
    process_id: int

    def post(self, path: str, body: bytes, kind: str = "application/json") -> bytes:
        """Return the answer of one request; raise urllib.error.HTTPError unless it is a 2xx."""
        request = urllib.request.Request(self.http + path, body, {"Content-Type": kind})
        with urllib.request.urlopen(request) as response:
            answer: bytes = response.read()
        return answer

    def open_session(self, model: str) -> str:
        """Open a session on a served model and return its id."""
        answer = json.loads(self.post("/v1/sessions", json.dumps({"model": model}).encode()))
        return str(answer["session"])


@contextlib.contextmanager
def runstep_server(config: Mapping[str, object], *flags: str) -> Iterator[Served]:
    """Run `runstep serve` with the settings, on free ports; yield it once its models are loaded."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "server.yaml")
        file.write_text(json.dumps({"rest": {"host": "127.0.0.1"}, **config}))
        command = [sys.executable, "-m", "server.main", "serve", f"--config={file}"]
        with subprocess.Popen(
            [*command, *flags],
            cwd=ROOT, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "RUNSTEP_REST__PORT": "free",
                 "RUNSTEP_GRPC__PORT": "free"},
        ) as process:  # fmt: skip
            try:
                http = _address_in(process, r"HTTP listens on http://[^ ]*:(\d+)")
                grpc = _address_in(process, r"gRPC listens on port (\d+)")
                served = Served(f"http://127.0.0.1:{http}", f"grpc://127.0.0.1:{grpc}", process.pid)
                _wait_until_ready(served.http)
                yield served
            finally:
                process.kill()


def _address_in(process: subprocess.Popen[str], pattern: str) -> str:
    assert process.stderr is not None
    found = (re.search(pattern, line) for line in process.stderr)
    return next(match for match in found if match)[1]


def _wait_until_ready(http: str) -> None:
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(http + "/readyz"):
            return
        time.sleep(POLL_SECONDS)
    raise RuntimeError(f"{http} does not get ready")
