"""Equal nodes are computed once; nodes that differ, or have state, are not shared."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import InvalidArgumentError
from runtime.framework.dtypes import from_numpy
from runtime.framework.tensor_codec import tensor_to_proto
from tests.conformance.case import Graph
from tests.unit.runtime.graph.passes.optimised_steps import optimised, reached
from tests.unit.runtime.sessions.graphs import direct_session


def test_equal_nodes_are_shared() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    one = graph.add("Exp", x, name="one")[0]
    two = graph.add("Exp", x, name="two")[0]
    graph.add("AddV2", one, two, name="sum")
    assert reached(optimised(graph.graph_def, "sum")) == ["AddV2", "Exp", "Placeholder"]


def test_nodes_with_state_are_not_shared() -> None:
    graph = Graph()
    one = graph.add("RandomUniform", np.int32([2]), dtype="float32", name="one")[0]
    two = graph.add("RandomUniform", np.int32([2]), dtype="float32", name="two")[0]
    graph.add("Sub", one, two, name="difference")
    ops = reached(optimised(graph.graph_def, "difference"))
    assert ops.count("RandomUniform") == 2


X = np.float32([[1, 2], [4, 8]])
TRUE = np.bool_(True)


def nearly_equal(graph: Graph, what: str) -> None:
    """Add nodes `a` and `b` that differ in one property, and in their values for X."""
    x = graph.placeholder("float32", "x")
    match what:
        case "operation":
            for name, op in (("a", "AddV2"), ("b", "Mul")):
                graph.add(op, x, x, name=name)
        case "order of inputs":
            y = graph.add("Neg", x, name="y")[0]
            graph.add("Sub", x, y, name="a")
            graph.add("Sub", y, x, name="b")
        case "output":
            parts = graph.add("Unpack", x, num=2, axis=0, name="parts")
            for name, part in zip("ab", parts, strict=True):
                graph.add("Neg", part, name=name)
        case "attribute":
            for name in "ab":
                graph.add("MatMul", x, x, transpose_b=name == "b", name=name)
        case "control edge":  # b waits for a dead node, so it is dead too
            side = graph.add("Switch", x, TRUE, name="switch")[0]
            graph.add("Identity", side, name="dead")
            graph.add("Neg", x, name="a")
            graph.add("Neg", x, name="b", control=["dead"])
        case _:
            kinds = CONSTANTS[what]
            for name, value in zip("ab", kinds, strict=True):
                proto, dtype = tensor_to_proto(value), from_numpy(value.dtype)
                graph.add("Const", dtype=dtype, value=proto, name=name)


CONSTANTS = {
    "shape of a constant": (np.zeros(2, np.int32), np.zeros((2, 1), np.int32)),
    "type of a constant": (np.zeros(2, np.int32), np.zeros(2, np.float32)),
    "sign of a constant's zero": (np.float32([0.0]), np.float32([-0.0])),
    "value of a constant": (np.int32([1, 2]), np.int32([2, 1])),
    "strings of a constant": (np.array([b"a"], object), np.array([b"b"], object)),
}


@pytest.mark.parametrize(
    "what",
    ["operation", "order of inputs", "output", "attribute", "control edge", *CONSTANTS],
)
def test_nearly_equal_nodes_are_not_shared(what: str) -> None:
    graph = Graph()
    nearly_equal(graph, what)
    plain = pb.ConfigProto()
    plain.graph_options.optimizer_options.opt_level = pb.OptimizerOptions.L0

    def seen(config: pb.ConfigProto) -> list[object]:
        """The value of each, or the error if it is dead; both are computed in one step."""
        session, values = direct_session(graph.graph_def, config), []
        for fetched in (["a"], ["b"]):
            try:
                array = np.asarray(session.run({"x": X}, fetched, ["a", "b"])[0])
            except InvalidArgumentError as error:
                values.append(error.message)
            else:
                values.append((array.dtype, array.shape, array.tolist(), str(array)))
        return values

    first, second = seen(pb.ConfigProto())
    assert first != second
    assert [first, second] == seen(plain)
