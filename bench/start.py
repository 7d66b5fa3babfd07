"""Measure the time from process start to the first response, and the resident memory then.

    python -m bench.start [DIR] [--runs 5]

Starts `runstep serve` on a model and, for comparison, a bare FastAPI application, several times
each. Prints the time to the first `/healthz` and to the first prediction, the resident memory after
the prediction, and again when the process, after some more predictions, has been idle for a moment:
by then nothing is compiled any more. DIR is a model's folder; its inputs.npz, if there is one, is
predicted on (one row). Default: the digits example.

Both are started once before, which is not measured. It writes the bytecode that an installation
has, even where PYTHONDONTWRITEBYTECODE is set; without it a start compiles every module.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from typing import Any

import numpy as np

from bench.engines.model_inputs import batch_of, stored_arrays
from bench.engines.warm_up import wait_until_idle
from bench.measure import median, resident_bytes, write_json
from bench.serving import ROOT
from bench.tables import start_table

BARE_FASTAPI = """
import sys, uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.get("/healthz")
def healthz(): return {"status": "alive"}
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
"""
MORE_PREDICTIONS = 20
LIMIT_SECONDS = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment() -> dict[str, str]:
    """Return the environment of the measured processes, in which modules have bytecode."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPATH": str(ROOT)}


def first_answer(url: str, body: bytes | None, started: float) -> float:
    """Return the seconds from `started` until the URL returns 200."""
    while time.perf_counter() - started < LIMIT_SECONDS:
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url, data=body), timeout=LIMIT_SECONDS
            ):
                return time.perf_counter() - started
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.005)
    raise SystemExit(f"{url} did not answer in {LIMIT_SECONDS} s")


def processor_seconds(process: int) -> float:
    """Return the processor time that a process has used (Linux)."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def body_for(directory: pathlib.Path) -> bytes:
    """Return a prediction of one row of the model's inputs."""
    file = directory / "inputs.npz"
    if not file.exists():
        return (ROOT / "examples/digit.json").read_bytes()
    inputs = batch_of(stored_arrays(file), 1)
    return json.dumps({"inputs": {key: as_json(value) for key, value in inputs.items()}}).encode()


def as_json(array: np.ndarray) -> Any:
    if array.dtype == object:
        return [text.decode() for text in array.ravel()]
    return array.tolist()


def hello_seconds() -> float:
    """Return the time from the start of a bare FastAPI application to its first answer."""
    port = free_port()
    started = time.perf_counter()
    command = [sys.executable, "-c", BARE_FASTAPI, str(port)]
    with subprocess.Popen(command, env=environment()) as process:
        try:
            return first_answer(f"http://127.0.0.1:{port}/healthz", None, started)
        finally:
            process.kill()


def runstep_figures(directory: pathlib.Path, body: bytes) -> dict[str, float]:
    """Return the times and the memory of one server."""
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        model = {"name": "model", "base_path": str(directory)}
        json.dump({"models": [model], "grpc": {"port": free_port()}}, config)
        config.flush()
        command = [sys.executable, "-m", "server.main", "serve", "--config", config.name]
        started = time.perf_counter()
        with subprocess.Popen(
            [*command, "--rest_api_port", str(port)],
            stderr=subprocess.DEVNULL,
            env=environment(),
        ) as process:
            try:
                health = first_answer(f"{base}/healthz", None, started)
                predict = first_answer(f"{base}/v1/models/model:predict", body, started)
                resident = resident_bytes(process.pid)
                for _ in range(MORE_PREDICTIONS):
                    first_answer(f"{base}/v1/models/model:predict", body, time.perf_counter())
                wait_until_idle(processor_time=lambda: processor_seconds(process.pid))
                settled = resident_bytes(process.pid)
            finally:
                process.terminate()
    return {
        "health_s": health, "predict_s": predict, "resident_mb": resident / 1e6,
        "settled_mb": settled / 1e6,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = ROOT / "examples/models/digits"
    parser.add_argument("directory", nargs="?", type=pathlib.Path, default=default)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    body = body_for(options.directory)
    hello, seen = [], []
    for _ in range(1 + options.runs):
        hello.append(hello_seconds())
        seen.append(runstep_figures(options.directory, body))
    del hello[0], seen[0]
    figures: dict[str, Any] = {key: median([each[key] for each in seen]) for key in seen[0]}
    figures |= {"hello_s": median(hello), "model": options.directory.name, "runs": options.runs}
    print(start_table(figures))
    if options.json:
        write_json(options.json, figures)


if __name__ == "__main__":
    main()
