"""Plans with expressions have the values, the errors and the memory of plans without."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.errors import InvalidArgumentError
from runtime.executors import plan_text, step_plan
from runtime.executors.expressions import expression
from runtime.executors.expressions.expression import (
    LEARNING_RUNS,
    MOST_ELEMENTS,
    Expression,
    most_elements,
)
from runtime.executors.instructions import Program
from runtime.executors.plan_text import GeneratedPlan, Groups
from runtime.executors.step import Step
from runtime.executors.step_plan import StepPlan
from runtime.framework.memory_account import MemoryAccount
from tests.conformance.case import Graph
from tests.unit.runtime.executors.clustered_steps import new_step
from tests.unit.runtime.executors.expressions.programs import Endpoint, plan_of

pytest.importorskip("numexpr")

RUNS = LEARNING_RUNS + 4
DTYPES = ("float32", "float64", "int32", "int64")
SHAPES = ((1,), (3,), (2, 3), (2, 1), (1, 3), (0,), (), (300,), (4, 3))


def chain(graph: Graph, value: Endpoint, length: int) -> Endpoint:
    for index in range(length):
        value = graph.add("AddV2", value, np.float32([index, 2]))[0]
    return value


def long_product(graph: Graph) -> Endpoint:
    value = graph.placeholder("float32", "x")
    for _ in range(40):
        value = graph.add("Mul", value, np.float32(3))[0]
    return value


def in_bits(value: Any) -> tuple[object, ...]:
    """What two equal values have in common to the bit, but for the signs of NaN."""
    array = np.asarray(value)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return type(value), array.dtype, array.shape, array.tobytes(), np.asarray(value).strides


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


SPECIAL = {
    "f": [0, 1, -1, 5, 0.1, -0.0, float("nan"), float("inf"), -float("inf"), 1e-45, 3e38],
    "i": [0, 1, -1, 5, 1 << 30, -(1 << 31), (1 << 31) - 1],
}


@st.composite
def trees(draw: st.DrawFn) -> tuple[Graph, list[str], list[str], str]:
    """A graph of element-wise operations on two feeds and constants of any shapes."""
    dtype = draw(st.sampled_from(DTYPES))
    binary = ["AddV2", "Sub", "Mul"] + (["RealDiv"] if dtype.startswith("float") else [])
    graph = Graph()
    values = [graph.placeholder(dtype, "x"), graph.placeholder(dtype, "y")]
    for index in range(draw(st.integers(8, 40))):
        op = draw(st.sampled_from([*binary, *binary, "Neg", "Square", "Abs"]))
        inputs: list[Any] = [values[-1]]
        if op in binary:
            shape = draw(st.sampled_from(((), (1,), (3,))))
            constant = np.full(shape, draw(st.sampled_from((0, 2, -3, 7))), dtype)
            inputs.append(draw(st.sampled_from([constant, constant, *values])))
            if draw(st.booleans()):
                inputs.reverse()
        values.append(graph.add(op, *inputs, name=f"n{index}")[0])
    fetches = {values[-1][0], values[draw(st.integers(2, len(values) - 1))][0]}
    return graph, ["x", "y"], sorted(fetches), dtype


@settings(max_examples=150, deadline=None)
@given(
    trees(),
    st.lists(st.sampled_from(SHAPES), min_size=2, max_size=2),
    st.booleans(),
    st.booleans(),
    st.integers(0, 9),
)
def test_values_are_those_of_kernels_to_the_bit(
    case: tuple[Graph, list[str], list[str], str],
    shapes: list[tuple[int, ...]],
    is_counted: bool,
    is_transposed: bool,
    seed: int,
) -> None:
    graph, feeds, fetches, dtype = case
    plan = plan_of(graph, feeds, fetches)
    rng = np.random.default_rng(seed)
    special = np.array(SPECIAL[dtype[0]], dtype)
    arguments = [rng.choice(special, shape) for shape in shapes]
    if is_transposed:
        arguments[0] = np.asarray(arguments[0].T.copy().T)
    before = [argument.copy() for argument in arguments]

    def step() -> Step:
        return counted_step() if is_counted else new_step()

    try:
        want = [in_bits(value) for value in interpreted(plan, arguments)]
    except InvalidArgumentError as error:
        for _ in range(RUNS):
            with pytest.raises(InvalidArgumentError) as caught:
                plan.run(step(), arguments)
            assert caught.value.message == error.message
        return
    for _ in range(RUNS):
        assert [in_bits(value) for value in plan.run(step(), arguments)] == want
    for argument, copy in zip(arguments, before, strict=True):
        np.testing.assert_array_equal(argument, copy)


def test_an_expression_runs_for_shapes_that_were_met_often() -> None:
    graph = Graph()
    value = chain(graph, graph.placeholder("float32", "x"), 8)
    plan = plan_of(graph, ["x"], [value[0]])
    calls: list[tuple[int, ...]] = []
    for runs in range(1, RUNS + 2):
        (result,) = plan.run(new_step(), [np.float32([1, runs])])
        np.testing.assert_array_equal(result, np.float32([29, runs + 16]))
        if runs == 2:  # code is generated
            (only,) = expressions_of(plan)
        if runs >= 2:
            calls.append(tuple(only.known))
    assert calls[0] == ()
    assert calls[-1] == (((2,), (4,)),)
    plan.run(new_step(), [np.ones((3, 2), np.float32)])
    assert only.known == {((2,), (4,))}


def test_large_results_stay_with_kernels() -> None:
    graph = Graph()
    plan = plan_of(graph, ["x"], [long_product(graph)[0]])
    for _ in range(RUNS):
        plan.run(new_step(), [np.ones(MOST_ELEMENTS + 1, np.float32)])
    assert expressions_of(plan)[0].known == set()
    for _ in range(RUNS):
        plan.run(new_step(), [np.ones(MOST_ELEMENTS, np.float32)])
    assert expressions_of(plan)[0].known == {((MOST_ELEMENTS,), (4,))}


@pytest.mark.parametrize(("operations", "elements"), [(7, 24), (8, 32), (16, 96), (64, 256)])
def test_longer_groups_are_worth_it_for_more_elements(operations: int, elements: int) -> None:
    assert most_elements(operations) == elements


def test_a_group_that_never_has_small_results_stops_to_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(expression, "_MOST_REFUSALS", 5)
    graph = Graph()
    plan = plan_of(graph, ["x"], [long_product(graph)[0]])
    for _ in range(RUNS):
        plan.run(new_step(), [np.ones(MOST_ELEMENTS + 1, np.float32)])
    (only,) = expressions_of(plan)
    assert not only.learns
    plan.run(new_step(), [np.ones(1, np.float32)])
    assert only._runs == {}


def test_inputs_in_another_order_stay_with_kernels() -> None:
    graph = Graph()
    plan = plan_of(graph, ["x"], [long_product(graph)[0]])
    ordered = np.ones((4, 3), np.float32)
    for argument in (np.asfortranarray(ordered), ordered[:, ::-1], ordered):
        for _ in range(RUNS):
            plan.run(new_step(), [argument])
    assert expressions_of(plan)[0].known == {((4, 3), (12, 4))}


def test_few_shapes_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expression, "_MOST_KNOWN", 3)
    graph = Graph()
    plan = plan_of(graph, ["x"], [long_product(graph)[0]])
    for size in range(1, 8):
        for _ in range(RUNS):
            plan.run(new_step(), [np.ones(size, np.float32)])
    assert len(expressions_of(plan)[0].known) == 3


def test_groups_are_not_divided_between_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_text, "NODES_A_PART", 3)
    graph = Graph()
    x = graph.placeholder("float32", "x")
    middle = chain(graph, graph.add("Tanh", chain(graph, x, 8))[0], 10)
    last = graph.add("Exp", chain(graph, middle, 7))[0]
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


def test_threads_that_generate_code_at_the_same_time_share_what_is_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = Graph()
    plan = plan_of(graph, ["x"], [long_product(graph)[0]])
    argument = [np.ones(3, np.float32)]
    plan.run(new_step(), argument)  # interpreted
    both_search, find_groups = threading.Barrier(2), step_plan.find_groups
    generate, used = step_plan.generate, []

    def find_groups_together(program: Program) -> Any:
        both_search.wait(10)
        return find_groups(program)

    def generate_noted(program: Program, is_low: bool, groups: Groups) -> GeneratedPlan:
        used.append(groups)
        return generate(program, is_low, groups)

    monkeypatch.setattr(step_plan, "find_groups", find_groups_together)
    monkeypatch.setattr(step_plan, "generate", generate_noted)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda step: plan.run(step, argument), [new_step(), new_step()]))
    assert used[0] is used[1]
    for _ in range(RUNS):
        plan.run(new_step(), argument)
    assert [each.known for each in expressions_of(plan)] == [{((3,), (4,))}]


@pytest.mark.parametrize("when", ["compiled", "called"])
def test_what_numexpr_refuses_stays_with_kernels(
    when: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no such thing")

    if when == "compiled":
        monkeypatch.setattr(expression, "_program", broken)
    else:
        monkeypatch.setattr(expression, "_copy", lambda _: broken)

    graph = Graph()
    value = chain(graph, graph.placeholder("float32", "x"), 8)
    plan = plan_of(graph, ["x"], [value[0]])
    with caplog.at_level(logging.WARNING):
        for _ in range(3 * RUNS):
            (got,) = plan.run(new_step(), [np.float32([1, 1])])
            np.testing.assert_array_equal(got, np.float32([29, 17]))
    assert [record.getMessage() for record in caplog.records] == [
        "Small operations stay on numpy kernels: no such thing"
    ]


def test_a_numexpr_that_can_not_be_imported_is_reported_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "numexpr", None)
    expression._numexpr.cache_clear()
    graph = Graph()
    value = chain(graph, graph.placeholder("float32", "x"), 300)
    plan = plan_of(graph, ["x"], [value[0]])
    try:
        with caplog.at_level(logging.WARNING):
            for _ in range(3 * RUNS):
                plan.run(new_step(), [np.float32([1, 1])])
    finally:
        expression._numexpr.cache_clear()
    assert len(expressions_of(plan)) > 1
    (record,) = caplog.records
    assert "without numexpr" in record.getMessage()


def test_numexpr_starts_no_threads() -> None:
    program = """
