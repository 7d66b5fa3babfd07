"""How long requests wait at a part of the highest rate, beside what the capacity formula says.

    python -m bench.capacity.waiting --models DIR [--requests 2000] [--json FILE]

A server with one process on one core, and the load generators on another. Of each model: the
highest rate, over up to 16 connections (`sized_turn`), and the processor time of a request then;
the time of requests that come one after the other; and then requests that come at random times
(bench/http/arrivals.py), at parts of the highest rate. The formula gets the first three.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import tempfile
from typing import Any

from bench.capacity.formula import JSON, p99
from bench.capacity.requests import Body, call_of
from bench.capacity.run import CALLERS_OF_CORE, pinned, sized_turn
from bench.capacity.tables import waiting_table
from bench.engines.warm_up import wait_until_idle
from bench.fronts.requests import HttpRequest
from bench.fronts.run import Call, printed
from bench.http.rates import loaded
from bench.measure import write_json
from bench.processes import processor_seconds
from bench.serving import Served, runstep_server

MODELS = ("mlp", "gru", "transformer")
UTILISATIONS = (0.3, 0.5, 0.7, 0.85)
CONNECTIONS = 16
SECONDS = 1.5


def measure_model(served: Served, call: Call, body: pathlib.Path, requests: int) -> dict[str, Any]:
    """Return the figures of a model; `body` is the file of the request's body."""
    assert isinstance(call.request, HttpRequest)
    to = (call.address, call.request.path, f"@{body}")
    loaded(*to, CONNECTIONS, SECONDS)
    wait_until_idle(processor_time=lambda: processor_seconds(served.process_id))
    estimate = 1 / loaded(*to, CALLERS_OF_CORE, SECONDS)["per_second"]
    connections, seconds = sized_turn(estimate, 1, CONNECTIONS, SECONDS)
    before = processor_seconds(served.process_id)
    highest = loaded(*to, connections, seconds)["per_second"]
    cost = (processor_seconds(served.process_id) - before) / seconds / highest
    alone = loaded(*to, 1, SECONDS)["p99_ms"] / 1e3
    rows = []
    for utilisation in UTILISATIONS:
        rate = utilisation * highest
        seen = printed("http.arrivals", *to, rate, requests / rate)
        rows.append(
            {
                "utilisation": utilisation,
                "per_second": rate,
                "p50_ms": seen["p50_ms"],
                "p99_ms": seen["p99_ms"],
                "predicted_p99_ms": p99(alone, cost, utilisation) * 1e3,
            }
        )
    return {"highest": highest, "cost": cost, "alone_p99_ms": alone * 1e3, "rows": rows}


def measure(models: pathlib.Path, requests: int) -> dict[str, Any]:
    """Return {model: figures}."""
    served_models = [{"name": name, "base_path": str(models / name)} for name in MODELS]
    figures = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        with pinned(1):
            served = stack.enter_context(runstep_server({"models": served_models}))
        stack.enter_context(pinned(1, first=1))
        for name in MODELS:
            call = call_of(Body(name, JSON), models / name, served)
            assert isinstance(call.request, HttpRequest)
            body = pathlib.Path(folder, name)
            body.write_bytes(call.request.body)
            figures[name] = measure_model(served, call, body, requests)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--models", type=pathlib.Path, required=True, help="folder of exported models"
    )
    parser.add_argument("--requests", type=int, default=2000, help="at each rate")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    figures = measure(options.models.resolve(), options.requests)
    print(waiting_table(figures))
    if options.json:
        write_json(options.json, figures)


if __name__ == "__main__":
    main()
