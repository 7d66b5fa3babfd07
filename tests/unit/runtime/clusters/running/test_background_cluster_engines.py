"""Clusters of an engine whose models take turns: each use of a cluster has a form of its own."""

from __future__ import annotations

import gc
import logging
import threading
import types
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from runtime.clusters.emission import Operation
from runtime.clusters.emit_cluster import EmittedCluster
from runtime.clusters.engine_choice import BFLOAT16
from runtime.clusters.patterns.pattern import OperationGraph, Pattern
from runtime.clusters.running import cluster as cluster_module
from runtime.clusters.running import engine
from runtime.clusters.running.cluster_counts import cluster_counts
from runtime.clusters.running.engine import Compilation, Engine, UncheckedRunError
from runtime.clusters.running.form_use import Use
from runtime.executors import clustered_plan
from runtime.executors.clustered import ClusteredExecutor
from runtime.foundation.errors import CancelledError
from runtime.framework.cancellation import CancellationManager
from tests.unit.runtime.executors.clustered_steps import (
    WAIT_SECONDS,
    cluster_of,
    eager,
    executor_of,
    new_step,
    ones,
    relu_of_sum,
    wait,
    warm_up,
)

__all__ = ["eager"]

X, Y = ones(2, 3), ones(3)
MAIN = (Use.WIDE, Use.NARROW)


class Model:
    """A compiled sum and Relu."""

    bytes_held = 8

    def __init__(self, how: Compilation) -> None:
        self.how = how
        self.is_busy = False
        self.runs = 0
        self.stopped = threading.Event()
        self.answer: Any = None  # called in place of the computation, with what can stop the run

    def control(self) -> Any:
        return types.SimpleNamespace(stop=self.stopped.set)

    def check_weights(self, arrays: Sequence[np.ndarray]) -> None:
        """Take all."""

    def run(self, arrays: Sequence[np.ndarray], control: Any = None) -> list[np.ndarray]:
        self.runs += 1
        if self.answer is not None:
            self.answer()
        x, y = arrays
        return [np.maximum(x + y, 0)]


class Backend:
    """An engine for which every use is a form."""

    NAME, VERSION = "Engine", "1.0"
    PATTERNS: Sequence[Pattern] = ()

    def __init__(self) -> None:
        self.models: list[Model] = []
        self.refused: dict[str, str] = {}
        self.returned = 0
        self.compiling: Any = None  # called in place of a compilation

    def is_fit(self) -> bool:
        return True

    def unfit_precision(self, precision: str) -> str:
        return ""

    def uses(self, use: Use, threads: int) -> frozenset[Use]:
        return frozenset((use,))

    def adapted(self, cluster: EmittedCluster) -> EmittedCluster:
        return cluster

    def refusals(self, cluster: EmittedCluster) -> Mapping[str, str]:
        return self.refused

    def return_memory(self) -> None:
        self.returned += 1

    def compile_model(self, model: object, how: Compilation, interrupt: object) -> Model:
        if self.compiling is not None:
            self.compiling()
        self.models.append(Model(how))
        return self.models[-1]


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch, eager: None) -> Backend:
    """The engine that all clusters of the test have, in bfloat16."""
    made = Backend()
    monkeypatch.setattr(clustered_plan, "find_engine", lambda _: Engine(made, BFLOAT16))
    return made


def executor() -> ClusteredExecutor:
    return executor_of(relu_of_sum(), ["x", "y"], ["z"])


def check(executor: ClusteredExecutor, *, is_low_priority: bool = False) -> None:
    (got,) = executor.run(new_step(is_low_priority=is_low_priority), [X, Y])
    np.testing.assert_array_equal(got, 2 * ones(2, 3))


