"""Measure predictions over HTTP, and memory, of one server with 1, 2 and more processes.

    python -m bench.processes [--models DIR] [--served mlp mobilenet_v2] [--processes 1 2 4]
                              [--seconds 4] [--rounds 3]

The servers take turns; those that have no turn are idle. One load generator (bench/http/load.py, a
process of its own on the same cores) has `--connections` connections. Per second of processor time
is what the server's processes take, so that it does not depend on the load generator's share.

Memory is that of all processes of a server after the load: resident (pages that are shared count
in each process) and proportional (they count once, divided among those that share them).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import re
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from bench.batching import ROWS, body_of
from bench.http.rates import loaded
from bench.measure import median, write_json
from bench.serving import ROOT, Served, runstep_server
from bench.tables import significant, table

TICKS = os.sysconf("SC_CLK_TCK")
EXAMPLE = ROOT / "examples" / "models" / "half_plus_two"
SHAPES = {**ROWS, "resnet50": (224, 224, 3), "large": (3953,)}  # of one instance
Figures = dict[str, dict[str, dict[str, float]]]


def processes_of(server: int) -> Iterator[int]:
    """Yield a process and all that it has started, directly or not."""
    yield server
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[1]) == server:
                yield from processes_of(int(path.parent.name))


def processor_seconds(server: int) -> float:
    """Return the processor time that the processes of a server have taken."""
    total = 0.0
    for process in processes_of(server):
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / TICKS
    return total


def megabytes(server: int, kind: str) -> float:
    """Return the "Rss" or "Pss" of the processes of a server, in MB."""
    total = 0
    for process in processes_of(server):
        text = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
        found = re.search(rf"^{kind}:\s+(\d+) kB", text, re.MULTILINE)
        assert found is not None
        total += int(found[1])
    return total / 1e3 * 1.024


def measure(
    models: dict[str, tuple[pathlib.Path, str]],
    counts: Sequence[int],
    seconds: float,
    rounds: int,
    connections: int,
    bodies: pathlib.Path,
) -> Figures:
    """Return {processes: {model or "memory": figures}}; models are folders and requests."""
    config: dict[str, Any] = {
        "models": [
            {"name": name, "base_path": str(folder)} for name, (folder, _) in models.items()
        ],
        "rest": {"host": "127.0.0.1", "timeout_ms": 0},
    }
    figures: Figures = {str(count): {} for count in counts}
    with contextlib.ExitStack() as stack:
        served: dict[int, Served] = {
            count: stack.enter_context(runstep_server({**config, "processes": count}))
            for count in counts
        }
        for name, (_, body) in models.items():
            (bodies / name).write_text(body)
            call = (f"/v1/models/{name}:predict", f"@{bodies / name}")
            for each in served.values():  # warm up: compiled in each process
                loaded(each.http, *call, connections, seconds)
            turns: dict[int, list[dict[str, float]]] = {count: [] for count in counts}
            for _ in range(rounds):
                for count, each in served.items():
                    before = processor_seconds(each.process_id)
                    turn = loaded(each.http, *call, connections, seconds)
                    taken = processor_seconds(each.process_id) - before
                    turn["per_processor_second"] = turn["per_second"] * seconds / taken
                    turns[count].append(turn)
            for count, seen in turns.items():
                figures[str(count)][name] = {
                    key: median([turn[key] for turn in seen]) for key in seen[0]
                }
        for count, each in served.items():
            figures[str(count)]["memory"] = {
                "resident_mb": megabytes(each.process_id, "Rss"),
                "proportional_mb": megabytes(each.process_id, "Pss"),
            }
    return figures


def processes_table(figures: Figures) -> str:
    """Return a row for each model and number of processes, and the memory of all."""
    models = [name for name in next(iter(figures.values())) if name != "memory"]
    rows = [
        [
            name,
            count,
            significant(of_count[name]["per_second"]),
            significant(of_count[name]["per_processor_second"]),
            significant(of_count[name]["p50_ms"]),
            significant(of_count[name]["p99_ms"]),
        ]
        for name in models
        for count, of_count in figures.items()
    ]
    head = ["model", "processes", "requests/s", "per processor second", "p50 ms", "p99 ms"]
    memory = [
        [
            count,
            significant(of_count["memory"]["resident_mb"]),
            significant(of_count["memory"]["proportional_mb"]),
        ]
        for count, of_count in figures.items()
    ]
    sizes = table(["processes", "resident MB", "proportional MB"], memory)
    return f"{table(head, rows)}\n\n{sizes}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=pathlib.Path, help="folder of exported models")
    parser.add_argument("--served", nargs="*", choices=SHAPES, default=list(ROWS))
    parser.add_argument("--processes", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--seconds", type=float, default=4, help="of a turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    models = {"half_plus_two": (EXAMPLE, '{"instances":[1.0,2.0,5.0]}')}
    if options.models:
        folder = options.models.resolve()
        models |= {name: (folder / name, body_of(SHAPES[name])) for name in options.served}
    with contextlib.ExitStack() as stack:
        bodies = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        figures = measure(
            models, options.processes, options.seconds, options.rounds, options.connections, bodies
        )
    print(processes_table(figures))
    if options.json:
        write_json(options.json, figures)


if __name__ == "__main__":
    main()
