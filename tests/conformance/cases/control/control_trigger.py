"""ControlTrigger runs even if its inputs are dead: gradients of branches in loops use it."""

import numpy as np

from runtime.framework.dtypes import DataType
from runtime.framework.tensor_codec import tensor_to_proto
from tests.conformance.case import Case, Graph, Step

SEVEN = tensor_to_proto(np.float32(7))


def behind(op: str) -> Case:
    """A constant with a control dependency on `op`, which has one on an output of a Switch."""
    graph = Graph()
    taken = graph.placeholder(DataType.BOOL, "taken")
    graph.add("Switch", np.float32(1), taken, name="switch")
    graph.add("Identity", ("switch:1", DataType.FLOAT), name="branch")
    graph.add(op, name="trigger", control=["branch"])
    graph.add("Const", dtype=DataType.FLOAT, value=SEVEN, name="seven", control=["trigger"])
    graph.add("Identity", ("seven:0", DataType.FLOAT), name="result")
    steps = tuple(Step({"taken:0": np.bool_(side)}, ("result:0",)) for side in (True, False))
    return Case(f"behind_{op}", graph.graph_def, steps)


CASES = (behind("ControlTrigger"), behind("NoOp"))
