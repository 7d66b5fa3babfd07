"""Clustered executors: when a step changes to models, what it keeps, and what it gives up."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from runtime.clusters.running import background_cluster
from runtime.clusters.running.background_cluster import State
from runtime.clusters.running.cluster import LAST_JUDGED_RUN
from runtime.executors import clustered, clustered_plan
from runtime.foundation.errors import CancelledError, OpError
from runtime.framework.cancellation import CancellationManager
from runtime.framework.resources.variable import shape_changes
from tests.unit.runtime.executors.clustered_steps import (
    WAIT_SECONDS,
    cluster_of,
    eager,
    executor_of,
    new_step,
    ones,
    relu_of_sum,
    run_with,
    values_of,
    wait,
    warm_up,
    warm_up_with,
)

pytest.importorskip("onnxruntime")
__all__ = ["eager"]


def test_a_short_step_keeps_its_plain_executor_with_nothing_around_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clustered, "WORTH_SECONDS", 1e9)
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(executor, ones(2), ones(2))
    assert executor.clustered is None
    assert executor.run == executor._plain.run


@pytest.mark.usefixtures("eager")
def test_inputs_as_small_as_those_that_were_too_short_are_left_to_the_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as at_first:
        at_first.setattr(clustered, "WORTH_SECONDS", 1e9)
        executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
        warm_up(executor, ones(2), ones(2))
    assert executor.clustered is None
    executor._decide_again()  # as after a run that takes much longer
    warm_up(executor, ones(1000), ones(1000))
    (form,) = cluster_of(executor).forms
    used = form.runs
    for values in (ones(2), ones(1), ones(0)):
        (got,) = executor.run(new_step(), [values, values])
        np.testing.assert_array_equal(got, 2 * values)
    assert form.runs == used
    executor.run(new_step(), [ones(500), ones(500)])
    assert form.runs == used + 1
    shape_changes.note()  # of a variable of another step: this one has none
    executor.run(new_step(), [ones(2), ones(2)])
    assert form.runs == used + 1


def test_inputs_of_the_shortest_measured_run_are_the_short_ones() -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    for seconds, size in [(1e-3, 9), (1e-3, 9), (1e-6, 2), (1e-5, 900), (1e-7, 1000)]:
        executor._note(seconds, [ones(size), ones(size)], 0)  # the last one ended too late
    short = executor._short_inputs
    assert short is not None
    assert short.bound([ones(2), ones(1)])
    assert not short.bound([ones(3), ones(1)])


@pytest.mark.parametrize(
    ("arguments", "is_bound"),
    [
        ([ones(1, 1000), ones(1, 1000)], True),
        ([ones(1, 2), ones(0, 3)], True),
        ([ones(1000, 1), ones(1, 1000)], False),  # as many elements, and a product of both
        ([ones(1000), ones(1, 1000)], False),
        ([ones(1, 1001), ones(1, 2)], False),
    ],
)
def test_shapes_bound_the_work_of_a_step(arguments: list[np.ndarray], is_bound: bool) -> None:
    inputs = clustered._Inputs([ones(1, 1000), ones(1, 1000)], None)
    assert inputs.bound(arguments) is is_bound


def test_strings_are_bound_by_their_bytes() -> None:
    inputs = clustered._Inputs([np.array([b"abc", b""], object)], None)
    assert inputs.bound([np.array([b"a", b"bc"], object)])
    assert not inputs.bound([np.array([b"abc", b"d"], object)])


def test_the_work_is_not_bound_any_more_when_a_variable_has_changed_its_shape() -> None:
    inputs = clustered._Inputs([ones(2)], shape_changes.count)
    assert inputs.bound([ones(2)])
    shape_changes.note()
    assert not inputs.bound([ones(2)])


@pytest.mark.usefixtures("eager")
def test_a_step_changes_to_a_model_after_some_runs() -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    assert executor.clustered is None
    warm_up(executor, ones(2, 3), -2 * ones(3))
    assert cluster_of(executor).state is State.COMPILED
    (got,) = executor.run(new_step(), [2 * ones(5, 3), -ones(3)])
    np.testing.assert_array_equal(got, ones(5, 3))
    (form,) = cluster_of(executor).forms
    assert form.runs > 0


def test_a_cluster_that_is_too_small_dissolves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustered, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(background_cluster, "WORTH_SECONDS", 1e9)
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(executor, ones(2), ones(2))
    assert executor.clustered is None
    assert executor.run == executor._plain.run


@pytest.mark.usefixtures("eager")
def test_a_cluster_dissolves_if_the_engine_is_no_faster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(clustered, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(background_cluster, "WORTH_SECONDS", 0.0)
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(executor, ones(2, 3), ones(3))
    cluster = cluster_of(executor)
    cluster.numpy_seconds = dict.fromkeys(cluster.numpy_seconds, 0.0)
    warm_up(executor, ones(2, 3), ones(3), runs=20)
    assert executor.clustered is not None, "something else may have slowed the first runs"
    cluster.forms[0].runs = LAST_JUDGED_RUN - 1
    warm_up(executor, ones(2, 3), ones(3), runs=2)
    assert executor.clustered is None


@pytest.mark.usefixtures("eager")
def test_other_inner_sizes_give_one_more_general_form() -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(executor, ones(2, 3), ones(2, 3))
    warm_up(executor, ones(2, 4), ones(2, 4), runs=2)
    form = cluster_of(executor).forms[0]
    assert [[str(size) for size in shape] for shape in form.pattern] == [["size_0", "size_1"]] * 2
    (got,) = executor.run(new_step(), [ones(7, 9), ones(7, 9)])
    np.testing.assert_array_equal(got, 2 * ones(7, 9))


@pytest.mark.usefixtures("eager")
def test_shapes_that_do_not_fit_give_the_error_of_the_kernels() -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(executor, ones(2, 3), ones(2, 3))
    with pytest.raises(OpError, match="Incompatible shapes") as caught:
        executor.run(new_step(), [ones(2, 3), ones(2, 4)])
    assert caught.value.node == "AddV2_2"


@pytest.mark.usefixtures("eager")
def test_weights_are_baked_while_the_derived_values_are_the_same() -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"], source_count=1)
    first, second = values_of(ones(3)), values_of(5 * ones(3))
    warm_up_with(executor, ones(2, 3), first)
    (form,) = cluster_of(executor).forms
    assert form.is_baked
    for derived in (first, second, first, values_of(3 * ones(3))):
        got = run_with(executor, ones(2, 3), derived)
        np.testing.assert_array_equal(got, ones(2, 3) + derived.arrays[0])


@pytest.mark.usefixtures("eager")
def test_the_same_array_in_other_derived_values_is_another_weight() -> None:
    """A program may assign one array twice, with other elements the second time."""
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"], source_count=1)
    array = ones(3)
    warm_up_with(executor, ones(2, 3), first := values_of(array))
    assert cluster_of(executor).forms[0].holds(first)
    array[:] = 7
    got = run_with(executor, ones(2, 3), values_of(array))
    np.testing.assert_array_equal(got, 8 * ones(2, 3))


@pytest.mark.usefixtures("eager")
def test_other_derived_values_that_stay_get_a_form_beside_the_baked_one() -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"], source_count=1)
    first, second = values_of(ones(100, 3)), values_of(5 * ones(100, 3))
    warm_up_with(executor, ones(1, 3), first)
    warm_up_with(executor, ones(1, 3), second)
    cluster = cluster_of(executor)
    assert [form.is_baked for form in cluster.forms] == [False, True]
    runs = cluster.forms[0].runs
    for derived in (second, first, second):
        got = run_with(executor, ones(1, 3), derived)
        np.testing.assert_array_equal(got, ones(1, 3) + derived.arrays[0])
    assert cluster.forms[0].runs == runs + 2


@pytest.mark.usefixtures("eager")
def test_sources_of_another_shape_are_never_given_to_a_model() -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"], source_count=1)
    warm_up_with(executor, ones(1, 3), first := values_of(ones(3)))
    warm_up_with(executor, ones(1, 3), second := values_of(5 * ones(3)))
    got = run_with(executor, ones(1, 3), values_of(ones(4, 3)))
    np.testing.assert_array_equal(got, 2 * ones(4, 3))
    assert first is not second


@pytest.mark.usefixtures("eager")
def test_a_form_keeps_no_derived_values_in_memory() -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"], source_count=1)
    first, second = values_of(ones(100, 3)), values_of(5 * ones(100, 3))
    warm_up_with(executor, ones(1, 3), first)
    warm_up_with(executor, ones(1, 3), second)
    references = weakref.ref(first), weakref.ref(second)
    del first, second
    gc.collect()
    assert [reference() for reference in references] == [None, None]


@pytest.mark.usefixtures("eager")
def test_low_priority_steps_use_a_form_of_one_thread() -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(executor, ones(2, 3), ones(3))
    cluster = cluster_of(executor)
    cluster._set_forms(())
    for _ in range(2):
        executor.run(new_step(is_low_priority=True), [ones(2, 3), ones(3)])
        wait(executor)
    assert [form.threads for form in cluster.forms] == [1]


@pytest.mark.usefixtures("eager")
def test_a_step_stays_in_this_process_while_it_has_models() -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    executor.set_portable_factory(lambda: "portable")  # type: ignore[arg-type,return-value] # a mark
    assert executor.portable == "portable"
    warm_up(executor, ones(2, 3), ones(3))
    assert executor.portable is None
    assert not executor.has_lasting_effect


def test_a_step_that_no_process_could_run_has_no_lasting_effect_for_that() -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    executor.set_portable_factory(lambda: "portable")  # type: ignore[arg-type,return-value] # a mark
    executor.mark_not_portable()
    assert executor.portable is None
    assert not executor.has_lasting_effect
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    executor.set_portable_factory(lambda: None)
    assert executor.has_lasting_effect


@pytest.mark.usefixtures("eager")
def test_a_cancelled_step_ends_with_the_error_of_its_cancellation() -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(executor, ones(2, 3), ones(3))
    cancellation = CancellationManager()
    (form,) = cluster_of(executor).forms
    form.seconds = 1.0
    run = form.model.run

    def cancel_and_run(arrays: Sequence[np.ndarray], control: Any = None) -> list[np.ndarray]:
        cancellation.cancel(CancelledError("enough"))
        return run(arrays, control)

    form.model.run = cancel_and_run  # type: ignore[method-assign] # the moment of cancellation
    with pytest.raises(CancelledError, match="enough"):
        executor.run(new_step(cancellation=cancellation), [ones(2, 3), ones(3)])
    form.model.run = run  # type: ignore[method-assign] # as before
    (got,) = executor.run(new_step(), [ones(2, 3), ones(3)])
    np.testing.assert_array_equal(got, 2 * ones(2, 3))
    assert form.failures == 0


@pytest.mark.usefixtures("eager")
def test_a_failed_compilation_leaves_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(background_cluster, "compile_form", fail)
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(executor, ones(2, 3), ones(3))
    assert executor.clustered is None
    (got,) = executor.run(new_step(), [ones(2, 3), ones(3)])
    np.testing.assert_array_equal(got, 2 * ones(2, 3))


@pytest.mark.usefixtures("eager")
def test_without_an_engine_steps_stay_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustered_plan, "find_engine", lambda _: None)
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(executor, ones(2, 3), ones(3))
    assert executor.clustered is None


@pytest.mark.usefixtures("eager")
def test_a_freed_executor_drops_its_jobs_and_nobody_waits() -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    jobs = executor._queue
    interrupt = executor._interrupt
    hold, begun = threading.Event(), threading.Event()
    jobs.submit(lambda: (begun.set(), hold.wait(WAIT_SECONDS)), background_cluster.Interrupt())
    assert begun.wait(WAIT_SECONDS)
    for _ in range(6):
        executor.run(new_step(), [ones(2, 3), ones(3)])
    reference = weakref.ref(executor)
    del executor
    gc.collect()
    assert reference() is None
    assert interrupt.is_set
    hold.set()
    assert jobs.wait_until_idle(WAIT_SECONDS)


@pytest.mark.usefixtures("eager")
def test_many_threads_share_one_cluster() -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for batch in range(1, 40):
                x = np.full((batch, 3), number, np.float32)
                (got,) = executor.run(new_step(), [x, ones(3)])
                np.testing.assert_array_equal(got, x + 1)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    wait(executor)


@pytest.mark.usefixtures("eager")
def test_a_compiled_step_is_freed_without_the_collector() -> None:
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(executor, ones(2, 3), ones(3))
    assert executor.clustered is not None
    plan = weakref.ref(executor.clustered)
    gc.collect()
    gc.disable()
    try:
        del executor
        assert plan() is None
    finally:
        gc.enable()
