"""Values that depend on variables only: computed once for each state of the variables."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    CancelledError,
    DirectSession,
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
    RunRequest,
    SessionOptions,
    new_session,
)
from runtime.executors.derived_executor import DerivedExecutor
from runtime.executors.step import Step
from runtime.framework.cancellation import CancellationManager
from runtime.framework.op_kernel import KernelDef
from runtime.framework.resources.variable import shape_changes
from runtime.sessions.direct.short_step import INLINE_SECONDS
from tests.unit.runtime.executors.derived_sessions import (
    ONE,
    X,
    change,
    derived_executor_of,
    derived_in,
    executor_of,
    forks_of,
    in_caller,
    scale_graph,
    scale_session,
    use_in,
    y_of,
)
from tests.unit.runtime.graph.passes.divided_steps import VariableGraph
from tests.unit.runtime.sessions.graphs import direct_session

SECONDS = 30  # to wait for another thread


@pytest.fixture(params=["", "SINGLE_THREADED_EXECUTOR", "DATAFLOW"])
def session(request: pytest.FixtureRequest) -> DirectSession:
    return scale_session(in_caller(request.param))


# When values are computed


def test_values_are_computed_once(session: DirectSession) -> None:
    assert y_of(session) == [5, 50]
    first = derived_in(session)
    assert [value.tolist() for value in first.values] == [[5, 5]]
    assert y_of(session) == [5, 50]
    assert derived_in(session) is first


@pytest.mark.parametrize(
    ("target", "y"), [("set_v", [7, 70]), ("add_v", [9, 90]), ("add_w", [7, 70])]
)
def test_a_write_is_seen_by_the_next_run(
    session: DirectSession, target: str, y: list[float]
) -> None:
    for _ in range(2):
        y_of(session)
    change(session, target, 2 * ONE)
    assert y_of(session) == y
    change(session, target, 2 * ONE)
    assert y_of(session) == (y if target == "set_v" else [2 * y[0] - 5, 2 * y[1] - 50])


def test_a_write_to_another_variable_changes_nothing(session: DirectSession) -> None:
    y_of(session)
    before = use_in(session)
    change(session, "add_u")
    change(scale_session(), "add_v")
    y_of(session)
    after = use_in(session)
    assert before is not None
    assert after is not None
    assert after.values is before.values
    assert after.newest is not before.newest


def test_the_same_array_assigned_with_other_elements(session: DirectSession) -> None:
    buffer = ONE.copy()
    for factor in (1, 2, 3):
        buffer[:] = factor
        change(session, "set_v", buffer)
        assert y_of(session) == [2 * factor + 3, 10 * (2 * factor + 3)]


def test_a_callable_and_a_step_on_a_pool() -> None:
    session = scale_session(pb.ConfigProto())
    handle = session.make_callable(pb.CallableOptions(feed=["x"], fetch=["y"]))
    for addend in (0, 1, 1):
        change(session, "add_w", addend * ONE)
        expected = y_of(session)
        assert session.run_callable(handle, [X])[0].tolist() == expected
        assert session.run_async(RunRequest({"x": X}, ["y"])).result(SECONDS)[0].tolist() == (
            expected
        )
    session.destroy()


def test_a_removed_variable_is_noticed() -> None:
    session = scale_session()
    y_of(session)
    session.resources.clear()
    with pytest.raises(FailedPreconditionError, match="Could not find variable v"):
        y_of(session)
    session.run({}, (), ("init_v", "init_w"))
    assert y_of(session) == [5, 50]


def test_a_reference_variable() -> None:
    graph = VariableGraph()
    v = graph.reference("v")
    graph.add("Assign", v, graph.x, name="set")
    read = graph.add("Identity", v, name="read")[0]
    graph.add("Mul", graph.add("Neg", read, name="n")[0], graph.x, name="y")
    session = direct_session(graph.graph_def, in_caller())
    with pytest.raises(FailedPreconditionError, match="uninitialized value v"):
        y_of(session)
    for value in (ONE, 2 * ONE):
        session.run({"x": value}, (), ("set",))
        assert y_of(session) == (-value * X).tolist()
    assert isinstance(executor_of(session), DerivedExecutor)


# What a step sees of its own and of other sessions


def test_sessions_of_one_template_share_values_until_one_assigns() -> None:
    origin = scale_session()
    one, other = forks_of(origin, 2)
    assert [y_of(each) for each in (origin, one, other)] == [[5, 50]] * 3
    assert derived_in(one) is derived_in(other) is derived_in(origin)
    change(one, "add_v")
    assert [y_of(each) for each in (origin, one, other)] == [[5, 50], [7, 70], [5, 50]]
    assert derived_in(other) is derived_in(origin)
    assert derived_in(one) is not derived_in(origin)


def test_sessions_that_share_resources() -> None:
    one = scale_session()
    other = DirectSession(
        SessionOptions(config=in_caller()),
        one._devices,
        one._pools,
        one._kernels,
        resources=one.resources,
    )
    other.create(scale_graph())
    assert y_of(one) == y_of(other) == [5, 50]
    change(one, "add_v")
    assert y_of(one) == y_of(other) == [7, 70]


def test_extend() -> None:
    session = scale_session()
    y_of(session)
    more = VariableGraph()
    del more.graph_def.node[:]
    more.add("Neg", ("s:0", more.x[1]), name="negated")
    session.extend(more.graph_def)
    assert session.run({}, ["negated"])[0].tolist() == [-5, -5]
    change(session, "add_v")
    assert session.run({}, ["negated"])[0].tolist() == [-7, -7]
    assert y_of(session) == [7, 70]


# Fetched values


@pytest.mark.parametrize("pool", [False, True])
def test_a_fetched_value_may_be_written(session: DirectSession, pool: bool) -> None:
    def s() -> np.ndarray:
        request = RunRequest({}, ["s"])
        found = session.run_async(request).result(SECONDS) if pool else session.run({}, ["s"])
        result: np.ndarray = found[0]
        return result

    fetched = s()
    fetched += 1
    assert s().tolist() == [5, 5]
    assert y_of(session) == [5, 50]


def test_a_fetched_value_does_not_change(session: DirectSession) -> None:
    s, v = session.run({}, ["s", "rv"])
    change(session, "add_v")
    y_of(session)
    assert (s.tolist(), v.tolist()) == ([5, 5], [1, 1])
    assert session.run({}, ["rv"])[0].tolist() == [2, 2]


# Errors


def both(graph: pb.GraphDef, fetches: Sequence[str], inits: Sequence[str] = ()) -> list[OpError]:
    """The errors of a step with and without the optimiser."""
    errors = []
    for level in (pb.OptimizerOptions.L1, pb.OptimizerOptions.L0):
        config = in_caller()
        config.graph_options.optimizer_options.opt_level = level
        session = direct_session(graph, config)
        if inits:
            session.run({}, (), inits)
        for _ in range(2):
            with pytest.raises(OpError) as caught:
                session.run({"x": X}, fetches)
        errors.append(caught.value)
    return errors


def test_a_variable_without_a_value_is_the_error_of_its_read() -> None:
    one, other = both(scale_graph(), ["y"], ["init_v"])
    assert isinstance(one, FailedPreconditionError)
    assert (one.message, one.node) == (other.message, other.node)
    assert one.node == "rw"


def test_the_error_of_a_node_of_the_part() -> None:
    graph = VariableGraph()
    handle = graph.handle("v")
    graph.add("AssignVariableOp", handle, np.zeros(3, np.float32), name="init", dtype="float32")
    sum_ = graph.add("AddV2", graph.read(handle, "r"), ONE, name="sum")[0]
    graph.add("Mul", graph.x, sum_, name="y")
    one, other = both(graph.graph_def, ["y"], ["init"])
    assert isinstance(one, InvalidArgumentError)
    assert (one.message, one.node) == (other.message, other.node)
    assert one.node == "sum"


def test_a_variable_of_another_type() -> None:
    graph = VariableGraph()
    wrong = graph.handle("v", "wrong", dtype="int32")
    graph.add("AssignVariableOp", wrong, np.int32([1, 2]), name="init", dtype="int32")
    graph.add("Mul", graph.x, graph.read(graph.handle("v"), "r"), name="y")
    one, other = both(graph.graph_def, ["y"], ["init"])
    assert one.message == other.message
    assert "wrong dtype" in one.message


def test_a_cancelled_step_ends_while_the_part_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    session = scale_session()
    executor = derived_executor_of(session)
    cancellation = CancellationManager()
    run = executor._part.run

    def run_cancelled(step: Step, arguments: Sequence[Any]) -> list[Any]:
        cancellation.cancel(CancelledError("enough"))
        return run(step, arguments)

    monkeypatch.setattr(executor._part, "run", run_cancelled)
    request = RunRequest({"x": X}, ["y"], cancellation=cancellation)
    with pytest.raises(CancelledError, match="enough"):
        session.run_async(request).result(SECONDS)
    monkeypatch.undo()
    assert y_of(session) == [5, 50]


# Steps that run undivided


def test_a_traced_step_shows_all_nodes() -> None:
    session = scale_session()
    y_of(session)
    metadata = pb.RunMetadata()
    options = pb.RunOptions(trace_level=pb.RunOptions.FULL_TRACE, output_partition_graphs=True)
    change(session, "add_v")
    assert session.run({"x": X}, ["y"], (), options, metadata)[0].tolist() == [7, 70]
    traced = {
        node.node_name for stats in metadata.step_stats.dev_stats for node in stats.node_stats
    }
    assert {"v", "rv", "doubled", "s", "y"} <= traced
    assert {"v", "rv", "doubled", "s", "y"} <= {
        node.name for node in metadata.partition_graphs[0].node
    }


def test_values_much_larger_than_the_variables_are_not_kept() -> None:
    graph = VariableGraph()
    handle = graph.handle("v", shape=(2048,))
    initial = np.ones(2048, np.float32)
    graph.add("AssignVariableOp", handle, initial, name="init", dtype="float32")
    read = graph.read(handle, "r")
    column = graph.add("Reshape", read, np.int32([2048, 1]), name="column")[0]
    table = graph.add("Mul", read, column, name="table")[0]  # 16 MB
    graph.add("Mul", table, graph.placeholder("float32", "factor"), name="y")
    session = direct_session(graph.graph_def, in_caller())
    session.run({}, (), ["init"])
    for _ in range(2):
        y = session.run({"factor": np.float32(2)}, ["y"])[0]
        assert (y.shape, y[0, 0]) == ((2048, 2048), 2)
        assert session.resources.derived == {}


def test_steps_that_are_not_divided() -> None:
    config = in_caller()
    config.graph_options.optimizer_options.opt_level = pb.OptimizerOptions.L0
    own = SessionOptions(config=in_caller(), kernels=(KernelDef("Fact", lambda: b""),))
    with_own_kernel = new_session(own)
    assert isinstance(with_own_kernel, DirectSession)
    with_own_kernel.create(scale_graph())
    for session in (scale_session(config), with_own_kernel):
        assert not isinstance(executor_of(session), DerivedExecutor)


def test_a_partial_run_reads_when_it_runs() -> None:
    session = scale_session()
    handle = session.partial_run_setup(["x"], ["y"])
    assert session.partial_run(handle, {"x": X}, ["y"])[0].tolist() == [5, 50]


# Threads


def test_two_threads_that_compute_the_same_values_use_one_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    origin = scale_session()
    sessions = forks_of(origin, 2)
    executor = derived_executor_of(origin)
    meeting = threading.Barrier(2, timeout=SECONDS)
    run = executor._part.run

    def run_together(step: Step, arguments: Sequence[Any]) -> list[Any]:
        values = run(step, arguments)
        meeting.wait()
        return values

    monkeypatch.setattr(executor._part, "run", run_together)
    threads = [threading.Thread(target=y_of, args=(each,)) for each in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert derived_in(sessions[0]) is derived_in(sessions[1])


@pytest.mark.parametrize("is_same_array", [False, True])
def test_a_write_while_the_part_runs_is_seen_next_time(
    is_same_array: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = scale_session()
    buffer = ONE.copy()
    change(session, "set_v", buffer)
    executor = derived_executor_of(session)
    run = executor._part.run

    def run_during_a_write(step: Step, arguments: Sequence[Any]) -> list[Any]:
        values = run(step, arguments)
        if is_same_array:
            buffer[:] = 2
        change(session, "set_v", buffer if is_same_array else 2 * ONE)
        return values

    monkeypatch.setattr(executor._part, "run", run_during_a_write)
    assert y_of(session) == [5, 50]
    monkeypatch.undo()
    assert y_of(session) == [7, 70]


def test_a_step_that_must_compute_for_long_does_not_run_in_the_callers_thread() -> None:
    session = scale_session()
    request = RunRequest({"x": X}, ["y"])
    for _ in range(2):
        y_of(session)
    executor = executor_of(session)
    executor.duration.seconds, executor.measured_shapes = 0.0, shape_changes.count
    executor.preparation_seconds = 0.0
    assert session.run_if_short(request) is not None
    executor.preparation_seconds = INLINE_SECONDS
    assert session.run_if_short(request) is not None
    change(session, "add_v")
    assert session.run_if_short(request) is None
    assert y_of(session) == [7, 70]
    executor.duration.seconds = 0.0
    executor.preparation_seconds = INLINE_SECONDS
    found = session.run_if_short(request)
    assert found is not None
    assert found[0].tolist() == [7, 70]
