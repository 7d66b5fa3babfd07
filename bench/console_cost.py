"""Measure what an open console costs: one reader of its stream, against none, in turns.

    python -m bench.console_cost [--seconds 20] [--rounds 3] [--json FILE]

Two questions, each answered in the same run with and without a reader: how much processor time the
server takes while nothing else happens (bar: 1 % of a core more), and what the reader does to tiny
predictions sent at fixed times (bar: the median of the p99s of tenths of a second at most 1.1 times
that without).
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import statistics
import sys
import threading
import time
from collections.abc import Iterator

import httpx
import numpy as np

from bench.machine import describe
from bench.measure import WINDOW_SECONDS, write_json
from bench.mixed_load.probe import Probe
from bench.mixed_load.run import address_of
from bench.mixed_load.tally import Tally
from bench.serving import ROOT
from bench.tables import table
from tests.integration.server_process import ServerProcess

CPU_BAR, TIME_BAR = 0.01, 1.1
PROBE_RATE = 500.0
_TICKS = 100  # of a second, in /proc


@contextlib.contextmanager
def reading(address: str) -> Iterator[None]:
    """Read the console's stream inside the context."""
    stop = threading.Event()

    def read() -> None:
        with httpx.stream("GET", f"{address}/console/api/events", timeout=30) as stream:
            for _ in stream.iter_lines():
                if stop.is_set():
                    return

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def idle_share(server: ServerProcess, seconds: float) -> float:
    """Return the part of a core that the server takes while no request comes."""
    before = cpu_seconds(server.process.pid)
    time.sleep(seconds)
    return (cpu_seconds(server.process.pid) - before) / seconds


def window_p99(server: ServerProcess, seconds: float, folder: pathlib.Path) -> float:
    """Return the median of the p99s, in seconds, of tenths of a second of tiny predictions."""
    tally = Tally()
    probe = Probe(address_of(server), PROBE_RATE, folder / "console_cost.npy", tally)
    with probe.probing():
        time.sleep(seconds)
    times = probe.times
    numbers = np.floor(times[:, 0] / WINDOW_SECONDS).astype(int)
    starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    windows = [rows for rows in np.split(times[:, 1], starts[1:]) if len(rows) >= 5]
    return statistics.median(float(np.quantile(rows, 0.99)) for rows in windows)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure what an open console costs.")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    found: dict[str, dict[str, list[float]]] = {
        each: {"cpu": [], "p99": []} for each in ("without", "with")
    }
    server = ServerProcess(f"--config={ROOT}/configs/server.yaml", "--host=127.0.0.1")
    try:
        server.wait_for("Loaded version 1 of model half_plus_two ")
        with contextlib.ExitStack() as stack:
            import tempfile

            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            for _ in range(options.rounds):
                for name, row in found.items():
                    reader = reading(server.http_address)
                    with reader if name == "with" else contextlib.nullcontext():
                        time.sleep(2)
                        row["cpu"].append(idle_share(server, options.seconds))
                        row["p99"].append(window_p99(server, options.seconds, folder))
    finally:
        server.end()
    cpu = statistics.median(found["with"]["cpu"]) - statistics.median(found["without"]["cpu"])
    ratios = [
        one / other
        for one, other in zip(found["with"]["p99"], found["without"]["p99"], strict=True)
    ]
    ratio = statistics.median(ratios)
    rows = [
        [name, *(f"{100 * each:.2f} %" for each in row["cpu"]),
         *(f"{1000 * each:.2f}" for each in row["p99"])]
        for name, row in found.items()
    ]  # fmt: skip
    head = [f"processor, round {n + 1}" for n in range(options.rounds)]
    head += [f"p99 ms, round {n + 1}" for n in range(options.rounds)]
    print(table(["a reader", *head], rows))
    print(
        f"\nprocessor: {100 * cpu:.2f} % of a core (bar {100 * CPU_BAR:.0f} %, "
        f"{'met' if cpu <= CPU_BAR else '**missed**'}); tiny predictions: × {ratio:.2f} "
        f"(bar {TIME_BAR}, {'met' if ratio <= TIME_BAR else '**missed**'})"
    )
    if options.json:
        write_json(options.json, {"machine": describe(), **found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
