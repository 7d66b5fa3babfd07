"""The variable-only part of a step: which nodes are in it, and what the rest keeps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from runtime.framework.resources.variable import RefVariable, Variable
from tests.unit.runtime.graph.passes.divided_steps import VariableGraph, divided, names

TWO = np.float32([2, 2])


def scaled() -> VariableGraph:
    """y = x · s, where s = v · 2 + w."""
    graph = VariableGraph()
    doubled = graph.add("Mul", graph.read(graph.handle("v"), "rv"), TWO, name="doubled")[0]
    s = graph.add("AddV2", doubled, graph.read(graph.handle("w"), "rw"), name="s")[0]
    graph.add("Mul", graph.x, s, name="y")
    return graph


def test_what_depends_on_variables_only_is_in_the_part() -> None:
    split = divided(scaled(), "y")
    assert split is not None
    assert [(key.kind, key.name) for key in split.keys] == [(Variable, "v"), (Variable, "w")]
    assert names(split.part) == ["Const_3", "doubled", "s"]
    assert [node.name for node, _ in split.outputs] == ["s"]
    assert names(split.rest) == ["y"]
    assert split.feed_count == 1
    assert [node and node.attr("index") for node in split.rest.arguments] == [0, 1]


def test_a_read_may_be_an_output() -> None:
    graph = scaled()
    split = divided(graph, "y", "rv")
    assert split is not None
    assert [node.name for node, _ in split.outputs] == ["rv", "s"]
    assert split.part.fetches[0] == (split.part.arguments[0], 0)
    assert split.sharing_fetches == ()


def test_several_reads_of_one_variable_are_one_argument() -> None:
    graph = VariableGraph()
    handle = graph.handle("v")
    first, second = graph.read(handle, "r1"), graph.read(graph.handle("v", "again"), "r2")
    graph.add("Mul", graph.add("Sub", first, second, name="d")[0], graph.x, name="y")
    split = divided(graph, "y")
    assert split is not None
    assert [key.name for key in split.keys] == ["v"]
    assert len(split.part.arguments) == 1


def test_a_step_without_variables_is_not_divided() -> None:
    graph = VariableGraph()
    graph.add("Mul", graph.x, TWO, name="y")
    assert divided(graph, "y") is None


def test_an_unread_read_needs_its_variable() -> None:
    graph = scaled()
    graph.read(graph.handle("other"), "unread")
    graph.add("NoOp", name="all", control=["unread"])
    split = divided(graph, "y", targets=["all"])
    assert split is not None
    assert "other" in [key.name for key in split.keys]


# What is not in the part


def written(graph: VariableGraph) -> str:
    handle = graph.handle("v")
    graph.add("AssignAddVariableOp", handle, TWO, name="add", dtype="float32")
    return graph.read(handle, "r")[0]


def after_a_feed_is_used(graph: VariableGraph) -> str:
    graph.add("Neg", graph.x, name="negated")
    return graph.read(graph.handle("v"), "r", control=["negated"])[0]


def handle_after_a_feed_is_used(graph: VariableGraph) -> str:
    graph.add("Neg", graph.x, name="negated")
    handle = graph.add(
        "VarHandleOp", name="v", dtype="float32", shape=(2,), shared_name="v", control=["negated"]
    )[0]
    return graph.read(handle, "r")[0]


def with_state(graph: VariableGraph) -> str:
    read = graph.read(graph.handle("v"), "r")
    shape = graph.add("Cast", read, name="shape", DstT="int32")[0]
    return graph.add("RandomUniform", shape, name="noise", dtype="float32")[0][0]


def larger(graph: VariableGraph) -> str:
    read = graph.read(graph.handle("v"), "r")
    return graph.add("Tile", read, np.int32([1000]), name="tiled")[0][0]


def with_a_feed(graph: VariableGraph) -> str:
    return graph.add("Mul", graph.read(graph.handle("v"), "r"), graph.x, name="product")[0][0]


def under_a_switch(graph: VariableGraph) -> str:
    read = graph.read(graph.handle("v"), "r")
    condition = graph.placeholder("bool", "condition")
    taken = graph.add("Switch", read, condition, name="switch")[1]
    return graph.add("Neg", taken, name="negated")[0][0]


def of_text(graph: VariableGraph) -> str:
    handle = graph.handle("v", dtype="string")
    read = graph.add("ReadVariableOp", handle, name="r", dtype="string")[0]
    return graph.add("StringLength", read, name="length")[0][0]


@pytest.mark.parametrize(
    ("build", "inside"),
    [
        (written, []),
        (after_a_feed_is_used, []),
        (handle_after_a_feed_is_used, []),
        (of_text, []),
        (with_state, ["shape"]),
        (larger, ["r"]),
        (with_a_feed, ["r"]),
        (under_a_switch, ["r"]),
    ],
)
def test_what_is_not_in_the_part(build: Callable[[VariableGraph], str], inside: list[str]) -> None:
    graph = VariableGraph()
    fetch = build(graph)
    targets = ["add"] if build is written else []
    split = divided(graph, fetch, targets=targets)
    outputs = [] if split is None else [node.name for node, _ in split.outputs]
    assert outputs == inside


def test_a_target_stays_in_the_rest() -> None:
    split = divided(scaled(), "y", targets=["s"])
    assert split is not None
    assert [node.name for node, _ in split.outputs] == ["doubled", "rw"]
    assert names(split.rest) == ["s", "y"]
    assert [node.name for node in split.rest.targets] == ["s"]


def test_what_a_feed_replaces_is_not_read() -> None:
    assert divided(scaled(), "y", feeds=("x:0", "s:0")) is None
    split = divided(scaled(), "y", feeds=("x:0", "doubled:0"))
    assert split is not None
    assert [key.name for key in split.keys] == ["w"]


# Control edges


def test_control_edges_between_members_vanish() -> None:
    graph = VariableGraph()
    graph.add("NoOp", name="begin")
    read = graph.read(graph.handle("v"), "rv", control=["begin"])
    graph.add("NoOp", name="middle", control=["rv", "x"])
    other = graph.read(graph.handle("w"), "rw", control=["middle"])
    s = graph.add("AddV2", read, other, name="s")[0]
    graph.add("NoOp", name="end", control=["rv", "rw"])
    graph.add("Mul", graph.x, s, name="y", control=["end", "s"])
    split = divided(graph, "y")
    assert split is not None
    assert [node.name for node, _ in split.outputs] == ["s"]
    assert all(node.control_inputs == [] for node in split.part.nodes)
    (y,) = (node for node in split.rest.nodes if node.name == "y")
    assert [node.name for node in y.control_inputs] == ["end"]
    assert names(split.rest) == ["end", "y"]


# References


def test_an_identity_of_a_reference_is_a_read() -> None:
    graph = VariableGraph()
    read = graph.add("Identity", graph.reference("v"), name="rv")[0]
    graph.add("Mul", graph.add("Neg", read, name="n")[0], graph.x, name="y")
    split = divided(graph, "y")
    assert split is not None
    assert [(key.kind, key.name) for key in split.keys] == [(RefVariable, "v")]
    assert names(split.rest) == ["y"]


def test_a_reference_that_the_rest_reads_stays() -> None:
    """Its other inputs order that read: it must see what another step assigned before them."""
    graph = VariableGraph()
    graph.add("Mul", graph.reference("v"), graph.x, name="y")
    assert divided(graph, "y") is None
    graph.add("Mul", ("v:0", graph.x[1]), ("y:0", graph.x[1]), name="z")
    assert divided(graph, "z") is None


# Fetches that share memory with an output


@pytest.mark.parametrize("op", ["Identity", "Reshape"])
def test_a_fetch_that_may_be_a_view_of_an_output_shares_memory(op: str) -> None:
    graph = VariableGraph()
    y = graph.add("Mul", graph.read(graph.handle("v"), "rv"), TWO, name="y")[0]
    shape = graph.add("Cast", graph.x, name="shape", DstT="int32")[0]
    inputs = (y, shape) if op == "Reshape" else (y,)
    graph.add(op, *inputs, name="last")
    split = divided(graph, "last", "rv")
    assert split is not None
    assert split.sharing_fetches == (0,)


def test_a_fetch_of_a_fresh_kernel_shares_nothing() -> None:
    split = divided(scaled(), "y")
    assert split is not None
    assert split.sharing_fetches == ()