import os
from runtime.executors.expressions import expression
expression._numexpr()
print(len(os.listdir("/proc/self/task")), "NUMEXPR_NUM_THREADS" in os.environ)
"""
    environment = {
        key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")
    }
    environment["OPENBLAS_NUM_THREADS"] = "1"
    printed = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert printed.split() == ["1", "False"]


def test_without_numexpr_there_are_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.executors.step_plan.is_available", lambda: False)
    graph = Graph()
    value = chain(graph, graph.placeholder("float32", "x"), 8)
    plan = plan_of(graph, ["x"], [value[0]])
    for _ in range(RUNS):
        (got,) = plan.run(new_step(), [np.float32([1, 1])])
        np.testing.assert_array_equal(got, np.float32([29, 17]))
    assert plan._groups == {}


def test_a_cancelled_step_ends_before_a_group() -> None:
    graph = Graph()
    value = chain(graph, graph.placeholder("float32", "x"), 8)
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
    value = chain(graph, graph.placeholder("float32", "x"), 8)
    plan = plan_of(graph, ["x"], [value[0]])
    waits = []
    for _ in range(RUNS + 2):
        step = new_step()
        step.is_low_priority = True
        gate.waits = 0
        plan.run(step, [np.float32([1, 1])])
        waits.append(gate.waits)
    assert waits[-1] == 1
