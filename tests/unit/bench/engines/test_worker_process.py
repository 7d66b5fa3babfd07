"""A real child with a small model of the repository."""

from __future__ import annotations

import pathlib
import sys

import pytest

from bench.engines.worker_process import ROOT, WorkerProcess

MODELS = ROOT / "examples/models"


def test_runstep_runs_a_model_in_blocks() -> None:
    with WorkerProcess(sys.executable, "runstep", MODELS / "half_plus_two", 1) as worker:
        assert worker.unavailable is None
        assert worker.start.keys() == {"import_s", "load_s", "first_s"}
        warm = worker.ask(warm_up=8)
        assert warm["error"] is None  # nothing is stored to compare with
        assert warm["where"] in ("caller", "pool")
        assert warm["resident_mb"] > 10
        assert len(worker.ask(block=8, seconds=0)["times"]) == 2


def test_an_engine_that_does_not_run_a_model_says_why() -> None:
    with WorkerProcess(sys.executable, "runstep", MODELS / "counter", 1) as worker:
        assert worker.unavailable == "the default signature has no outputs"


def test_a_child_that_ends_is_an_error_or_an_unavailable_engine(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)runstep ended: .*find SavedModel"):
        WorkerProcess(sys.executable, "runstep", tmp_path, 1)
    with WorkerProcess(sys.executable, "runstep", tmp_path, 1, may_fail=True) as worker:
        assert worker.unavailable is not None
