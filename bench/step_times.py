"""Measure the step time of SavedModels in Runstep and, given an interpreter, in its peers.

    python -m bench.step_times --models DIR [--peers PYTHON] [--batch 1 8 32] [--seconds 2.5]

DIR has the models that tools/export/bench_models.py writes; every model is a folder with version 1.
PYTHON has TensorFlow, tf2onnx, ONNX Runtime and OpenVINO; an engine it lacks has no row.

If this interpreter has the extra `openvino`, Runstep's steps are measured with OpenVINO as the
engine of clusters too, in float32 and, where the processor has it, bfloat16; else the reason is
printed.

Each engine runs in a process of its own and loads one model at a time (bench/engines). For each
batch size all engines are warmed up until their time is steady and nothing is compiled in the
background; then they take turns of `TURN_SECONDS`, until each has had `--seconds` and at least
`--rounds` turns. A virtual machine can have phases of several seconds in which all engines take 1.4
times as long; with short turns, each engine has its share of these. A figure is the median or p99
of all runs of an engine.

All engines use `--threads` threads, and all of them spin: ONNX Runtime for 200 µs, as Runstep's
clusters do, the others as they do by default. An engine that waits for its turn has stopped
spinning (`PAUSE_SECONDS`). Runstep's steps are asked to run in the caller's thread where they take
under 1 ms; else they are the session's to place, which runs those of up to 50 ms in the caller's
thread too, if a thread of its pool is idle. Inputs are arrays that exist already (TensorFlow:
tensors), results are arrays. OpenVINO is compiled for each batch size, the others take any.

A product of two 1024² matrices by numpy takes turns with the engines; its speed is in the figures,
so that runs on other machines can be compared (`python -m bench.compare`).
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from bench.engines.gemm_engine import FLOATING_POINT_OPERATIONS
from bench.engines.worker_process import ROOT, WorkerProcess
from bench.measure import median, percentile, write_json
from bench.tables import step_table
from runtime.api import schedulable_cores
from runtime.clusters.engine_choice import OPENVINO, EngineChoice
from runtime.clusters.running.engine import find_engine, known_use

OURS = ("runstep", "runstep_clusters")
WITH_OPENVINO = {"runstep_openvino": "float32", "runstep_openvino_bf16": "bfloat16"}
PEERS = {"tensorflow": "tensorflow", "onnx_runtime": "onnxruntime", "openvino": "openvino"}
TURN_SECONDS = 0.1
PAUSE_SECONDS = 0.05  # after a turn: threads that spin for the next run have gone to sleep
GEMM_SHARE = 0.2  # of a turn and of an engine's time, which suffices for some products
NO_MODEL = ROOT / "bench"  # a folder without inputs and expected answers
Rows = dict[str, Any]  # see `measure_model`


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*", help="names of models; default: all")
    parser.add_argument("--peers", help="an interpreter that has the peers")
    parser.add_argument("--batch", type=int, nargs="*", default=[1, 8, 32])
    parser.add_argument("--rounds", type=int, default=5, help="turns that an engine has at least")
    parser.add_argument("--seconds", type=float, default=2.5, help="that an engine is measured")
    parser.add_argument("--threads", type=int, default=schedulable_cores())
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    folders = model_folders(options.models, options.only)
    peers = installed_peers(options.peers, folders)
    ours, reason = our_engines()
    if reason:
        print(reason, file=sys.stderr, flush=True)
    figures: Rows = {"threads": options.threads, "versions": peers, "models": {}}
    turns = (options.rounds, options.seconds, options.batch)
    for folder in folders:
        measured = measure_model(folder, ours, options.peers, peers, options.threads, *turns)
        figures["models"][folder.name] = measured
        print(folder.name, file=sys.stderr, flush=True)
    gemm = [each.pop("gemm") for each in figures["models"].values()]
    figures["gemm_gflops"] = gemm_figures([time for times in gemm for time in times])
    print(step_table(figures, options.batch))
    if options.json:
        write_json(options.json, figures)


def model_folders(models: pathlib.Path, only: Sequence[str] | None) -> list[pathlib.Path]:
    """Return the folders of models in the directory, or of those named."""
    found = sorted(
        path.parent for path in models.glob("*/1") if not only or path.parent.name in only
    )
    if not found:
        raise SystemExit(f"no models in {models}; tools/export/bench_models.py exports them")
    return found


def our_engines() -> tuple[list[str], str]:
    """Return our rows, and why one of OpenVINO is not among them, or ""."""
    unmet = {}
    for row, precision in WITH_OPENVINO.items():
        choice = EngineChoice(OPENVINO, precision)
        find_engine(choice)
        use = known_use(choice)
        assert use is not None
        if use.reason:
            unmet[row] = use.reason
    reason = "; ".join(
        f"not measured with OpenVINO in {WITH_OPENVINO[row]}: {why}" for row, why in unmet.items()
    )
    return [*OURS, *(row for row in WITH_OPENVINO if row not in unmet)], reason


def installed_peers(python: str | None, folders: Sequence[pathlib.Path]) -> dict[str, str]:
    """Return {engine: version} of what the interpreter has; convert the models for them."""
    if python is None:
        return {}
    script = (
        "import importlib.metadata as m\n"
        "have = {d.metadata['Name'].lower().replace('_', '-').removesuffix('-cpu'): d.version"
        " for d in m.distributions()}\n"
        f"for engine, name in {PEERS}.items():\n"
        "    if name in have: print(engine, have[name])\n"
        "if 'tf2onnx' in have: print('tf2onnx', have['tf2onnx'])"
    )
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    found = dict(line.split() for line in done.stdout.splitlines())
    if "onnx_runtime" in found and found.pop("tf2onnx", None):
        command = [python, "-m", "bench.engines.convert_to_onnx", *map(str, folders)]
        subprocess.run(command, cwd=ROOT, check=True)
    return found


def measure_model(
    folder: pathlib.Path,
    ours: Sequence[str],
    python: str | None,
    peers: dict[str, str],
    threads: int,
    rounds: int,
    seconds: float,
    batches: Sequence[int],
) -> Rows:
    """Return the figures of one model by engine, and the seconds of the reference product.

    `{engine: {"load_s", "first_s", …, "batches": {"8": {"median_ms", "p99_ms", …}}}}`, or
    `{engine: {"unavailable": reason}}`.
    """
    with contextlib.ExitStack() as stack:
        workers = {}
        for name in (*ours, *(engine for engine in PEERS if engine in peers), "gemm"):
            interpreter = python if name in PEERS else sys.executable
            assert interpreter is not None
            place = NO_MODEL if name == "gemm" else folder
            workers[name] = stack.enter_context(
                WorkerProcess(interpreter, name, place, threads, may_fail=name in PEERS)
            )
        rows: Rows = {name: dict(worker.start) for name, worker in workers.items()}
        able = {name: worker for name, worker in workers.items() if worker.unavailable is None}
        for batch in batches:
            for name, figures in measure_batch(able, batch, rounds, seconds):
                if name == "gemm":
                    rows.setdefault("gemm_times", []).extend(figures)
                else:
                    rows[name].setdefault("batches", {})[str(batch)] = figures
    rows["gemm"] = rows.pop("gemm_times")
    return rows


def measure_batch(
    workers: dict[str, WorkerProcess], batch: int, rounds: int, seconds: float
) -> Iterator[tuple[str, Any]]:
    """Yield the figures of each engine; of the reference product, the seconds of each run."""
    warm = {}
    for name, worker in workers.items():
        warm[name] = worker.ask(warm_up=batch)
        time.sleep(PAUSE_SECONDS)
    times: dict[str, list[float]] = {name: [] for name in workers}
    for turns in itertools.count():
        waiting = {
            name: worker
            for name, worker in workers.items()
            if turns < rounds or sum(times[name]) < seconds * share_of(name)
        }
        if not waiting:
            break
        for name, worker in waiting.items():
            turn = worker.ask(block=batch, seconds=TURN_SECONDS * share_of(name))
            times[name] += turn["times"]
            time.sleep(PAUSE_SECONDS)
    for name, seen in times.items():
        if name == "gemm":
            yield name, seen
        else:
            figures = {"median_ms": median(seen) * 1e3, "p99_ms": percentile(seen, 99) * 1e3}
            yield name, figures | {"runs": len(seen)} | warm[name]


def share_of(name: str) -> float:
    """Return the share of the usual time for which an engine, or the product, is measured."""
    return GEMM_SHARE if name == "gemm" else 1


def gemm_figures(seconds: Sequence[float]) -> dict[str, float]:
    """Return the speed of the reference product: its median, and the middle 80 % of the runs."""
    speeds = [FLOATING_POINT_OPERATIONS / each / 1e9 for each in seconds]
    return {
        "median": median(speeds), "p10": percentile(speeds, 10), "p90": percentile(speeds, 90),
    }  # fmt: skip


if __name__ == "__main__":
    main()
