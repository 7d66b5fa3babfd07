"""Measure the requests per second of tiny predictions and session runs, beside a bare echo.

    python -m bench.http.rates [--seconds 2] [--rounds 5] [--connections 8]

Three calls take turns: `:predict` of half_plus_two, `:run` of a session on it, and a bare ASGI
application that answers the JSON of the request (bench/http/echo.py) on the same uvicorn, event
loop and HTTP parser. One load generator (bench/http/load.py, a process of its own) sends to each
over the same number of connections. The ratio is that of the medians of the turns.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from bench.measure import median, write_json
from bench.serving import ROOT, runstep_server
from bench.tables import http_rate_table

MODEL = "half_plus_two"
CONFIG = {"models": [{"name": MODEL, "base_path": f"{ROOT}/examples/models/{MODEL}"}]}
PREDICT = '{"instances": [1.0, 2.0, 5.0]}'
RUN = (
    '{"feeds": {"serving_default_x:0": [1.0, 2.0, 5.0]},'
    ' "fetches": ["StatefulPartitionedCall_2:0"]}'
)


@contextlib.contextmanager
def echo_server() -> Iterator[str]:
    """Run the echo; yield its address."""
    command = [sys.executable, "-m", "bench.http.echo"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


def loaded(address: str, path: str, body: str, connections: int, seconds: float) -> dict[str, Any]:
    """Return the figures of one turn of the load generator; raise RuntimeError if it fails."""
    command = [sys.executable, "-m", "bench.http.load", address, path, body]
    done = subprocess.run(
        [*command, str(connections), str(seconds)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def measure(seconds: float, rounds: int, connections: int) -> dict[str, Any]:
    """Return {call: {"per_second", "p50_ms", "p99_ms", "of_echo"}}, medians of the turns."""
    with echo_server() as echo, runstep_server(CONFIG) as served:
        session = served.open_session(MODEL)
        calls = {
            "echo": (echo, "/", PREDICT),
            "predict": (served.http, f"/v1/models/{MODEL}:predict", PREDICT),
            "run": (served.http, f"/v1/sessions/{session}:run", RUN),
        }
        for call in calls.values():  # warm up
            loaded(*call, connections, seconds / 4)
        turns: dict[str, list[dict[str, Any]]] = {name: [] for name in calls}
        for _ in range(rounds):
            for name, call in calls.items():
                turns[name].append(loaded(*call, connections, seconds))
    rows = {
        name: {key: median([turn[key] for turn in seen]) for key in seen[0]}
        for name, seen in turns.items()
    }
    for row in rows.values():
        row["of_echo"] = row["per_second"] / rows["echo"]["per_second"]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2, help="of a turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rows = measure(options.seconds, options.rounds, options.connections)
    print(http_rate_table(rows))
    if options.json:
        write_json(options.json, rows)


if __name__ == "__main__":
    main()
