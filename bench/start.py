"""Measure the time from process start to the first response, and the resident memory then.

    python -m bench.start [DIR]

Starts `runstep serve` on a model (default: the digits example) and, for comparison, a bare FastAPI
application, five times each. Prints the time to the first `/healthz` and to the first prediction,
and the resident memory after the prediction.
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

from bench.measure import median, table

ROOT = pathlib.Path(__file__).parent.parent
BARE_FASTAPI = """
import sys, uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.get("/healthz")
def healthz(): return {"status": "alive"}
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
"""
RUNS = 5


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def first_answer(url: str, body: bytes | None, started: float) -> float:
    """Return the seconds from `started` until the URL returns 200."""
    while time.perf_counter() - started < 60:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data=body), timeout=5):
                return time.perf_counter() - started
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.005)
    raise SystemExit(f"{url} did not answer in 60 s")


def resident_megabytes(process: subprocess.Popen[bytes]) -> float:
    with open(f"/proc/{process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", nargs="?", default=str(ROOT / "examples/models/digits"))
    parser.add_argument("--instances", help="JSON body of the prediction", default=None)
    options = parser.parse_args()
    body = (options.instances or (ROOT / "examples/digit.json").read_text()).encode()
    hello, health, predict, memory = [], [], [], []
    for _ in range(RUNS):
        port = free_port()
        started = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-c", BARE_FASTAPI, str(port)])
        hello.append(first_answer(f"http://127.0.0.1:{port}/healthz", None, started))
        process.kill()
        process.wait()
        port = free_port()
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
            model = {"name": "model", "base_path": options.directory}
            json.dump({"models": [model], "grpc": {"port": free_port()}}, config)
            config.flush()
            command = [sys.executable, "-m", "server.main", "serve", "--config", config.name]
            started = time.perf_counter()
            process = subprocess.Popen(
                [*command, "--rest_api_port", str(port)],
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
            base = f"http://127.0.0.1:{port}"
            health.append(first_answer(f"{base}/healthz", None, started))
            predict.append(first_answer(f"{base}/v1/models/model:predict", body, started))
            memory.append(resident_megabytes(process))
            process.terminate()
            process.wait()
    rows = [
        ["bare FastAPI, first answer", f"{median(hello):.2f} s"],
        ["Runstep, first /healthz", f"{median(health):.2f} s"],
        ["Runstep, first prediction", f"{median(predict):.2f} s"],
        ["Runstep, resident after it", f"{median(memory):.0f} MB"],
    ]
    print(table(["what", "median of 5"], rows))


if __name__ == "__main__":
    main()
