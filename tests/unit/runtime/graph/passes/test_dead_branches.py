"""A conditional whose predicate is constant becomes one of its branches."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import direct_session


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
