"""The child: loads one model in one engine, then measures blocks of runs as it is told.

    PYTHON -m bench.engines.worker ENGINE FOLDER THREADS

A line of JSON on standard output answers the start, and then every line on standard input:

    start                            {"import_s", "load_s", "first_s"} or {"unavailable": reason}
    {"warm_up": batch}               {"error", "where", "resident_mb"}
    {"block": batch, "seconds": s}   {"times": [seconds of each run]}

`error` is the largest difference from `expected.npz` relative to the largest value, null if there
is none; `resident_mb` is the memory after the warm-up, MB of 10⁶ bytes.
"""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

BEGAN = time.perf_counter()

from bench.engines.model_inputs import Arrays, batch_of, relative_error, stored_arrays
from bench.engines.warm_up import timed_runs, warm_up
from bench.measure import resident_bytes

# name → module and class. The module imports the engine.
ENGINES = {
    "runstep": ("bench.engines.runstep_engine", "RunstepEngine"),
    "runstep_clusters": ("bench.engines.runstep_engine", "RunstepWithClusters"),
    "runstep_openvino": ("bench.engines.runstep_engine", "RunstepWithOpenVino"),
    "runstep_openvino_bf16": ("bench.engines.runstep_engine", "RunstepWithOpenVinoBfloat16"),
    "tensorflow": ("bench.engines.tensorflow_engine", "TensorFlowEngine"),
    "onnx_runtime": ("bench.engines.onnx_runtime_engine", "OnnxRuntimeEngine"),
    "openvino": ("bench.engines.openvino_engine", "OpenVinoEngine"),
    "gemm": ("bench.engines.gemm_engine", "GemmEngine"),
}
LEAST_RUNS = 2  # of a block, however slow
SHORT_SECONDS = 1e-3  # below this, Runstep's steps run in the caller's thread, else on its pool


class Worker:
    """A loaded model, and a function for each batch size that runs it."""

    def __init__(self, engine: str, folder: pathlib.Path, threads: int) -> None:
        module, name = ENGINES[engine]
        self._folder = folder
        self._engine = getattr(importlib.import_module(module), name)(folder, threads)
        self._runs: dict[int, Callable[[], Arrays]] = {}

    def start(self) -> dict[str, Any]:
        """Load the model and run it once on a batch of one."""
        imported = time.perf_counter()
        self._engine.load()
        loaded = time.perf_counter()
        self._run_of(1)()
        first = time.perf_counter()
        return {
            "import_s": imported - BEGAN, "load_s": loaded - imported, "first_s": first - loaded,
        }  # fmt: skip

    def warm_up(self, batch: int) -> dict[str, Any]:
        """Run until the time is steady; compare the outputs."""
        median = warm_up(self._run_of(batch))
        where = None
        if hasattr(self._engine, "where"):
            where = self._engine.where = "caller" if median < SHORT_SECONDS else "pool"
            self._runs.pop(batch)
            self._run_of(batch)()
        return {
            "error": self._error(batch),
            "where": where,
            "resident_mb": resident_bytes() / 1e6,
        }

    def block(self, batch: int, seconds: float) -> dict[str, Any]:
        """Time runs for about `seconds`."""
        return {"times": timed_runs(self._run_of(batch), seconds, LEAST_RUNS)}

    def _run_of(self, batch: int) -> Callable[[], Arrays]:
        if batch not in self._runs:
            file = self._folder / "inputs.npz"
            stored = stored_arrays(file) if file.exists() else self._engine.zeros
            self._runs[batch] = self._engine.prepare(batch_of(stored, batch))
        return self._runs[batch]

    def _error(self, batch: int) -> float | None:
        file = self._folder / "expected.npz"
        if not file.exists():
            return None
        prefix = "serving_default/"
        expected = {
            key.removeprefix(prefix): value
            for key, value in batch_of(stored_arrays(file), batch).items()
            if key.startswith(prefix)
        }
        return relative_error(self._run_of(batch)(), expected)


def main() -> None:
    engine, folder, threads = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what an engine prints is not an answer

    def answer(value: object) -> None:
        print(json.dumps(value), file=answers, flush=True)

    try:
        worker = Worker(engine, pathlib.Path(folder), int(threads))
        answer(worker.start())
    except NotImplementedError as error:
        answer({"unavailable": str(error)})
        return
    for line in sys.stdin:
        command = json.loads(line)
        if "warm_up" in command:
            answer(worker.warm_up(command["warm_up"]))
        else:
            answer(worker.block(command["block"], command["seconds"]))


if __name__ == "__main__":
    main()
