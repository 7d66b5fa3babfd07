"""The optimiser's passes: the nodes that remain, and that results stay the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import InvalidArgumentError
from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.tensor_codec import tensor_to_proto
from runtime.graph.graph import Graph as RuntimeGraph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.passes.optimizer import Optimizer
from runtime.graph.passes.pruning import StepGraph, prune
from runtime.registrations import kernel_registry
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import direct_session


def optimised(graph_def: pb.GraphDef, *fetches: str, feeds: tuple[str, ...] = ()) -> StepGraph:
    graph = extend_graph(RuntimeGraph(), graph_def)
    step = prune(graph, feeds, fetches, ())
    Optimizer().run(step, graph.library, kernel_registry())
    return step


def reached(step: StepGraph) -> list[str]:
    """The ops on which the fetches depend, sorted."""
    seen = set()
    pending = [node for node, _ in step.fetches]
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending += [source for source, _ in node.inputs] + node.control_inputs
    return sorted(node.op for node in seen)


def test_constants_fold() -> None:
    graph = Graph()
    a = graph.add("AddV2", np.float32([1, 2]), np.float32(1), name="a")[0]
    graph.add("Mul", a, np.float32(2), name="m")
    step = optimised(graph.graph_def, "m")
    assert reached(step) == ["Const"]
    node, _ = step.fetches[0]
    assert (node.name, node.attr("value").tolist()) == ("m", [4, 6])


def test_large_results_are_not_folded() -> None:
    graph = Graph()
    graph.add("Fill", np.int32([4, 1024, 1024]), np.float32(1), name="big")
    assert "Fill" in reached(optimised(graph.graph_def, "big"))


def test_failing_constants_are_left_to_the_step() -> None:
    graph = Graph()
    graph.add("AddV2", np.zeros(2, np.float32), np.zeros(3, np.float32), name="bad")
    assert "AddV2" in reached(optimised(graph.graph_def, "bad"))
    with pytest.raises(Exception, match="Incompatible shapes"):
        direct_session(graph.graph_def).run({}, ["bad"])


def test_control_inputs_survive_folding() -> None:
    graph = Graph()
    graph.add("NoOp", name="first")
    graph.add("Neg", np.float32(1), name="n", control=["first"])
    node, _ = optimised(graph.graph_def, "n").fetches[0]
    assert [control.name for control in node.control_inputs] == ["first"]


def test_control_inputs_of_constants_survive_folding() -> None:
    graph = Graph()
    graph.add("NoOp", name="in_the_loop")
    one = tensor_to_proto(np.float32(1))
    gated = graph.add("Const", dtype=DataType.FLOAT, value=one, control=["in_the_loop"])[0]
    graph.add("Neg", gated, name="n")
    node, _ = optimised(graph.graph_def, "n").fetches[0]
    assert node.op == "Const"
    assert [control.name for control in node.control_inputs] == ["in_the_loop"]


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


def placeholder(graph: Graph, dtype: str = "int32") -> tuple[str, DataType]:
    return graph.placeholder(dtype, "x")


def plus_zero(graph: Graph) -> None:
    graph.add("AddV2", np.int32(0), placeholder(graph), name="out")


def times_one(graph: Graph) -> None:
    graph.add("Mul", placeholder(graph, "float32"), np.float32(1), name="out")


def negated_twice(graph: Graph) -> None:
    inner = graph.add("Neg", placeholder(graph), name="inner")[0]
    graph.add("Neg", inner, name="out")


def transposed_back(graph: Graph) -> None:
    inner = graph.add("Transpose", placeholder(graph), np.int32([2, 0, 1]), name="inner")[0]
    graph.add("Transpose", inner, np.int32([1, 2, 0]), name="out")


def cast_to_itself(graph: Graph) -> None:
    graph.add("Cast", placeholder(graph), DstT="int32", name="out")


@pytest.mark.parametrize(
    "build", [plus_zero, times_one, negated_twice, transposed_back, cast_to_itself]
)
def test_what_changes_nothing_goes(build: object) -> None:
    graph = Graph()
    build(graph)  # type: ignore[operator]
    assert reached(optimised(graph.graph_def, "out")) == ["Placeholder"]


SOMETHING: dict[str, Callable[[Graph, Any], object]] = {
    "zero minus x": lambda graph, x: graph.add("Sub", np.float32(0), x, name="out"),
    "zero minus integers": lambda graph, x: graph.add(
        "Sub", np.int32(0), graph.add("Cast", x, DstT="int32")[0], name="out"
    ),
    "one over x": lambda graph, x: graph.add("RealDiv", np.float32(1), x, name="out"),
    "zero times x": lambda graph, x: graph.add("Mul", np.float32(0), x, name="out"),
    "ones that widen x": lambda graph, x: graph.add(
        "Mul", x, np.ones((3, 1, 1), np.float32), name="out"
    ),
    "a square's square": lambda graph, x: graph.add(
        "Square", graph.add("Square", x)[0], name="out"
    ),
    "a sign's negative": lambda graph, x: graph.add("Neg", graph.add("Sign", x)[0], name="out"),
    "turned twice": lambda graph, x: graph.add(
        "Transpose",
        graph.add("Transpose", graph.add("Reshape", x, np.int32([2, 2, 1]))[0],
                  np.int32([1, 2, 0]))[0],
        np.int32([1, 2, 0]),
        name="out",
    ),
    "cast and back": lambda graph, x: graph.add(
        "Cast", graph.add("Cast", x, DstT="int32")[0], DstT="float32", name="out"
    ),
    "reshaped twice": lambda graph, x: graph.add(
        "Reshape", graph.add("Reshape", x, np.int32([4]))[0], np.int32([1, 4]), name="out"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SOMETHING)
def test_what_changes_something_stays(what: str) -> None:
    graph = Graph()
    SOMETHING[what](graph, graph.placeholder("float32", "x"))
    fed = np.float32([[1.5, -2], [4, -0.0]])
    plain = pb.ConfigProto()
    plain.graph_options.optimizer_options.opt_level = pb.OptimizerOptions.L0
    ours, expected = (
        direct_session(graph.graph_def, config).run({"x": fed}, ["out"])[0]
        for config in (pb.ConfigProto(), plain)
    )
    assert (ours.dtype, ours.shape) == (expected.dtype, expected.shape)
    assert ours.tobytes() == expected.tobytes()
    assert ours.tobytes() != fed.tobytes() or ours.shape != fed.shape


def test_a_negative_zero_is_kept() -> None:
    graph = Graph()
    graph.add("AddV2", placeholder(graph, "float32"), np.float32(0), name="out")
    assert "AddV2" in reached(optimised(graph.graph_def, "out"))
    assert not np.signbit(direct_session(graph.graph_def).run({"x": np.float32(-0.0)}, ["out"])[0])


def test_folded_nodes_can_still_be_fed() -> None:
    graph = Graph()
    a = graph.add("AddV2", np.float32(1), np.float32(1), name="a")[0]
    graph.add("Mul", a, np.float32(2), name="m")
    session = direct_session(graph.graph_def)
    assert session.run({}, ["m"]) == [4]
    assert session.run({"a": np.float32(5)}, ["m"]) == [10]


def branch(name: str, op: str) -> pb.FunctionDef:
    function = pb.FunctionDef(ret={"y": "r:y:0"})
    function.signature.name = name
    function.signature.input_arg.add(name="x", type=pb.DT_FLOAT)
    function.signature.output_arg.add(name="y", type=pb.DT_FLOAT)
    inner = function.node_def.add(name="r", op=op, input=["x"])
    inner.attr["T"].type = pb.DT_FLOAT
    return function


@pytest.mark.parametrize(("condition", "op"), [(True, "Neg"), (False, "Square")])
def test_a_constant_condition_leaves_one_branch(condition: bool, op: str) -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    add = graph.graph_def.node.add(name="if", op="If", input=["condition", "x"])
    add.attr["Tcond"].type = pb.DT_BOOL
    add.attr["Tin"].list.type.append(pb.DT_FLOAT)
    add.attr["Tout"].list.type.append(pb.DT_FLOAT)
    add.attr["then_branch"].func.name = "negate"
    add.attr["else_branch"].func.name = "square"
    graph.add("Const", name="condition", dtype="bool", value=np.bool_(condition))
    graph.graph_def.library.function.extend([branch("negate", "Neg"), branch("square", "Square")])
    session = direct_session(graph.graph_def)
    metadata = pb.RunMetadata()
    options = pb.RunOptions(output_partition_graphs=True)
    (value,) = session.run({x[0]: np.float32(3)}, ["if"], (), options, metadata)
    assert value == (-3 if condition else 9)
    ops = {node.op for node in metadata.partition_graphs[0].node}
    assert op in ops
    assert not ops & ({"If", "Neg", "Square"} - {op})


@pytest.mark.parametrize(
    ("switches", "constant_sums", "exponentials"),
    [
        ({}, 1, 2),
        ({"do_constant_folding": True}, 0, 2),
        ({"do_common_subexpression_elimination": True}, 1, 1),
    ],
)
def test_level_zero_turns_off_what_is_not_asked_for(
    switches: dict[str, bool], constant_sums: int, exponentials: int
) -> None:
    level = pb.OptimizerOptions(opt_level=pb.OptimizerOptions.L0, **switches)
    config = pb.ConfigProto(graph_options=pb.GraphOptions(optimizer_options=level))
    graph = Graph()
    x = graph.placeholder("float32", "x")
    constant = graph.add("AddV2", np.float32(1), np.float32(1), name="constant")[0]
    equal = [graph.add("Exp", x, name=name)[0] for name in ("one", "two")]
    graph.add("AddN", [constant, *equal], name="sum")
    metadata = pb.RunMetadata()
    options = pb.RunOptions(output_partition_graphs=True)
    session = direct_session(graph.graph_def, config)
    assert session.run({x[0]: np.float32(0)}, ["sum"], (), options, metadata) == [4]
    ops = [node.op for node in metadata.partition_graphs[0].node]
    assert (ops.count("AddV2"), ops.count("Exp")) == (constant_sums, exponentials)
