"""Steps whose clusters the real OpenVINO compiles: priorities, crowds, cancelling and ending."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import logging
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import SessionOptions, new_session
from runtime.clusters.engine_choice import BFLOAT16, FLOAT32, EngineChoice
from runtime.clusters.running import background_cluster, engine
from runtime.clusters.running import cluster as cluster_module
from runtime.clusters.running.cluster_counts import cluster_counts
from runtime.clusters.running.compile_queue import compile_queue
from runtime.clusters.running.compiled_form import CompiledForm, FormRequest
from runtime.clusters.running.form_use import Use
from runtime.clusters.running.input_shapes import Sample
from runtime.executors.clustered import ClusteredExecutor
from runtime.foundation.errors import CancelledError, DeadlineExceededError
from runtime.framework.cancellation import CancellationManager
from tests.conformance.case import Graph
from tests.unit.runtime.executors.clustered_steps import (
    WAIT_SECONDS,
    cluster_of,
    eager,
    executor_of,
    new_step,
    wait,
    warm_up,
)

if importlib.util.find_spec("openvino") is None:
    pytest.skip("the extra openvino is not installed", allow_module_level=True)
from runtime.clusters import openvino_backend

__all__ = ["eager"]
pytestmark = pytest.mark.usefixtures("eager")

SIZE = 256
LONG_SIZE, LONG_COUNT = 1024, 1500  # a run takes minutes
ROOT = pathlib.Path(__file__).parents[3]


def products(count: int, size: int = SIZE) -> Graph:
    """`x` multiplied with itself, `count` times; of a matrix of 1 / size each is that matrix."""
    graph = Graph()
    x = graph.placeholder("float32", "x")
    value = x
    for index in range(count):
        is_last = index == count - 1
        (value,) = graph.add("MatMul", value, x, name="y" if is_last else f"product{index}")
    return graph


def matrix(size: int = SIZE) -> np.ndarray:
    return np.full((size, size), 1 / size, np.float32)


def executor(count: int = 3, precision: str = FLOAT32, size: int = SIZE) -> ClusteredExecutor:
    choice = EngineChoice("openvino", precision)
    return executor_of(products(count, size), ["x"], ["y"], choice=choice)


def compiled(count: int = 3, precision: str = FLOAT32) -> ClusteredExecutor:
    made = executor(count, precision)
    warm_up(made, matrix())
    assert cluster_of(made).forms
    return made


def check(executor: ClusteredExecutor, *, is_low_priority: bool = False) -> None:
    (got,) = executor.run(new_step(is_low_priority=is_low_priority), [matrix()])
    np.testing.assert_allclose(got, matrix(), rtol=1e-5)


def forms_for(executor: ClusteredExecutor, use: Use) -> list[CompiledForm]:
    return [form for form in cluster_of(executor).forms if use in form.uses]


def test_a_cluster_is_compiled_by_openvino() -> None:
    made = compiled()
    check(made)
    (summary,) = made.clusters
    assert summary.engine.startswith("OpenVINO ")
    assert (summary.precision, summary.state) == (FLOAT32, "compiled")


@pytest.mark.skipif(
    bool(openvino_backend.unfit_precision(BFLOAT16)), reason="the processor has no bfloat16"
)
def test_bfloat16_is_close_and_no_longer_float32() -> None:
    made = compiled(precision=BFLOAT16)
    (summary,) = made.clusters
    assert summary.precision == BFLOAT16
    x = np.random.default_rng(7).uniform(-0.05, 0.05, (SIZE, SIZE)).astype(np.float32)
    (got,) = made.run(new_step(), [x])
    assert isinstance(got, np.ndarray) and got.dtype == np.float32
    expected = x @ x @ x @ x
    error = np.abs(got - expected).max() / np.abs(expected).max()
    assert 1e-5 < error < 2e-2


def test_a_processor_without_bfloat16_computes_in_float32(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(openvino_backend, "_flags", set)
    monkeypatch.setattr(engine, "_found", {})
    monkeypatch.setattr(engine, "_reasons", {})
    made = compiled(precision=BFLOAT16)
    check(made)
    (summary,) = made.clusters
    assert summary.precision == FLOAT32
    (line,) = [each.message for each in caplog.records if each.levelno >= logging.WARNING]
    assert line.endswith("because the processor has neither avx512_bf16 nor amx_bf16")


def test_low_priority_has_a_form_of_one_thread_which_is_its_callers() -> None:
    made = compiled(count=40)
    for _ in range(2):
        check(made, is_low_priority=True)
        wait(made)
    (form,) = forms_for(made, Use.LOW)
    assert (form.threads, form.uses) == (1, {Use.LOW})
    before = ticks_of_other_threads()
    for _ in range(30):
        check(made, is_low_priority=True)
    assert form.runs >= 30
    # Half a second of work, of which no other thread does any: it would have another priority.
    assert ticks_of_other_threads() - before < 10


def ticks_of_other_threads() -> int:
    """The processor time of the other threads of this process, in hundredths of a second."""
    mine, found = threading.get_native_id(), 0
    for task in os.listdir("/proc/self/task"):
        if int(task) != mine:
            fields = pathlib.Path(f"/proc/self/task/{task}/stat").read_text().rpartition(")")[2]
            found += sum(map(int, fields.split()[11:13]))
    return found


def test_a_crowd_shares_a_form_with_a_stream_for_each_core(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = compiled()
    monkeypatch.setattr(cluster_module, "_at_work", [None] * 100)
    for _ in range(20):
        check(made)
    wait(made)
    (form,) = forms_for(made, Use.CROWDED)
    before, errors = form.runs, list[BaseException]()

    def work() -> None:
        try:
            for _ in range(20):
                check(made)
        except BaseException as error:
            errors.append(error)

    run_together([work] * 6)
    assert errors == []
    assert form.runs > before


def test_normal_low_and_crowded_runs_at_the_same_time() -> None:
    made = compiled()
    errors: list[BaseException] = []

    def work(is_low_priority: bool) -> None:
        try:
            for _ in range(40):
                check(made, is_low_priority=is_low_priority)
        except BaseException as error:
            errors.append(error)

    run_together([functools.partial(work, each) for each in (False, True)] * 3)
    wait(made)
    run_together([functools.partial(work, each) for each in (False, True)] * 3)
    assert errors == []


def run_together(work: Sequence[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.fixture
def for_large(monkeypatch: pytest.MonkeyPatch) -> list[openvino_backend.RunControl]:
    """Forms are made for large matrices, though only small ones have run; the runs of models."""
    compile_form = background_cluster.compile_form
    sample: Sample = ((LONG_SIZE, LONG_SIZE),)

    def compile_for_large(request: FormRequest, *arguments: Any) -> CompiledForm:
        return compile_form(dataclasses.replace(request, samples=(sample,)), *arguments)

    monkeypatch.setattr(background_cluster, "compile_form", compile_for_large)
    controls: list[openvino_backend.RunControl] = []
    infer = openvino_backend.RunControl.infer

    def infer_noted(control: openvino_backend.RunControl, request: Any) -> None:
        controls.append(control)
        infer(control, request)

    monkeypatch.setattr(openvino_backend.RunControl, "infer", infer_noted)
    return controls


@pytest.fixture
def without_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling does not run the model."""
    monkeypatch.setattr(openvino_backend.CompiledModel, "_warm_up", lambda *_: None)


