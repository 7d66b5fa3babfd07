"""Small graphs for session tests."""

from __future__ import annotations

import numpy as np

import protos as pb
from runtime.api import DirectSession, SessionOptions, new_session
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph
from tests.node_builder import build_node_def

FLOAT = DataType.FLOAT
X = np.float32(3)


def g1() -> pb.GraphDef:
    """x:Placeholder, a:Const 2, m=Mul(x,a), n=Neg(m): the graph of the facts."""
    graph = Graph()
    x = graph.placeholder("float32", "x")
    a = graph.add("Const", name="a", dtype="float32", value=np.float32(2))[0]
    m = graph.add("Mul", x, a, name="m")[0]
    graph.add("Neg", m, name="n")
    return graph.graph_def


def node(op: str, name: str, *inputs: object, **attrs: object) -> pb.NodeDef:
    """One node; inputs are (name, type) pairs."""
    return build_node_def(op, name, inputs, attrs)  # type: ignore[arg-type]


def neg(name: str, *inputs: str) -> pb.NodeDef:
    """A Neg of floats."""
    result = pb.NodeDef(name=name, op="Neg", input=inputs)
    result.attr["T"].type = pb.DT_FLOAT
    return result


def graph_of(*nodes: pb.NodeDef) -> pb.GraphDef:
    return pb.GraphDef(node=nodes, versions=pb.VersionDef(producer=2474))


def direct_session(
    graph: pb.GraphDef | None = None, config: pb.ConfigProto | None = None
) -> DirectSession:
    session = new_session(SessionOptions(config=config or pb.ConfigProto()))
    assert isinstance(session, DirectSession)
    if graph is not None:
        session.create(graph)
    return session


def in_caller() -> pb.RunOptions:
    return pb.RunOptions(inter_op_thread_pool=-1)


def queue_graph() -> pb.GraphDef:
    """A FIFOQueue `q` of floats with enqueue, dequeue, size and two closes."""
    graph = Graph()
    q = graph.add("FIFOQueueV2", name="q", component_types=[FLOAT], capacity=2)[0]
    value = graph.placeholder("float32", "value")
    graph.add("QueueEnqueueV2", q, [value], name="enq")
    graph.add("QueueDequeueV2", q, name="deq", component_types=[FLOAT])
    graph.add("QueueSizeV2", q, name="size")
    graph.add("QueueCloseV2", q, name="close")
    graph.add("QueueCloseV2", q, name="close_cancelling", cancel_pending_enqueues=True)
    return graph.graph_def
