"""Graphs of the tests of targets; what lives in a server gets a name of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

import protos as pb
from runtime.api import DataType
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import g1, graph_of, node

FLOAT = DataType.FLOAT


def chain() -> pb.GraphDef:
    """x:Placeholder, a:Const 2, m=Mul(x,a), n=Neg(m)."""
    return g1()


def square_of_n(name: str = "s") -> pb.GraphDef:
    """s=Mul(n,n), which extends `chain`."""
    return graph_of(node("Mul", name, ("n:0", FLOAT), ("n:0", FLOAT)))


def identity(dtype: Any) -> pb.GraphDef:
    """x:Placeholder of any shape, y=Identity(x)."""
    graph = Graph()
    graph.add("Identity", graph.placeholder(dtype, "x"), name="y")
    return graph.graph_def


def counter(shared_name: str, container: str = "") -> pb.GraphDef:
    """A float variable: targets `init` (to 10) and `add` (1), output `read`."""
    graph = Graph()
    variable = graph.add(
        "VarHandleOp",
        name="variable",
        dtype=FLOAT,
        shape=(),
        shared_name=shared_name,
        container=container,
    )[0]
    graph.add("AssignVariableOp", variable, np.float32(10), name="init")
    graph.add("AssignAddVariableOp", variable, np.float32(1), name="add")
    graph.add("ReadVariableOp", variable, name="read", dtype=FLOAT)
    return graph.graph_def


def queue(shared_name: str) -> pb.GraphDef:
    """A FIFOQueue of two floats: `value` fed to `enqueue`, `dequeue`, `size`, `close`."""
    graph = Graph()
    handle = graph.add(
        "FIFOQueueV2", name="queue", component_types=[FLOAT], capacity=2, shared_name=shared_name
    )[0]
    graph.add("QueueEnqueueV2", handle, [graph.placeholder(FLOAT, "value")], name="enqueue")
    graph.add("QueueDequeueV2", handle, name="dequeue", component_types=[FLOAT])
    graph.add("QueueSizeV2", handle, name="size")
    graph.add("QueueCloseV2", handle, name="close")
    return graph.graph_def


def two_inputs() -> pb.GraphDef:
    """p1, p2 Placeholders; i1, i2 their Identities; sum=i1+i2."""
    graph = Graph()
    names = (("p1", "i1"), ("p2", "i2"))
    parts = [graph.add("Identity", graph.placeholder(FLOAT, p), name=i)[0] for p, i in names]
    graph.add("AddV2", *parts, name="sum")
    return graph.graph_def
