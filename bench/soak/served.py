"""The server of a soak, and what its process holds (Linux)."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any

from bench.measure import resident_bytes
from bench.serving import ROOT
from bench.soak.judgement import Usage
from bench.soak.models import DENSE, write_dense
from tests.integration.server_process import ServerProcess

# Threads of a pool whose size gRPC changes by itself; they are not counted.
SIZED_BY_GRPC = "event_engine"
EXAMPLES = ("half_plus_two", "counter", "digits")


@contextlib.contextmanager
def soak_server() -> Iterator[tuple[ServerProcess, pathlib.Path]]:
    """Run a server with the models of the soak; yield it and the folder of the changing model."""
    with tempfile.TemporaryDirectory() as folder:
        base = pathlib.Path(folder, DENSE)
        write_dense(base, 1)
        models = [
            {"name": name, "base_path": f"{ROOT}/examples/models/{name}"} for name in EXAMPLES
        ]
        config: dict[str, Any] = {
            "rest": {"host": "127.0.0.1"},
            "models": [*models, {"name": DENSE, "base_path": str(base)}],
            "model_poll_seconds": 0.2,
        }
        file = pathlib.Path(folder, "server.yaml")
        file.write_text(json.dumps(config))
        server = ServerProcess(f"--config={file}")
        try:
            server.wait_for("gRPC listens on port")
            for model in (*EXAMPLES, DENSE):
                server.wait_for(f"Loaded version 1 of model {model}")
            yield server, base
        finally:
            server.end()


def usage(process_id: int, latency: float = 0.0) -> Usage:
    """Return what a process holds now."""
    folder = pathlib.Path("/proc", str(process_id))
    threads = [name for name in thread_names(process_id) if name != SIZED_BY_GRPC]
    descriptors = os.listdir(folder / "fd")
    return Usage(resident_bytes(process_id), len(threads), len(descriptors), latency)


def thread_names(process_id: int) -> list[str]:
    """Return the names of a process's threads, as the system knows them."""
    names = []
    for task in pathlib.Path(f"/proc/{process_id}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            names.append((task / "comm").read_text(encoding="utf-8").strip())
    return names


def kinds_held(process_id: int) -> dict[str, int]:
    """Return how many threads a process has by name, and descriptors by kind."""
    folder = pathlib.Path("/proc", str(process_id))
    kinds = collections.Counter(f"thread {name}" for name in thread_names(process_id))
    for descriptor in os.listdir(folder / "fd"):
        with contextlib.suppress(OSError):
            target = os.readlink(folder / "fd" / descriptor)
            kinds[f"descriptor {target.split(':[')[0]}"] += 1
    return dict(kinds)
