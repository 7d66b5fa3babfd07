"""Graphs of sessions: creation, extension, and extensions that are refused."""

from __future__ import annotations

import threading

import pytest

import protos as pb
from runtime.api import AlreadyExistsError, Code, InvalidArgumentError
from runtime.framework.dtypes import DataType
from tests.unit.runtime.sessions.graphs import FLOAT, X, direct_session, g1, graph_of, neg, node
from tests.unit.runtime.sessions.session_errors import error_of


def test_create_twice_and_create_empty() -> None:
    session = direct_session()
    session.create(pb.GraphDef())  # no-op
    session.create(g1())
    with pytest.raises(AlreadyExistsError, match="A Graph has already been created"):
        session.create(g1())


def test_extend_on_an_empty_session_creates() -> None:
    session = direct_session()
    session.extend(g1())
    assert session.graph_version == 0
    assert session.run({"x": X}, ["m"]) == [6]


def test_extend_adds_on_top_and_counts_versions() -> None:
    session = direct_session(g1())
    session.extend(graph_of(node("Neg", "nn", ("n:0", FLOAT))))
    assert session.graph_version == 1
    assert session.run({"x": X}, ["nn"]) == [6]


def bare(name: str, op: str = "NoOp", *inputs: str) -> pb.NodeDef:
    return pb.NodeDef(name=name, op=op, input=inputs)


def function(name: str, op: str) -> pb.FunctionDef:
    body = pb.FunctionDef(ret={"y": "r:y:0"})
    body.signature.name = name
    body.signature.input_arg.add(name="x", type=pb.DT_FLOAT)
    body.signature.output_arg.add(name="y", type=pb.DT_FLOAT)
    inner = body.node_def.add(name="r", op=op, input=["x"])
    inner.attr["T"].type = pb.DT_FLOAT
    return body


def placed(device: str) -> pb.NodeDef:
    return pb.NodeDef(name="p", op="NoOp", device=device)


