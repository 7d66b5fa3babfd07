"""Which instructions of a program become one expression."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.executors.expressions import groups
from runtime.executors.expressions.groups import LEAST_OPERATIONS, Group, find_groups
from tests.conformance.case import Graph
from tests.unit.runtime.executors.expressions.programs import Endpoint, program_of


def chain(graph: Graph, value: Endpoint, length: int, dtype: str = "float32") -> Endpoint:
    for index in range(length):
        value = graph.add("AddV2", value, np.array([index, 2], dtype))[0]
    return value


def groups_of(graph: Graph, feeds: list[str], fetches: list[str]) -> list[Group]:
    return find_groups(program_of(graph, feeds, fetches))


def test_a_chain_is_one_group() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    square = graph.add("Square", x)[0]
    product = graph.add("Mul", chain(graph, square, 4), x)[0]
    y = graph.add("Neg", product, name="y")[0]
    (group,) = groups_of(graph, ["x"], [y[0]])
    assert (group.begin, group.end, len(group.slots), len(group.constants)) == (0, 7, 1, 4)
    assert group.text == "(-((((((a0*a0)+a1)+a2)+a3)+a4)*a0))"


def test_equal_constants_are_one_input() -> None:
    graph = Graph()
    value = graph.placeholder("float32", "x")
    for each in ([1, 2], [1, 2], [2, 1], [1, 2], [1], [2, 1], [1]):
        value = graph.add("Mul", value, np.float32(each))[0]
    (group,) = groups_of(graph, ["x"], [value[0]])
    assert group.text == "(((((((a0*a1)*a1)*a2)*a1)*a3)*a2)*a3)"


@pytest.mark.parametrize("op", ["Square", "AddV2", "Mul"])
def test_no_operation_is_in_an_expression_twice(op: str) -> None:
    """Else its text would double with each operation."""
    graph = Graph()
    value = graph.placeholder("float32", "x")
    for _ in range(60):
        value = graph.add(op, *([value] if op == "Square" else [value, value]))[0]
    assert groups_of(graph, ["x"], [value[0]]) == []
    last = chain(graph, value, 10)
    (group,) = groups_of(graph, ["x"], [last[0]])
    assert len(group.text) < 100


def test_a_value_that_others_read_ends_a_group() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    first = chain(graph, x, 8)
    second = chain(graph, first, 9)
    cut = groups_of(graph, ["x"], [first[0], second[0]])
    assert [(group.begin, group.end) for group in cut] == [(0, 8), (8, 17)]
    whole = groups_of(graph, ["x"], [second[0]])
    assert [(group.begin, group.end) for group in whole] == [(0, 17)]


def test_inputs_and_operations_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph()
    value = chain(graph, graph.placeholder("float32", "x"), 49)
    monkeypatch.setattr(groups, "MOST_INPUTS", 10)
    by_inputs = groups_of(graph, ["x"], [value[0]])
    assert all(len(group.slots) + len(group.constants) <= 10 for group in by_inputs)
    assert sum(group.end - group.begin for group in by_inputs) == 45  # the first four are too few
    monkeypatch.setattr(groups, "MOST_OPERATIONS", 8)
    by_operations = groups_of(graph, ["x"], [value[0]])
    assert max(group.end - group.begin for group in by_operations) == 8


@pytest.mark.parametrize(
    ("op", "dtype"),
    [("Tanh", "float32"), ("Maximum", "float32"), ("AddV2", "float16"), ("Div", "int32")],
)
def test_what_would_round_otherwise_stays(op: str, dtype: str) -> None:
    graph = Graph()
    value = graph.placeholder(dtype, "x")
    for _ in range(LEAST_OPERATIONS + 1):
        inputs = [value] if op == "Tanh" else [value, np.array([3, 2], dtype)]
        value = graph.add(op, *inputs)[0]
    assert groups_of(graph, ["x"], [value[0]]) == []


def test_short_runs_stay() -> None:
    graph = Graph()
    value = chain(graph, graph.placeholder("float32", "x"), LEAST_OPERATIONS - 1)
    assert groups_of(graph, ["x"], [value[0]]) == []


def test_values_of_another_type_end_a_group() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    cast = graph.add("Cast", chain(graph, x, 7), DstT="float64")[0]
    value = chain(graph, cast, 7, "float64")
    found = groups_of(graph, ["x"], [value[0]])
    assert [group.dtype.numpy for group in found] == [np.float32, np.float64]


def test_variables_of_reference_type_are_read_one_by_one() -> None:
    graph = Graph()
    variable = graph.add(
        "VariableV2",
        dtype="float32",
        shape=[2],
        name="v",
    )[0]
    value = variable
    for _ in range(LEAST_OPERATIONS):
        value = graph.add("AddV2", value, variable)[0]
    assert groups_of(graph, [], [value[0]]) == []