def test_a_cluster_says_what_has_compiled_it(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    key = "Engine 1.0", BFLOAT16
    held = cluster_counts.figures().engines.get(key)
    before = 0 if held is None else held.forms
    plan = executor()
    warm_up(plan, X, Y)
    (model,) = backend.models
    assert model.how.precision == BFLOAT16
    assert model.how.samples[-1] == ((2, 3), (3,))
    (summary,) = plan.clusters
    assert (summary.engine, summary.precision, summary.state) == (*key, "compiled")
    assert cluster_counts.figures().engines[key].forms == before + 1
    (line,) = [each for each in caplog.messages if each.startswith("Compiled a cluster")]
    assert line.endswith("by Engine 1.0 in bfloat16")


def test_a_cluster_has_the_patterns_of_its_engine(backend: Backend) -> None:
    seen: list[str] = []

    def note(graph: OperationGraph, operation: Operation) -> None:
        seen.append(operation.op_type)

    backend.PATTERNS = (note,)
    warm_up(executor(), X, Y)
    assert seen == ["Add", "Relu"]


def test_low_priority_has_a_form_of_its_own_with_one_thread(backend: Backend) -> None:
    plan = executor()
    warm_up(plan, X, Y)
    for _ in range(2):
        check(plan, is_low_priority=True)
        wait(plan)
    main, low = backend.models
    assert main.how.use in MAIN
    assert (low.how.use, low.how.threads) == (Use.LOW, 1)
    main.runs = low.runs = 0
    check(plan, is_low_priority=True)
    assert (main.runs, low.runs) == (0, 1)
    check(plan)
    assert (main.runs, low.runs) == (1, 1)


def test_normal_runs_never_have_the_form_of_low_priority(backend: Backend) -> None:
    plan = executor()
    for _ in range(12):
        check(plan, is_low_priority=True)
        wait(plan)
    (low,) = backend.models
    assert low.how.use is Use.LOW
    runs = low.runs
    check(plan)
    assert low.runs == runs
    wait(plan)
    assert [each.how.use in MAIN for each in backend.models] == [False, True]


def test_a_crowd_gets_a_form_that_many_can_run(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = executor()
    warm_up(plan, X, Y)
    monkeypatch.setattr(cluster_module, "_at_work", [None] * 100)
    for _ in range(20):
        check(plan)
    wait(plan)
    main, crowded = backend.models
    assert (crowded.how.use, crowded.how.threads) == (Use.CROWDED, 1)
    main.runs = crowded.runs = 0  # it may have been there before the last of the runs
    check(plan)
    assert (main.runs, crowded.runs) == (0, 1)
    monkeypatch.setattr(cluster_module, "_at_work", [])
    check(plan)
    assert (main.runs, crowded.runs) == (1, 1)


def test_a_run_that_would_wait_goes_to_the_form_for_crowds(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "_MOST_LONGER", 1e9)  # also if its first runs were slow
    plan = executor()
    warm_up(plan, X, Y)
    (main,) = backend.models
    main.is_busy = True
    for _ in range(20):
        check(plan)
    wait(plan)
    _, crowded = backend.models
    assert crowded.how.use is Use.CROWDED
    main.runs = crowded.runs = 0
    check(plan)
    assert (main.runs, crowded.runs) == (0, 1)


def test_a_compilation_that_fails_leaves_the_kernels_and_one_line(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise RuntimeError("no such instruction")

    backend.compiling = fail
    before = cluster_counts.figures().compile_failures
    plan = executor()
    warm_up(plan, X, Y, runs=20)
    assert plan.clustered is None
    check(plan)
    assert cluster_counts.figures().compile_failures == before + 1
    warnings = [each.message for each in caplog.records if each.levelno >= logging.WARNING]
    assert warnings == [
        "A cluster stays on numpy kernels, because compiling it failed: no such instruction"
    ]


def test_nobody_waits_for_a_compilation_that_can_not_be_interrupted(backend: Backend) -> None:
    begun, hold = threading.Event(), threading.Event()

    def compile_long() -> None:
        begun.set()
        assert hold.wait(WAIT_SECONDS)

    backend.compiling = compile_long
    before = cluster_counts.figures()
    plan = executor()
    jobs, interrupt = plan._queue, plan._interrupt
    for _ in range(100):
        check(plan)
        if begun.wait(0.05):
            break
    assert begun.is_set()
    check(plan)  # by numpy kernels
    check(plan, is_low_priority=True)
    reference = weakref.ref(plan)
    del plan
    gc.collect()
    assert reference() is None
    assert interrupt.is_set
    hold.set()
    assert jobs.wait_until_idle(WAIT_SECONDS)
    after = cluster_counts.figures()
    assert after.compile_failures == before.compile_failures
    assert after.compilations == before.compilations


def test_what_the_engine_refuses_stays_with_the_kernels(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    backend.refused = {"z": "Relu of something"}
    plan = executor()
    warm_up(plan, X, Y)
    check(plan)
    assert backend.models == []
    assert any("Relu of something" in each for each in caplog.messages)


def test_a_run_that_does_not_count_is_done_by_the_kernels_and_is_no_failure(
    backend: Backend,
) -> None:
    plan = executor()
    warm_up(plan, X, Y)
    (model,) = backend.models

    def refuse() -> None:
        raise UncheckedRunError("an input is not finite")

    model.answer = refuse
    before = cluster_counts.figures().run_failures
    for _ in range(5):
        check(plan)
    assert cluster_counts.figures().run_failures == before
    assert len(cluster_of(plan).forms) == 1


def test_cancelling_a_step_stops_its_run(backend: Backend) -> None:
    plan = executor()
    warm_up(plan, X, Y)
    (model,) = backend.models
    cluster_of(plan).forms[0].seconds = 1.0  # so long that it can be stopped
    cancellation, begun = CancellationManager(), threading.Event()

    def wait_for_the_stop() -> None:
        begun.set()
        assert model.stopped.wait(WAIT_SECONDS)
        raise RuntimeError("infer cancelled")

    model.answer = wait_for_the_stop
    errors: list[BaseException] = []

    def run() -> None:
        try:
            plan.run(new_step(cancellation=cancellation), [X, Y])
        except CancelledError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(WAIT_SECONDS)
    cancellation.cancel(CancelledError("enough"))
    thread.join(WAIT_SECONDS)
    (error,) = errors
    assert str(error).startswith("enough")
    assert cluster_of(plan).forms[0].failures == 0


def test_memory_is_returned_by_each_engine_in_use(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"a": Engine(backend), "b": Engine(backend, BFLOAT16), "c": None}
    monkeypatch.setattr(engine, "_found", found)
    engine.return_engine_memory()
    assert backend.returned == 1
