"""Functions that call themselves: recursion that ends, and an error for recursion that does not."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import OpError
from tests.unit.runtime.sessions.graphs import direct_session, g1

FLOAT = [pb.DT_FLOAT]


def call(op: str, name: str, argument: str, function: str) -> pb.NodeDef:
    """A call through PartitionedCall, or by the function's own name."""
    if op == function:
        return pb.NodeDef(name=name, op=function, input=[argument])
    node = pb.NodeDef(name=name, op=op, input=[argument])
    node.attr["f"].func.name = function
    node.attr["Tin"].list.type.extend(FLOAT)
    node.attr["Tout"].list.type.extend(FLOAT)
    return node


def signature(name: str) -> pb.FunctionDef:
    function = pb.FunctionDef()
    function.signature.name = name
    function.signature.input_arg.add(name="x", type=pb.DT_FLOAT)
    function.signature.output_arg.add(name="y", type=pb.DT_FLOAT)
    return function


@pytest.mark.parametrize("op", ["PartitionedCall", "again"])
def test_endless_recursion_ends_in_an_error(op: str) -> None:
    graph = g1()
    again = signature("again")
    again.node_def.append(call(op, "c", "x", "again"))
    again.ret["y"] = "c:output:0" if op != "again" else "c:y:0"
    graph.library.function.append(again)
    graph.node.append(call(op, "call", "a", "again"))
    session = direct_session(graph)
    with pytest.raises(OpError, match="too deep"):
        session.run({}, ["call"])
    assert session.run({"x": np.float32(3)}, ["n"]) == [-6]


@pytest.mark.parametrize("op", ["PartitionedCall", "halve"])
def test_recursion_under_a_condition_ends_by_itself(op: str) -> None:
    """halve(x) = x < 1 ? x : halve(x / 2)."""
    graph = g1()
    halve = signature("halve")
    for name, constant in (("one", 1.0), ("two", 2.0)):
        node = halve.node_def.add(name=name, op="Const")
        node.attr["dtype"].type = pb.DT_FLOAT
        node.attr["value"].tensor.dtype = pb.DT_FLOAT
        node.attr["value"].tensor.float_val.append(constant)
    less = halve.node_def.add(name="less", op="Less", input=["x", "one:output:0"])
    less.attr["T"].type = pb.DT_FLOAT
    branch = halve.node_def.add(name="if", op="StatelessIf", input=["less:z:0", "x"])
    branch.attr["Tcond"].type = pb.DT_BOOL
    branch.attr["Tin"].list.type.extend(FLOAT)
    branch.attr["Tout"].list.type.extend(FLOAT)
    branch.attr["then_branch"].func.name = "same"
    branch.attr["else_branch"].func.name = "deeper"
    halve.ret["y"] = "if:output:0"
    del halve.node_def[1]  # `two` belongs to the branch below
    same = signature("same")
    same.ret["y"] = "x"
    deeper = signature("deeper")
    two = deeper.node_def.add(name="two", op="Const")
    two.attr["dtype"].type = pb.DT_FLOAT
    two.attr["value"].tensor.dtype = pb.DT_FLOAT
    two.attr["value"].tensor.float_val.append(2.0)
    half = deeper.node_def.add(name="half", op="RealDiv", input=["x", "two:output:0"])
    half.attr["T"].type = pb.DT_FLOAT
    deeper.node_def.append(call(op, "c", "half:z:0", "halve"))
    deeper.ret["y"] = "c:output:0" if op != "halve" else "c:y:0"
    graph.library.function.extend([halve, same, deeper])
    graph.node.append(call(op, "call", "x", "halve"))
    assert direct_session(graph).run({"x": np.float32(12)}, ["call"]) == [0.75]
