"""Constants are found where nodes get them: directly, passed on, and as arguments of functions."""

from __future__ import annotations

import numpy as np

import protos as pb
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from runtime.graph.constant_inputs import ConstantInputs


def node(name: str, op: str, *inputs: str, calls: str = "") -> pb.NodeDef:
    made = pb.NodeDef(name=name, op=op, input=inputs)
    for attr, function in zip(("then_branch", "else_branch"), calls.split(), strict=False):
        made.attr[attr].func.name = function
    return made


def constant(name: str, value: int) -> pb.NodeDef:
    made = node(name, "Const")
    made.attr["value"].tensor.CopyFrom(tensor_to_proto(np.int32(value)))
    return made


def function(name: str, arguments: str, *nodes: pb.NodeDef) -> pb.FunctionDef:
    made = pb.FunctionDef(node_def=nodes)
    made.signature.name = name
    for each in arguments.split():
        made.signature.input_arg.add(name=each)
    return made


def found(graph_def: pb.GraphDef, body: str, name: str, index: int = 0) -> list[int]:
    nodes = (
        graph_def.node
        if not body
        else next(f.node_def for f in graph_def.library.function if f.signature.name == body)
    )
    (asked,) = (each for each in nodes if each.name == name)
    values = ConstantInputs(graph_def).values(body, asked, index)
    return [int(tensor_from_proto(value)) for value in values]


def graph(*nodes: pb.NodeDef, functions: tuple[pb.FunctionDef, ...] = ()) -> pb.GraphDef:
    made = pb.GraphDef(node=nodes)
    made.library.function.extend(functions)
    return made


def test_a_constant_that_is_passed_on() -> None:
    made = graph(
        constant("c", 3), node("same", "Identity", "^c", "c:0"), node("use", "Op", "x", "same"),
        node("x", "Placeholder"),
    )  # fmt: skip
    assert found(made, "", "use", 1) == [3]
    assert found(made, "", "use", 0) == []
    assert found(made, "", "use", 2) == []


def test_a_constant_in_the_body_of_a_function() -> None:
    body = function("f", "x", constant("c", 5), node("use", "Op", "x", "c:output:0"))
    assert found(graph(functions=(body,)), "f", "use", 1) == [5]


def test_arguments_of_nested_functions_and_of_branches() -> None:
    inner = function("inner", "m", node("use", "Op", "m"))
    outer = function("outer", "x model", node("call", "PartitionedCall", "model", calls="inner"))
    other = function("other", "x model", node("call", "inner", "model"))
    made = graph(
        constant("yes", 1), constant("a", 7), constant("b", 8), node("x", "Placeholder"),
        node("either", "StatelessIf", "yes", "x", "a", calls="outer other"),
        node("direct", "StatefulPartitionedCall", "x", "b", "^a", calls="other"),
        functions=(inner, outer, other),
    )  # fmt: skip
    assert sorted(found(made, "inner", "use")) == [7, 8]


def test_recursive_functions_end() -> None:
    body = function(
        "f", "x", node("use", "Op", "x"), node("again", "PartitionedCall", "x", calls="f")
    )
    made = graph(constant("c", 2), node("call", "PartitionedCall", "c", calls="f"),
                 functions=(body,))  # fmt: skip
    assert found(made, "f", "use") == [2]
