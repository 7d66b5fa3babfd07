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
    y = graph.add("Neg", graph.add("Mul", chain(graph, x, 3), x)[0], name="y")[0]
    (group,) = groups_of(graph, ["x"], [y[0]])
    assert (group.begin, group.end, len(group.slots), len(group.constants)) == (0, 5, 1, 3)
    assert group.text == "(-((((a0+a1)+a2)+a3)*a0))"


def test_equal_constants_are_one_input() -> None:
    graph = Graph()
    value = graph.placeholder("float32", "x")
    for each in ([1, 2], [1, 2], [2, 1], [1, 2]):
        value = graph.add("Mul", value, np.float32(each))[0]
    (group,) = groups_of(graph, ["x"], [value[0]])
    assert group.text == "((((a0*a1)*a1)*a2)*a1)"


def test_a_value_that_others_read_ends_a_group() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    first = chain(graph, x, 5)
    second = chain(graph, first, 6)
    cut = groups_of(graph, ["x"], [first[0], second[0]])
    assert [(group.begin, group.end) for group in cut] == [(0, 5), (5, 11)]
    whole = groups_of(graph, ["x"], [second[0]])
    assert [(group.begin, group.end) for group in whole] == [(0, 11)]


def test_inputs_and_operations_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph()
    value = chain(graph, graph.placeholder("float32", "x"), 50)
    monkeypatch.setattr(groups, "MOST_INPUTS", 10)
    by_inputs = groups_of(graph, ["x"], [value[0]])
    assert all(len(group.slots) + len(group.constants) <= 10 for group in by_inputs)
    assert sum(group.end - group.begin for group in by_inputs) == 50
    monkeypatch.setattr(groups, "MOST_OPERATIONS", 7)
    by_operations = groups_of(graph, ["x"], [value[0]])
    assert max(group.end - group.begin for group in by_operations) == 7


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
    cast = graph.add("Cast", chain(graph, x, 4), DstT="float64")[0]
    value = chain(graph, cast, 4, "float64")
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