@pytest.mark.usefixtures("without_first_run")
@pytest.mark.parametrize("is_low_priority", [False, True])
def test_cancelling_ends_a_run_that_would_take_minutes(
    is_low_priority: bool, for_large: list[openvino_backend.RunControl]
) -> None:
    made = executor(LONG_COUNT)
    while made.clustered is None or not cluster_of(made).forms:
        made.run(new_step(is_low_priority=is_low_priority), [matrix(4)])
        wait(made)
    cancellation = CancellationManager()
    step = new_step(is_low_priority=is_low_priority, cancellation=cancellation)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            made.run(step, [matrix(LONG_SIZE)])
        except CancelledError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not for_large:
        threading.Event().wait(0.01)
    cancellation.cancel(CancelledError("enough"))
    thread.join(WAIT_SECONDS)
    assert [str(each).splitlines()[0] for each in errors] == ["enough"]
    assert for_large[0].is_stopped
    (form,) = cluster_of(made).forms
    assert (form.uses == {Use.LOW}) is is_low_priority
    assert form.failures == 0


@pytest.mark.usefixtures("without_first_run")
def test_a_deadline_ends_a_run_that_would_take_minutes(
    for_large: list[openvino_backend.RunControl],
) -> None:
    config = pb.ConfigProto(inter_op_parallelism_threads=-1)
    session = new_session(SessionOptions(config=config, engine="openvino"))
    try:
        session.create(products(LONG_COUNT).graph_def)
        while not any(each.engine for found in session.clusters().values() for each in found):
            session.run({"x:0": matrix(4)}, ["y:0"])
            assert compile_queue.wait_until_idle(WAIT_SECONDS)
        with pytest.raises(DeadlineExceededError):
            session.run(
                {"x:0": matrix(LONG_SIZE)}, ["y:0"], options=pb.RunOptions(timeout_in_ms=300)
            )
        (control,) = for_large
        assert control.is_stopped
    finally:
        session.close()


