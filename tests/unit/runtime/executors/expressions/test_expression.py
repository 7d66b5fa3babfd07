"""Plans with expressions have the values, the errors and the memory of plans without."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.errors import InvalidArgumentError
from runtime.executors import plan_text
from runtime.executors.expressions import expression
from runtime.executors.expressions.expression import LEARNING_RUNS, MOST_ELEMENTS, Expression
from runtime.executors.step import Step
from runtime.executors.step_plan import StepPlan
from runtime.framework.memory_account import MemoryAccount
from tests.conformance.case import Graph
from tests.unit.runtime.executors.clustered_steps import new_step
from tests.unit.runtime.executors.expressions.programs import Endpoint, plan_of

pytest.importorskip("numexpr")

RUNS = LEARNING_RUNS + 4
DTYPES = ("float32", "float64", "int32", "int64")
SHAPES = ((1,), (3,), (2, 3), (2, 1), (1, 3), (0,), (), (300,), (4, 5, 3))


def chain(graph: Graph, value: Endpoint, length: int) -> Endpoint:
    for index in range(length):
        value = graph.add("AddV2", value, np.float32([index, 2]))[0]
    return value


def expressions_of(plan: StepPlan) -> list[Expression]:
    assert plan._groups
    return [each for _, each in plan._groups.values()]


def interpreted(plan: StepPlan, arguments: Sequence[np.ndarray]) -> list[Any]:
    return plan.run_measured(new_step(), arguments, {})


def counted_step() -> Step:
    step = new_step()
    step.memory = MemoryAccount("step", 1 << 30)
    return step


# --- values -------------------------------------------------------------------------------------


@st.composite
def trees(draw: st.DrawFn) -> tuple[Graph, list[str], list[str], str]:
    """A graph of element-wise operations on two feeds and constants of any shapes."""
    dtype = draw(st.sampled_from(DTYPES))
    binary = ["AddV2", "Sub", "Mul"] + (["RealDiv"] if dtype.startswith("float") else [])
    graph = Graph()
    values = [graph.placeholder(dtype, "x"), graph.placeholder(dtype, "y")]
    for index in range(draw(st.integers(1, 30))):
        op = draw(st.sampled_from([*binary, "Neg", "Square"]))
        recent = values[-draw(st.integers(1, 3)) :][0]
        inputs: list[Any] = [recent]
        if op in binary:
            shape = draw(st.sampled_from(((), (1,), (3,))))
            constant = np.full(shape, draw(st.sampled_from((0, 2, -3, 7))), dtype)
            inputs.append(draw(st.sampled_from([constant, *values])))
            if draw(st.booleans()):
                inputs.reverse()
        values.append(graph.add(op, *inputs, name=f"n{index}")[0])
    fetches = {values[-1][0], values[draw(st.integers(2, len(values) - 1))][0]}
    return graph, ["x", "y"], sorted(fetches), dtype


@settings(max_examples=150, deadline=None)
@given(trees(), st.lists(st.sampled_from(SHAPES), min_size=2, max_size=2), st.booleans(), st.data())
def test_values_are_those_of_kernels_to_the_bit(
    case: tuple[Graph, list[str], list[str], str],
    shapes: list[tuple[int, ...]],
    is_counted: bool,
    data: st.DataObject,
) -> None:
    graph, feeds, fetches, dtype = case
    plan = plan_of(graph, feeds, fetches)
    special = [0, 1, -1, 5, 1 << 30]
    if dtype.startswith("float"):
        special += [0.1, -0.0, float("nan"), float("inf")]
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    arguments = [rng.choice(np.array(special, dtype), shape) for shape in shapes]
    before = [argument.copy() for argument in arguments]
    try:
        want = interpreted(plan, arguments)
    except InvalidArgumentError as error:
        for _ in range(RUNS):
            with pytest.raises(InvalidArgumentError) as caught:
                plan.run(counted_step() if is_counted else new_step(), arguments)
            assert caught.value.message == error.message
        return
    for _ in range(RUNS):
        got = plan.run(counted_step() if is_counted else new_step(), arguments)
        for ours, theirs in zip(got, want, strict=True):
            assert type(ours) is type(theirs)
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
    for argument, copy in zip(arguments, before, strict=True):
        np.testing.assert_array_equal(argument, copy)


def test_an_expression_runs_for_shapes_that_were_met_often() -> None:
    graph = Graph()
    value = chain(graph, graph.placeholder("float32", "x"), 6)
    plan = plan_of(graph, ["x"], [value[0]])
    calls: list[tuple[int, ...]] = []
    for runs in range(1, RUNS + 2):
        (result,) = plan.run(new_step(), [np.float32([1, runs])])
        np.testing.assert_array_equal(result, np.float32([16, runs + 12]))
        if runs == 2:  # code is generated
            (only,) = expressions_of(plan)
        if runs >= 2:
            calls.append(tuple(only.known))
    assert calls[0] == ()
    assert calls[-1] == (((2,),),)
    plan.run(new_step(), [np.ones((3, 2), np.float32)])
    assert only.known == {((2,),)}


def test_large_results_stay_with_kernels() -> None:
    graph = Graph()
    value = graph.placeholder("float32", "x")
    for _ in range(5):
        value = graph.add("Mul", value, np.float32(3))[0]
    plan = plan_of(graph, ["x"], [value[0]])
    for _ in range(RUNS):
        plan.run(new_step(), [np.ones(MOST_ELEMENTS + 1, np.float32)])
    assert expressions_of(plan)[0].known == set()
    for _ in range(RUNS):
        plan.run(new_step(), [np.ones(MOST_ELEMENTS, np.float32)])
    assert expressions_of(plan)[0].known == {((MOST_ELEMENTS,),)}


def test_few_shapes_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expression, "_MOST_KNOWN", 3)
    graph = Graph()
    value = graph.placeholder("float32", "x")
    for _ in range(5):
        value = graph.add("Mul", value, np.float32(3))[0]
    plan = plan_of(graph, ["x"], [value[0]])
    for size in range(1, 8):
        for _ in range(RUNS):
            plan.run(new_step(), [np.ones(size, np.float32)])
    assert len(expressions_of(plan)[0].known) == 3


def test_groups_are_not_divided_between_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_text, "NODES_A_PART", 3)
    graph = Graph()
    x = graph.placeholder("float32", "x")
    middle = chain(graph, graph.add("Tanh", chain(graph, x, 5))[0], 7)
    last = graph.add("Exp", chain(graph, middle, 4))[0]
    plan = plan_of(graph, ["x"], [middle[0], last[0]])
    argument = [np.float32([-100, -1000])]
    want = interpreted(plan, argument)
    for _ in range(RUNS):
        np.testing.assert_array_equal(plan.run(new_step(), argument), want)
    assert all(each.known for each in expressions_of(plan))
    assert len(expressions_of(plan)) == 3


# --- what can go wrong --------------------------------------------------------------------------


def test_threads_run_a_plan_at_the_same_time() -> None:
    graph = Graph()
    value = chain(graph, graph.placeholder("float32", "x"), 40)
    plan = plan_of(graph, ["x"], [value[0]])
    wrong: list[object] = []

    def run(offset: int) -> None:
        for number in range(300):
            argument = np.float32([offset, number])
            (got,) = plan.run(new_step(), [argument])
            if not np.array_equal(got, np.float32([offset + 780, number + 80])):
                wrong.append((offset, number, got))

    threads = [threading.Thread(target=run, args=(offset,)) for offset in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert expressions_of(plan)[0].known


def test_what_numexpr_does_not_compile_stays_with_kernels(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(expression, "_compiled", broken)
    graph = Graph()
    value = chain(graph, graph.placeholder("float32", "x"), 6)
    plan = plan_of(graph, ["x"], [value[0]])
    with caplog.at_level(logging.WARNING):
        for _ in range(3 * RUNS):
            (got,) = plan.run(new_step(), [np.float32([1, 1])])
            np.testing.assert_array_equal(got, np.float32([16, 13]))
    assert [record.getMessage() for record in caplog.records] == [
        "Small operations stay on numpy kernels: no such thing"
    ]


def test_without_numexpr_there_are_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.executors.step_plan.is_available", lambda: False)
    graph = Graph()
    value = chain(graph, graph.placeholder("float32", "x"), 6)
    plan = plan_of(graph, ["x"], [value[0]])
    for _ in range(RUNS):
        (got,) = plan.run(new_step(), [np.float32([1, 1])])
        np.testing.assert_array_equal(got, np.float32([16, 13]))
    assert plan._groups == {}


def test_a_cancelled_step_ends_before_a_group() -> None:
    graph = Graph()
    value = chain(graph, graph.placeholder("float32", "x"), 6)
    plan = plan_of(graph, ["x"], [value[0]])
    for _ in range(RUNS):
        plan.run(new_step(), [np.float32([1, 1])])
    step = new_step()
    step.cancellation.cancel(InvalidArgumentError("stopped"))
    with pytest.raises(InvalidArgumentError, match="stopped"):
        plan.run(step, [np.float32([1, 1])])


def test_low_priority_plans_wait_at_the_gate_once_for_a_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Gate:
        pending = True
        waits = 0

        def wait(self) -> None:
            self.waits += 1

    gate = Gate()
    monkeypatch.setattr(plan_text, "gate", gate)
    graph = Graph()
    value = chain(graph, graph.placeholder("float32", "x"), 6)
    plan = plan_of(graph, ["x"], [value[0]])
    waits = []
    for _ in range(RUNS + 2):
        step = new_step()
        step.is_low_priority = True
        gate.waits = 0
        plan.run(step, [np.float32([1, 1])])
        waits.append(gate.waits)
    assert waits[-1] == 1
