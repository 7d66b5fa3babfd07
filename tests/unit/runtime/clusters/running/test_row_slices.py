"""Runs are divided where slices of rows are measured to be faster, and give the same answers."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from runtime.clusters.running import background_cluster, cluster, row_slices
from runtime.clusters.running.background_cluster import BackgroundCluster
from runtime.clusters.running.cluster import FIRST_JUDGED_RUN
from runtime.clusters.running.cluster_counts import cluster_counts
from runtime.clusters.running.compiled_form import CompiledForm
from runtime.clusters.running.form_use import Use
from runtime.clusters.running.row_slices import RowSlices, run_in_slices
from runtime.executors.clustered import ClusteredExecutor
from runtime.foundation.errors import CancelledError
from runtime.framework.cancellation import CancellationManager
from tests.conformance.case import Graph
from tests.unit.runtime.executors.clustered_steps import (
    cluster_of,
    eager,
    executor_of,
    new_step,
    relu_of_sum,
    run_with,
    values_of,
    wait,
    warm_up_with,
)

pytest.importorskip("onnxruntime")
__all__ = ["eager"]

X = np.arange(20, dtype=np.float32).reshape(5, 4) - 6
SAMPLE = ((5, 4), (5, 4))


def decided(whole: float, sliced: float) -> tuple[list[bool], bool | None]:
    """Return which runs were in slices, until it was decided whether they are from then on."""
    slices, turns = RowSlices(batch=8, width=2), []
    while slices.is_wanted is None:
        turns.append(slices.take_turn())
        slices.note(turns[-1], sliced if turns[-1] else whole)
    return turns, slices.is_wanted


def test_both_kinds_take_turns_until_it_is_known_which_is_faster() -> None:
    turns, is_wanted = decided(whole=20e-3, sliced=16e-3)
    assert turns == [False, False, False, *[True, False] * 5]
    assert is_wanted is True
    assert decided(whole=20e-3, sliced=19.8e-3)[1] is False  # not worth a second form
    assert decided(whole=1e-3, sliced=0) == ([False] * 3, False)  # not worth a trial


def test_runs_that_only_wait_are_not_divided() -> None:
    """As for the interpreter lock: the processor works for 0.2 ms."""
    slices = RowSlices(batch=32, width=2)
    for _ in range(3):
        slices.note(False, 5e-3, 0.2e-3)
    assert slices.is_wanted is False


def test_runs_are_compared_with_those_beside_them() -> None:
    """A machine that becomes twice as fast in between decides nothing."""
    slices = RowSlices(batch=8, width=2)
    for _ in range(3):
        slices.note(False, 10e-3)
    for speed in (1, 1, 0.5, 0.5, 0.5):
        slices.note(True, 18e-3 * speed)
        slices.note(False, 20e-3 * speed)
    assert slices.is_wanted is True


def test_a_form_is_made_where_runs_come_often(monkeypatch: pytest.MonkeyPatch) -> None:
    slices, seconds = RowSlices(batch=8, width=2), [0.0]
    monkeypatch.setattr(row_slices.time, "monotonic", lambda: seconds[0])
    seen = []
    for seconds[0] in (0, 65, 130, 131, 132, 133):
        seen.append(slices.misses_form())
    assert seen == [False] * 4 + [True] * 2


@pytest.mark.parametrize(
    ("milliseconds", "batch", "width", "rows"),
    [
        (18, 8, 2, 2),  # rows of 4.5 ms
        (170, 32, 1, 2),  # rows of 5.3 ms
        (90, 8, 2, 1),  # rows of 22 ms
        (8, 8, 2, 2),
        (90, 32, 16, 1),  # each thread has two slices
        (10, 4096, 2, 1024),
        (1e6, 3, 2, 1),
    ],
)
def test_slices_have_as_many_rows_as_are_worth_a_run(
    milliseconds: float, batch: int, width: int, rows: int
) -> None:
    slices = RowSlices(batch, width)
    slices.note(False, milliseconds / 1e3)
    assert slices.rows == rows


def test_slices_cover_the_batch_and_stop_after_an_error() -> None:
    rows = np.arange(7)
    seen: list[int] = []

    def run(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        part, other = inputs
        seen.append(len(part))
        return [part * other, part + 1]

    got = run_in_slices([True, False], [rows, np.int64(3)], 3, 2, run)
    np.testing.assert_array_equal(got[0], 3 * rows)
    np.testing.assert_array_equal(got[1], rows + 1)
    assert sorted(seen) == [1, 3, 3]

    def fail(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        seen.append(len(inputs[0]))
        raise RuntimeError("the engine fails")

    seen.clear()
    with pytest.raises(RuntimeError, match="the engine fails"):
        run_in_slices([True], [rows], 1, 1, fail)
    assert seen == [1]


def patch_widths(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Let runs have so many threads, and none be too short for slices."""
    monkeypatch.setattr(background_cluster, "thread_width", lambda: width)
    monkeypatch.setattr(cluster, "thread_width", lambda: width)
    monkeypatch.setattr(cluster, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(row_slices, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(BackgroundCluster, "_is_short", lambda *_: False)


@pytest.fixture
def sliced(eager: None, monkeypatch: pytest.MonkeyPatch) -> ClusteredExecutor:
    """One whose cluster runs SAMPLE in slices; two threads."""
    patch_widths(monkeypatch, 2)
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    for _ in range(20):
        run(executor)
        wait(executor)
    slices_of(executor).is_wanted = True
    return executor


def run(executor: ClusteredExecutor, **options: Any) -> np.ndarray:
    (value,) = executor.run(new_step(**options), [X, X])
    assert isinstance(value, np.ndarray)
    return value


def slices_of(executor: ClusteredExecutor) -> RowSlices:
    return cluster_of(executor)._slices[Use.WIDE, cluster.thread_width(), SAMPLE]


def narrow_of(executor: ClusteredExecutor) -> CompiledForm:
    (form,) = [each for each in cluster_of(executor).forms if each.threads == 1]
    return form


def batches_of(executor: ClusteredExecutor, **options: Any) -> list[int]:
    """Return the rows of each run of the form of one thread during one run, which is right."""
    form, batches = narrow_of(executor), []
    model_run = form.model.run

    def counting(arrays: Sequence[np.ndarray], control: Any = None) -> list[np.ndarray]:
        batches.append(len(arrays[0]))
        return model_run(arrays, control)

    form.model.run = counting  # type: ignore[method-assign] # counts
    try:
        np.testing.assert_array_equal(run(executor, **options), np.maximum(2 * X, 0))
    finally:
        form.model.run = model_run  # type: ignore[method-assign]
    return sorted(batches)


def test_a_decision_is_made_by_runs_of_both_kinds(sliced: ClusteredExecutor) -> None:
    slices = slices_of(sliced)
    slices.is_wanted = None
    slices._ratios.clear()
    while slices.is_wanted is None:
        run(sliced)
    assert len(slices._ratios) == 5
    assert sorted(each.threads for each in cluster_of(sliced).forms) == [1, 2]


def test_slices_cover_the_batch_of_a_run(sliced: ClusteredExecutor) -> None:
    assert batches_of(sliced) == [1] * 5
    slices_of(sliced).is_wanted = False
    assert batches_of(sliced) == []


def test_low_priority_runs_are_divided_in_their_own_thread(sliced: ClusteredExecutor) -> None:
    for _ in range(4):
        assert batches_of(sliced, is_low_priority=True) == [5]
    assert batches_of(sliced, is_low_priority=True) == [1, 2, 2]
    slices = cluster_of(sliced)._slices[Use.LOW, 1, SAMPLE]
    assert slices.width == 1
    slices.is_wanted = False
    assert batches_of(sliced, is_low_priority=True) == [5]


def test_runs_beside_others_are_compared_by_the_time_of_their_processor(
    sliced: ClusteredExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    slices_of(sliced).is_wanted = None
    monkeypatch.setattr(cluster, "_at_work", [None] * os.cpu_count())  # type: ignore[operator]
    assert [batches_of(sliced) for _ in range(5)] == [[5]] * 4 + [[1, 2, 2]]
    assert cluster_of(sliced)._slices[Use.CROWDED, 1, SAMPLE].width == 1


def test_a_thread_that_has_no_helpers_divides_a_batch_as_well(
    eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_widths(monkeypatch, 1)
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    for _ in range(16):
        run(executor)
        wait(executor)
    assert len(cluster_of(executor).forms) == 1
    slices_of(executor).is_wanted = True
    assert batches_of(executor) == [1, 2, 2]


def test_an_engine_whose_models_have_one_caller_gets_no_slices(
    sliced: ClusteredExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = cluster_of(sliced)
    monkeypatch.setattr(cluster, "can_run_slices", lambda _: False)
    found._slices.clear()
    assert batches_of(sliced) == []
    assert not found._slices


def test_a_form_that_was_freed_is_made_again(sliced: ClusteredExecutor) -> None:
    cluster_of(sliced).remove_form(narrow_of(sliced))
    for _ in range(3):
        np.testing.assert_array_equal(run(sliced), np.maximum(2 * X, 0))
    wait(sliced)
    assert batches_of(sliced) == [1] * 5


def test_a_form_without_rows_ends_the_wish(sliced: ClusteredExecutor) -> None:
    compilations = cluster_counts.figures().compilations
    narrow_of(sliced).rows = None
    for _ in range(8):
        np.testing.assert_array_equal(run(sliced), np.maximum(2 * X, 0))
        wait(sliced)
    assert slices_of(sliced).is_wanted is False
    assert cluster_counts.figures().compilations == compilations


def test_a_form_replaces_one_for_the_same_runs(sliced: ClusteredExecutor) -> None:
    found = cluster_of(sliced)
    for _ in range(3):
        found._request(SAMPLE, None, is_baked=True, use=Use.CROWDED)
        wait(sliced)
    assert sorted(each.threads for each in found.forms) == [1, 2]


def test_runs_in_slices_count_for_the_judgement(
    sliced: ClusteredExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[int] = []
    monkeypatch.setattr(BackgroundCluster, "_judge", lambda _, form, *__: judged.append(form.runs))
    while len(judged) < 1:
        run(sliced)
    assert judged == [FIRST_JUDGED_RUN]


def test_sessions_with_variables_of_their_own_get_no_model_each(
    eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_widths(monkeypatch, 2)
    graph = Graph()
    x, weights = graph.placeholder("float32", "x"), graph.placeholder("float32", "w")
    graph.add("Relu", graph.add("MatMul", x, weights)[0], name="z")
    executor = executor_of(graph, ["x", "w"], ["z"], source_count=1)
    own = [values_of(np.full((4, 4), number, np.float32)) for number in range(5)]
    warm_up_with(executor, X, own[0])
    for _ in range(6):
        for each in own:
            run_with(executor, X, each)
            wait(executor)
    before = cluster_counts.figures().compilations
    for _ in range(6):
        for number, each in enumerate(own):
            want = np.maximum(X @ np.float32(number * np.ones((4, 4))), 0)
            np.testing.assert_allclose(run_with(executor, X, each), want, rtol=1e-5, atol=1e-5)
            wait(executor)
    assert cluster_counts.figures().compilations == before
    baked = [each for each in cluster_of(executor).forms if each.is_baked]
    assert sorted(each.threads for each in baked) == [1, 2]


def test_a_large_model_is_not_compiled_once_more_for_slices(
    sliced: ClusteredExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "MOST_BYTES", -1)
    assert batches_of(sliced) == [1] * 5  # the model is there
    cluster_of(sliced).remove_form(narrow_of(sliced))
    for _ in range(4):
        np.testing.assert_array_equal(run(sliced), np.maximum(2 * X, 0))
        wait(sliced)
    assert [each.threads for each in cluster_of(sliced).forms] == [2]
    assert slices_of(sliced).is_wanted is False


def test_slices_that_fail_cost_neither_the_answer_nor_the_whole_form(
    sliced: ClusteredExecutor,
) -> None:
    narrow = narrow_of(sliced)

    def fail(arrays: Sequence[np.ndarray], control: Any = None) -> list[np.ndarray]:
        raise RuntimeError("the engine fails")

    narrow.model.run = fail  # type: ignore[method-assign] # an engine's error
    before = cluster_counts.figures().run_failures
    for _ in range(3):
        np.testing.assert_array_equal(run(sliced), np.maximum(2 * X, 0))
    assert cluster_counts.figures().run_failures == before + 1
    assert slices_of(sliced).is_wanted is False
    assert [each.threads for each in cluster_of(sliced).forms if each is not narrow] == [2]


def test_cancelling_ends_the_slices_and_decides_nothing(sliced: ClusteredExecutor) -> None:
    narrow, cancellation = narrow_of(sliced), CancellationManager()
    has_begun, is_stopped, model_run = threading.Event(), threading.Event(), narrow.model.run

    class Control:
        def stop(self) -> None:
            is_stopped.set()

    def wait_for_stop(arrays: Sequence[np.ndarray], control: Any = None) -> list[np.ndarray]:
        has_begun.set()
        assert is_stopped.wait(60)
        raise RuntimeError("terminated")

    narrow.model.run = wait_for_stop  # type: ignore[method-assign] # a run that takes long
    narrow.model.control = Control  # type: ignore[method-assign, assignment]

    def cancel() -> None:
        assert has_begun.wait(60)
        cancellation.cancel(CancelledError("not wanted any more"))

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(CancelledError):
        run(sliced, cancellation=cancellation)
    canceller.join()
    assert slices_of(sliced).is_wanted is True
    assert narrow.failures == 0
    narrow.model.run = model_run  # type: ignore[method-assign]
    np.testing.assert_array_equal(run(sliced), np.maximum(2 * X, 0))


def test_rows_that_depend_on_others_are_run_as_a_whole(
    eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_widths(monkeypatch, 2)
    graph = Graph()
    x = graph.placeholder("float32", "x")
    graph.add("Relu", graph.add("ReverseV2", x, np.int32([0]))[0], name="z")
    executor = executor_of(graph, ["x"], ["z"])
    for _ in range(16):
        executor.run(new_step(), [X])
        wait(executor)
    assert cluster_of(executor).forms
    assert not cluster_of(executor)._slices
