"""Small graphs, and direct sessions of them."""

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
    """x: Placeholder, a: Const 2, m = Mul(x, a), n = Neg(m): the graph of tests/facts.toml."""
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
    """A graph of the current version."""
    return pb.GraphDef(node=nodes, versions=pb.VersionDef(producer=2474))


def direct_session(
    graph: pb.GraphDef | None = None,
    config: pb.ConfigProto | None = None,
    clusters: str = "auto",
) -> DirectSession:
    """A direct session, of `graph` when one is given."""
    session = new_session(SessionOptions(config=config or pb.ConfigProto(), clusters=clusters))
    assert isinstance(session, DirectSession)
    if graph is not None:
        session.create(graph)
    return session


def in_caller() -> pb.RunOptions:
    """Options of a step that runs in the calling thread."""
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


def switch_graph() -> pb.GraphDef:
    """`merge` is -value where `side` is false, value where it is true."""
    graph = Graph()
    value = graph.placeholder("float32", "value")
    side = graph.placeholder("bool", "side")
    no, yes = graph.add("Switch", value, side, name="switch")
    no = graph.add("Neg", no, name="no")[0]
    yes = graph.add("Identity", yes, name="yes")[0]
    graph.add("Merge", [no, yes], name="merge")
    return graph.graph_def


def loop_graph() -> pb.GraphDef:
    """`exit`: counts from `start` up to 5; `next` is computed inside."""
    graph = Graph()
    start = graph.placeholder("int32", "start")
    entered = graph.add("Enter", start, name="enter", frame_name="loop")[0]
    merged = graph.add("Merge", [entered, entered], name="merge")[0]
    graph.graph_def.node[-1].input[1] = "next"
    limit = graph.add("Enter", np.int32(5), name="limit", frame_name="loop", is_constant=True)[0]
    goes_on = graph.add("LoopCond", graph.add("Less", merged, limit, name="less")[0], name="cond")
    done, body = graph.add("Switch", merged, goes_on[0], name="switch")
    graph.add("Exit", done, name="exit")
    one = graph.add("Const", name="one", value=np.int32(1), dtype="int32", control=["switch"])[0]
    graph.graph_def.node[-1].input[0] = "^body"
    body = graph.add("Identity", body, name="body")[0]
    graph.add("NextIteration", graph.add("Add", body, one, name="add")[0], name="next")
    return graph.graph_def


def variable_graph(**attrs: str) -> pb.GraphDef:
    """A resource variable `rv` of floats: `assign` takes `value`; `read`, `is_initialized`."""
    graph = Graph()
    value = graph.placeholder("float32", "value")
    handle = graph.add(
        "VarHandleOp", name="rv", dtype=FLOAT, shape=(), **({"shared_name": "rv"} | attrs)
    )[0]
    graph.add("AssignVariableOp", handle, value, name="assign", dtype=FLOAT)
    graph.add("ReadVariableOp", handle, name="read", dtype=FLOAT)
    graph.add("VarIsInitializedOp", handle, name="is_initialized")
    return graph.graph_def
