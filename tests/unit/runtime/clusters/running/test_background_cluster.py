"""Bad inputs, ever new shapes and failures leave a cluster usable, and its good forms in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from runtime.clusters.bounds import MAX_SPLITS, TensorSizes
from runtime.clusters.emit_cluster import RefusedError
from runtime.clusters.running import background_cluster
from runtime.clusters.running.background_cluster import BackgroundCluster, State
from runtime.clusters.running.cluster_counts import cluster_counts
from runtime.clusters.running.compiled_form import CompiledForm, FormRequest
from runtime.clusters.running.request_limits import MAX_COMPILATIONS, MAX_PATTERNS
from runtime.executors import clustered
from runtime.executors.clustered import ClusteredExecutor
from runtime.foundation.errors import OpError
from tests.conformance.case import Graph
from tests.unit.runtime.executors.clustered_steps import (
    cluster_of,
    eager,
    executor_of,
    new_step,
    ones,
    relu_of_sum,
    wait,
    warm_up,
)

pytest.importorskip("onnxruntime")
__all__ = ["eager"]


def compiled() -> ClusteredExecutor:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(executor, ones(2, 3), ones(2, 3))
    assert cluster_of(executor).forms
    return executor


def run(executor: ClusteredExecutor, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    (value,) = executor.run(new_step(), [x, y])
    assert isinstance(value, np.ndarray)
    return value


def fail_runs(form: CompiledForm) -> None:
    def fail(arrays: Sequence[np.ndarray], control: Any = None) -> list[np.ndarray]:
        raise RuntimeError("the engine fails")

    form.model.run = fail  # type: ignore[method-assign] # an engine's error


@pytest.mark.usefixtures("eager")
def test_inputs_for_which_numpy_raises_as_well_cost_no_form() -> None:
    executor = compiled()
    (form,) = cluster_of(executor).forms
    fail_runs(form)

    def refuse(*_: object) -> None:
        raise OpError("so do the kernels")

    cluster = cluster_of(executor)
    evaluate, cluster._evaluate = cluster._evaluate, refuse  # type: ignore[assignment] # an error
    for _ in range(10):
        with pytest.raises(OpError, match="so do the kernels"):
            run(executor, ones(2, 3), ones(2, 3))
    assert cluster.forms == (form,)
    assert form.failures == 0
    cluster._evaluate = evaluate


@pytest.mark.usefixtures("eager")
def test_runs_that_fail_where_numpy_does_not_cost_the_form() -> None:
    executor = compiled()
    (form,) = cluster_of(executor).forms
    fail_runs(form)
    for _ in range(3):
        np.testing.assert_array_equal(run(executor, ones(2, 3), ones(2, 3)), 2 * ones(2, 3))
    assert form not in cluster_of(executor).forms


@pytest.mark.usefixtures("eager")
def test_empty_inputs_run_on_numpy_kernels_and_decide_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background_cluster, "WORTH_SECONDS", 1e9)
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(executor, ones(0, 3), ones(0, 3))
    assert cluster_of(executor).state is State.OBSERVED
    monkeypatch.setattr(background_cluster, "WORTH_SECONDS", 0.0)
    warm_up(executor, ones(2, 3), ones(2, 3))
    (form,) = cluster_of(executor).forms
    runs = form.runs
    assert run(executor, ones(0, 3), ones(0, 3)).shape == (0, 3)
    assert form.runs == runs
    assert cluster_of(executor).forms == (form,)


@pytest.mark.usefixtures("eager")
def test_shapes_that_the_kernels_refuse_request_nothing() -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(executor, ones(2, 3), ones(2, 3), runs=5)
    cluster = cluster_of(executor)
    cluster._set_forms(())
    before = cluster_counts.figures().compilations
    for size in range(4, 40):
        with pytest.raises(OpError):
            run(executor, ones(2, 3), ones(2, size))
    wait(executor)
    assert cluster_counts.figures().compilations == before


def single_forms(executor: ClusteredExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each form take the last sample of its request only."""
    whole = background_cluster.compile_form

    def compile_single(request: FormRequest, *arguments: Any) -> CompiledForm:
        form = whole(request, *arguments)
        form.pattern, form._tensors = request.samples[-1], TensorSizes(())
        return form

    monkeypatch.setattr(background_cluster, "compile_form", compile_single)