BAD_EXTENSIONS: list[tuple[str, pb.GraphDef, Code, str]] = [
    ("already there", graph_of(bare("a")), Code.INVALID_ARGUMENT,
     "GraphDef argument to Extend includes node 'a', which was created by a previous call"),
    ("not unique", graph_of(bare("b"), bare("b")), Code.INVALID_ARGUMENT, "Node 'b' is not unique"),
    ("unknown input", graph_of(neg("q", "nope")), Code.INVALID_ARGUMENT,
     "Node 'q': Unknown input node 'nope'"),
    ("unknown control input", graph_of(neg("q", "a", "^nope")), Code.INVALID_ARGUMENT,
     "Node 'q': Unknown input node '^nope'"),
    ("bad output", graph_of(neg("q2", "a:3")), Code.INVALID_ARGUMENT,
     "Node 'q2': Connecting to invalid output 3 of source node a which has 1 outputs."),
    ("unknown op", graph_of(bare("u", "NoSuchOp"), bare("v", "NorThis")), Code.NOT_FOUND,
     "Op type not registered 'NoSuchOp'"),
    ("leading underscore", graph_of(bare("_x")), Code.INVALID_ARGUMENT,
     "Node '_x': Node name contains invalid characters"),
    ("empty name", graph_of(bare("")), Code.INVALID_ARGUMENT,
     "Node '': Node name contains invalid characters"),
    ("missing attr", graph_of(pb.NodeDef(name="z", op="Neg", input=["a"])), Code.NOT_FOUND,
     "No attr named 'T' in NodeDef: [[{{node z}}]]"),
    ("wrong type", graph_of(node("Neg", "z", ("a:0", DataType.INT32))), Code.INVALID_ARGUMENT,
     "Input 0 of node z was passed float from a:0 incompatible with expected int32."),
    ("too many inputs", graph_of(neg("z", "a", "a")), Code.INVALID_ARGUMENT,
     "Input 1 of node z does not exist. Node only has 1 inputs."),
    ("control first", graph_of(neg("z", "^x", "a")), Code.INVALID_ARGUMENT,
     "Node 'z': Control dependencies must come after regular dependencies"),
    ("cycle", graph_of(neg("c1", "c2"), neg("c2", "c1")), Code.INVALID_ARGUMENT,
     "2 nodes in a cycle"),
    ("too new", pb.GraphDef(node=[bare("b")], versions=pb.VersionDef(min_consumer=99999)),
     Code.INVALID_ARGUMENT, "GraphDef min consumer version 99999 above current version 2474"),
    ("too old", pb.GraphDef(node=[bare("b")], versions=pb.VersionDef(producer=-5)),
     Code.INVALID_ARGUMENT, "GraphDef producer version -5 below min producer 0"),
    ("bad consumer", pb.GraphDef(node=[bare("b")], versions=pb.VersionDef(bad_consumers=[2474])),
     Code.INVALID_ARGUMENT, "GraphDef disallows consumer version 2474."),
    ("no such device", graph_of(placed("/device:GPU:0")), Code.INVALID_ARGUMENT,
     "Cannot assign a device for operation p: {{node p}} was explicitly assigned to "
     "/device:GPU:0 but available devices are [ /job:localhost/replica:0/task:0/device:CPU:0 ]."),
    ("other task", graph_of(placed("/job:worker/task:3")), Code.INVALID_ARGUMENT,
     "Cannot assign a device for operation p"),
    ("small letters", graph_of(placed("/device:cpu:0")), Code.INVALID_ARGUMENT,
     "Cannot assign a device for operation p"),
    ("function with an op's name",
     pb.GraphDef(library=pb.FunctionDefLibrary(function=[function("Neg", "Abs")])),
     Code.INVALID_ARGUMENT,
     "Cannot add function 'Neg' because an op with the same name already exists."),
    ("malformed device", graph_of(placed("garbage")), Code.INVALID_ARGUMENT,
     "Malformed device specification 'garbage' in node"),
    ("other function", pb.GraphDef(library=pb.FunctionDefLibrary(function=[function("f", "Abs")])),
     Code.INVALID_ARGUMENT,
     "Cannot add function 'f' because a different function with the same name already exists."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("extension", "code", "message"),
    [row[1:] for row in BAD_EXTENSIONS],
    ids=[row[0] for row in BAD_EXTENSIONS],
)
def test_a_refused_extend_changes_nothing(extension: pb.GraphDef, code: Code, message: str) -> None:
    graph = g1()
    graph.library.function.append(function("f", "Neg"))
    session = direct_session(graph)
    before = session.graph_def()
    error = error_of(lambda: session.extend(extension))
    assert error.code is code
    assert error.message.startswith(message), error.message
    assert (session.graph_def(), session.graph_version) == (before, 0)
    assert session.run({"x": X}, ["n"]) == [-6]
    session.extend(graph_of(neg("after", "n")))
    assert session.run({"x": X}, ["after"]) == [6]


def test_all_unknown_ops_are_listed_with_their_nodes() -> None:
    graph = graph_of(bare("u", "NoSuchOp"), bare("w", "NoSuchOp"), bare("v", "NorThis"))
    message = error_of(lambda: direct_session(graph)).message
    assert "NoSuchOp (nodes u, w); NorThis (nodes v)" in message


def test_soft_placement_takes_the_cpu() -> None:
    config = pb.ConfigProto(allow_soft_placement=True)
    direct_session(graph_of(placed("/device:GPU:0")), config).run({}, [], ["p"])
    with pytest.raises(InvalidArgumentError, match=r"^Cannot assign a device for operation p"):
        direct_session(graph_of(placed("/job:worker/device:GPU:0")), config)


def test_a_node_with_too_few_inputs_fails_only_the_steps_that_reach_it() -> None:
    session = direct_session(g1())
    session.extend(graph_of(neg("z")))
    assert error_of(lambda: session.run({}, ["z"])).message.startswith(
        "Incomplete graph, missing 1 inputs for z"
    )
    assert session.run({"x": X}, ["m"]) == [6]


def test_a_read_of_no_variable_is_an_incomplete_graph() -> None:
    """The passes over the graph of a step expect that nodes have all inputs."""
    read = pb.NodeDef(name="read", op="ReadVariableOp")
    read.attr["dtype"].type = pb.DT_FLOAT
    handle = pb.NodeDef(name="v", op="VarHandleOp")
    handle.attr["dtype"].type = pb.DT_FLOAT
    handle.attr["shape"].shape.SetInParent()
    whole = pb.NodeDef(name="whole", op="ReadVariableOp", input=["v"])
    whole.attr["dtype"].type = pb.DT_FLOAT
    session = direct_session(graph_of(read, handle, whole))
    message = error_of(lambda: session.run({}, ["read", "whole"])).message
    assert message.startswith("Incomplete graph, missing 1 inputs for read")


def test_functions_are_called_like_ops_and_through_partitioned_call() -> None:
    graph = g1()
    graph.library.function.append(function("f", "Neg"))
    graph.node.add(name="direct", op="f", input=["m"])
    call = graph.node.add(name="call", op="PartitionedCall", input=["m"])
    call.attr["f"].func.name = "f"
    call.attr["Tin"].list.type.append(pb.DT_FLOAT)
    call.attr["Tout"].list.type.append(pb.DT_FLOAT)
    assert direct_session(graph).run({"x": X}, ["direct", "call"]) == [-6, -6]


def test_extend_during_runs() -> None:
    session = direct_session(g1())
    stop = threading.Event()
    seen: list[object] = []

    def run_on() -> None:
        while not stop.is_set():
            seen.append(session.run({"x": X}, ["n"])[0])

    threads = [threading.Thread(target=run_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    for index in range(10):
        session.extend(graph_of(neg(f"e{index}", "n" if index == 0 else f"e{index - 1}")))
    stop.set()
    for thread in threads:
        thread.join()
    assert set(seen) == {-6}
    assert session.run({"x": X}, ["e9"]) == [-6]