def test_closing_ends_the_first_run_of_what_was_compiled(
    for_large: list[openvino_backend.RunControl], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()
    infer_together = openvino_backend.RunControl.infer_together

    def infer_noted(control: openvino_backend.RunControl, requests: Any) -> None:
        begun.set()
        infer_together(control, requests)

    monkeypatch.setattr(openvino_backend.RunControl, "infer_together", infer_noted)
    made = executor(LONG_COUNT)
    jobs = made._queue
    for _ in range(60):
        made.run(new_step(), [matrix(4)])
        if begun.wait(0.1):
            break
    assert begun.wait(WAIT_SECONDS)
    before = cluster_counts.figures().compilations
    del made
    assert jobs.wait_until_idle(WAIT_SECONDS)
    assert cluster_counts.figures().compilations == before


def test_a_product_that_becomes_a_scalar_does_not_end_the_process() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x", [1, 3])
    (product,) = graph.add("MatMul", x, np.ones((3, 1), np.float32))
    graph.add("Reshape", product, np.zeros(0, np.int32), name="y")
    session = new_session(SessionOptions(clusters="force", engine="openvino"))
    try:
        session.create(graph.graph_def)
        (got,) = session.run({"x:0": np.array([[1, 2, 3]], np.float32)}, ["y:0"])
        assert (np.shape(got), float(got)) == ((), 6.0)
        ((summary,),) = session.clusters().values()
        assert summary.engine.startswith("OpenVINO ")
    finally:
        session.close()


def test_a_compilation_that_fails_leaves_the_kernels_and_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        openvino_backend, "_properties", lambda _: {"INFERENCE_PRECISION_HINT": "nothing"}
    )
    made = executor()
    warm_up(made, matrix())
    assert made.clustered is None
    (got,) = made.run(new_step(), [matrix()])
    np.testing.assert_allclose(got, matrix(), rtol=1e-5)
    (line,) = [each.message for each in caplog.records if each.levelno >= logging.WARNING]
    assert line.startswith("A cluster stays on numpy kernels, because compiling it failed: ")


ENDS_WHILE_COMPILING = """
import threading
from runtime.clusters import openvino_backend
from runtime.clusters.running.compile_queue import compile_queue
from runtime.clusters.running.interrupt import Interrupt
from runtime.clusters.running.engine import Compilation
from tests.extras.openvino.test_openvino_backend import products

model, begun = products(4000), threading.Event()

def job():
    begun.set()
    openvino_backend.compile_model(model, Compilation(), None)

compile_queue.submit(job, Interrupt())
begun.wait()
threading.Event().wait(0.2)
"""


def test_the_interpreter_ends_while_openvino_compiles() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ENDS_WHILE_COMPILING],
        cwd=ROOT,
        capture_output=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