@pytest.mark.usefixtures("eager")
def test_ever_new_shapes_compile_little_and_leave_the_form_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    single_forms(executor, monkeypatch)
    warm_up(executor, ones(2, 3), ones(2, 3))
    cluster = cluster_of(executor)
    before = cluster_counts.figures().compilations
    for size in range(4, 200):
        run(executor, ones(2, size), ones(2, size))
        run(executor, ones(2, 3), ones(2, 3))
    wait(executor)
    assert cluster_counts.figures().compilations - before <= 2
    assert any(form.fits(((2, 3), (2, 3))) for form in cluster.forms)
    for size in range(4, 200):
        for _ in range(3):  # now each shape comes back
            run(executor, ones(2, size), ones(2, size))
            wait(executor)
        run(executor, ones(2, 3), ones(2, 3))
    assert cluster_counts.figures().compilations - before <= MAX_COMPILATIONS
    assert any(form.fits(((2, 3), (2, 3))) for form in cluster.forms)
    assert len({form.pattern for form in cluster.forms}) <= MAX_PATTERNS


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("error", [SystemExit("killed"), MemoryError("no memory"), KeyError("x")])
def test_a_compilation_that_ends_in_whatever_way_leaves_the_kernels(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(background_cluster, "compile_form", fail)
    before = cluster_counts.figures().compile_failures
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(executor, ones(2, 3), ones(2, 3))
    assert executor.clustered is None
    assert cluster_counts.figures().compile_failures == before + 1
    assert [each.levelname for each in caplog.records].count("WARNING") == 1
    np.testing.assert_array_equal(run(executor, ones(2, 3), ones(2, 3)), 2 * ones(2, 3))


@pytest.mark.usefixtures("eager")
def test_a_compilation_that_the_owner_stops_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])

    def stopped(*_: object) -> None:
        executor._interrupt.set()
        raise RuntimeError("the load was cancelled")

    monkeypatch.setattr(background_cluster, "compile_form", stopped)
    before = cluster_counts.figures().compile_failures
    warm_up(executor, ones(2, 3), ones(2, 3))
    assert cluster_counts.figures().compile_failures == before
    assert caplog.records == []


@pytest.mark.usefixtures("eager")
def test_a_step_that_becomes_long_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustered, "WORTH_SECONDS", 1e9)
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(executor, ones(2, 3), ones(2, 3))
    assert executor.run == executor._plain.run
    monkeypatch.setattr(clustered, "WORTH_SECONDS", 0.0)
    for seconds in (1.0, 1.0, 1.0, 1e12):
        executor.duration.note(seconds)
    wait(executor)
    warm_up(executor, ones(2, 3), ones(2, 3))
    assert cluster_of(executor).state is State.COMPILED


@pytest.mark.usefixtures("eager")
def test_a_dissolved_cluster_is_observed_again_when_the_step_becomes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = Graph()
    x, y = graph.placeholder("float32", "x"), graph.placeholder("float32", "y")
    graph.add("Relu", graph.add("AddV2", x, x)[0], name="a")
    graph.add("Relu", graph.add("AddV2", y, y)[0], name="b")
    executor = executor_of(graph, ["x", "y"], ["a", "b"])
    decide = BackgroundCluster._note_numpy_run
    verdicts: dict[BackgroundCluster, bool] = {}

    def first_is_small(self: BackgroundCluster, *arguments: Any) -> None:
        is_small = verdicts.setdefault(self, not verdicts)
        monkeypatch.setattr(background_cluster, "WORTH_SECONDS", 1e9 if is_small else 0.0)
        decide(self, *arguments)

    monkeypatch.setattr(BackgroundCluster, "_note_numpy_run", first_is_small)
    warm_up(executor, ones(2, 3), ones(2, 3))
    assert executor.clustered is not None
    assert len(executor.clustered.clusters) == 1
    verdicts.update(dict.fromkeys(verdicts, False))
    for seconds in (1.0, 1.0, 1.0, 1e12):
        executor.duration.note(seconds)
    warm_up(executor, ones(2, 3), ones(2, 3), runs=30)
    assert [each.state_name for each in executor.clustered.clusters] == ["compiled"] * 2


@pytest.mark.usefixtures("eager")
def test_divided_clusters_are_divided_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time one more node is refused."""
    graph = Graph()
    value = graph.placeholder("float32", "x")
    for number in range(2 * MAX_SPLITS + 6):
        value = graph.add("Relu", value, name=f"relu_{number}")[0]
    requests: list[FormRequest] = []

    def refuse_last(request: FormRequest, *_: object) -> CompiledForm:
        requests.append(request)
        raise RefusedError({request.cluster.nodes[-1]: "refused"})

    monkeypatch.setattr(background_cluster, "compile_form", refuse_last)
    executor = executor_of(graph, ["x"], [value[0].partition(":")[0]])
    warm_up(executor, ones(2, 3), runs=60)
    assert len(requests) == MAX_SPLITS + 1
    (got,) = executor.run(new_step(), [ones(2, 3)])
    np.testing.assert_array_equal(got, ones(2, 3))
    assert executor.clustered is None


@pytest.mark.usefixtures("eager")
def test_a_run_that_began_before_a_form_was_there_requests_no_other() -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(executor, ones(2, 3), ones(2, 3))
    cluster = cluster_of(executor)
    before, forms = cluster_counts.figures().compilations, cluster.forms
    cluster._want_form(((2, 3), (2, 3)), None, is_low_priority=False)
    wait(executor)
    assert cluster_counts.figures().compilations == before
    assert cluster.forms == forms
