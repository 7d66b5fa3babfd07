"""Checks of a GraphDef: names, attributes, versions, devices, functions; with exact messages."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import protos as pb
from runtime.api import DataType, InvalidArgumentError, NotFoundError
from runtime.graph.graph import Graph as RuntimeGraph
from runtime.graph.graph_constructor import extend_graph
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import X, direct_session, g1, graph_of, neg

ONE_ELEMENT = sys.getsizeof([None])  # bytes of a list that has room for one element


@pytest.mark.parametrize("name", ["9a/b.c-d>e", ".a", "A_b", "a/b/c"])
def test_accepted_names(name: str) -> None:
    session = direct_session(g1())
    session.extend(graph_of(neg(name, "n")))
    assert session.run({"x": X}, [name]) == [6]


@pytest.mark.parametrize("name", ["", "_x", "/x", "-x", "a b", "a\n", "ä", "a:b", "a\\b"])
def test_refused_names(name: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        direct_session(g1()).extend(graph_of(neg(name, "n")))
    assert caught.value.message == f"Node '{name}': Node name contains invalid characters"


def test_attributes_that_the_op_does_not_have_are_kept_and_ignored() -> None:
    node = neg("z", "n")
    node.attr["unheard_of"].i = 3
    node.attr["_class"].list.s.append(b"loc:@n")
    session = direct_session(g1())
    session.extend(graph_of(node))
    assert session.run({"x": X}, ["z"]) == [6]
    assert session.graph_def().node[-1].attr["unheard_of"].i == 3


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        (
            "Split",
            2,
            {"num_split": 0},
            "Value for attr 'num_split' of 0 must be at least minimum 1",
        ),
        (
            "SpaceToDepth",
            1,
            {"block_size": 1},
            "Value for attr 'block_size' of 1 must be at least minimum 2",
        ),
        (
            "Dilation2D",
            2,
            {"strides": [1, 1, 1, 1], "rates": [1, 1, 1], "padding": "VALID"},
            "Length for attr 'rates' of 3 must be at least minimum 4",
        ),
    ],
)
def test_attributes_below_their_minimum(
    op: str, inputs: int, attrs: dict[str, object], message: str
) -> None:
    graph = Graph()
    given = [graph.placeholder(np.float32, f"x{number}") for number in range(inputs)]
    if op == "Split":
        given[0] = graph.placeholder(np.int32, "axis")
    graph.add(op, *given, name="z", **attrs)
    with pytest.raises(InvalidArgumentError) as caught:
        extend_graph(RuntimeGraph(), graph.graph_def)
    assert caught.value.message.startswith(f"{message}\n\t; NodeDef: {{{{node z}}}}; Op<name={op}>")


def test_a_missing_output_of_a_branch_hints_at_intermediates() -> None:
    graph = g1()
    branch = graph.node.add(name="branch", op="StatelessIf", input=["m"])
    branch.attr["Tcond"].type = pb.DT_FLOAT
    branch.attr["Tout"].list.type.append(pb.DT_FLOAT)
    branch.attr["Tin"].list.SetInParent()
    for name in ("then_branch", "else_branch"):
        branch.attr[name].func.name = "f"
    graph.node.append(neg("z", "branch:1"))
    with pytest.raises(InvalidArgumentError) as caught:
        direct_session(graph)
    assert caught.value.message == (
        "Node 'z': Connecting to invalid output 1 of source node branch which has 1 outputs. "
        "Try using tf.compat.v1.experimental.output_all_intermediates(True)."
    )


def test_nodes_may_come_before_their_inputs() -> None:
    session = direct_session(g1())
    session.extend(graph_of(neg("late", "early"), neg("early", "n")))
    assert session.run({"x": X}, ["late"]) == [-6]


def test_shapes_that_do_not_fit_are_an_error_of_the_run() -> None:
    graph = g1()
    matmul = graph.node.add(name="mm", op="MatMul", input=["a", "a"])  # both of rank 0
    matmul.attr["T"].type = pb.DT_FLOAT
    session = direct_session(graph)
    assert session.run({"x": X}, ["m"]) == [6]
    with pytest.raises(InvalidArgumentError, match="In\\[0\\]"):
        session.run({}, ["mm"])


VERSIONS = [
    (
        pb.VersionDef(min_consumer=99999),
        "GraphDef min consumer version 99999 above current version 2474 for TensorFlow 2.21.0.  "
        "Please upgrade TensorFlow.",
    ),
    (
        pb.VersionDef(producer=-5),
        "GraphDef producer version -5 below min producer 0 supported by TensorFlow 2.21.0.  "
        "Please regenerate your graph.",
    ),
    (
        pb.VersionDef(producer=2474, bad_consumers=[2474]),
        "GraphDef disallows consumer version 2474.  Please upgrade TensorFlow: this version is "
        "likely buggy.",
    ),
]


@pytest.mark.parametrize(("versions", "message"), VERSIONS)
def test_refused_versions(versions: pb.VersionDef, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        direct_session(pb.GraphDef(node=[pb.NodeDef(name="b", op="NoOp")], versions=versions))
    assert caught.value.message == message


def test_an_extension_may_come_from_another_producer() -> None:
    session = direct_session(g1())
    session.extend(pb.GraphDef(node=[neg("old", "n")], versions=pb.VersionDef(producer=21)))
    assert session.run({"x": X}, ["old"]) == [6]


def test_a_call_of_a_function_that_is_not_there() -> None:
    graph = g1()
    call = graph.node.add(name="call", op="PartitionedCall", input=["m"])
    call.attr["f"].func.name = "nofn"
    call.attr["Tin"].list.type.append(pb.DT_FLOAT)
    call.attr["Tout"].list.type.append(pb.DT_FLOAT)
    session = direct_session(graph)
    with pytest.raises(InvalidArgumentError) as caught:
        session.run({"x": X}, ["call"])
    assert caught.value.message.startswith('Failed to find function "nofn" in function library:')
    assert session.run({"x": X}, ["n"]) == [-6]


def test_an_unknown_op_names_itself() -> None:
    with pytest.raises(NotFoundError) as caught:
        direct_session(graph_of(pb.NodeDef(name="u", op="NoSuchOp")))
    assert caught.value.message.startswith(
        "Op type not registered 'NoSuchOp' in binary running on "
    )
    assert (
        "Make sure the Op and Kernel are registered in the binary running in this process."
        in caught.value.message
    )


DEVICES = [
    ("/device:GPU:0", "was explicitly assigned to /device:GPU:0"),
    ("/device:CPU:2", "was explicitly assigned to /device:CPU:2"),
    ("/job:worker/task:3", "was explicitly assigned to /job:worker/task:3"),
]


@pytest.mark.parametrize(("device", "text"), DEVICES)
def test_devices_that_are_not_there(device: str, text: str) -> None:
    two = pb.ConfigProto(device_count={"CPU": 2})
    with pytest.raises(InvalidArgumentError) as caught:
        direct_session(graph_of(pb.NodeDef(name="p", op="NoOp", device=device)), two)
    prefix = "/job:localhost/replica:0/task:0/device:CPU"
    assert caught.value.message == (
        f"Cannot assign a device for operation p: {{{{node p}}}} {text} but available devices are "
        f"[ {prefix}:0, {prefix}:1 ]. Make sure the device specification refers to a valid device."
    )


def test_a_device_that_is_no_device_specification() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        direct_session(graph_of(pb.NodeDef(name="p", op="NoOp", device="garbage")))
    assert caught.value.message == ("Malformed device specification 'garbage' in node: {{node p}}")


def test_a_pruned_graph_is_placed_when_it_runs() -> None:
    config = pb.ConfigProto()
    config.graph_options.place_pruned_graph = True
    graph = g1()
    graph.node.add(name="far", op="NoOp", device="/device:GPU:0")
    session = direct_session(graph, config)
    assert session.run({"x": X}, ["n"]) == [-6]
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="Cannot assign a device for operation far"):
            session.run({}, (), ["far"])
    assert session.run({"x": X}, ["m"]) == [6]


def test_references_and_types_are_not_mixed_up() -> None:
    """True == 1 == DataType.FLOAT: a cached tuple of one must not be returned for another."""
    variable = Graph()
    variable.add("VariableV2", name="v", dtype="float32", shape=(2,))
    plain = Graph()
    plain.placeholder("float32", "x")
    for graph, name, is_ref in ((variable, "v", True), (plain, "x", False)):
        node = extend_graph(RuntimeGraph(), graph.graph_def).nodes[name]
        assert node.output_types == (DataType.FLOAT,)
        assert all(isinstance(each, DataType) for each in node.output_types)
        assert node.output_is_ref == (is_ref,)
        assert all(isinstance(each, bool) for each in node.output_is_ref)


def test_many_control_inputs_take_linear_time() -> None:
    """A node with 20,000 control inputs; comparing each with all others would take minutes."""
    count = 20_000
    graph_def = pb.GraphDef()
    for number in range(count):
        graph_def.node.add(name=f"n{number}", op="NoOp")
    names = [f"^n{number}" for number in range(count)]
    graph_def.node.add(name="all", op="NoOp", input=names + names)
    made = extend_graph(RuntimeGraph(), graph_def)
    assert len(made.nodes["all"].control_inputs) == count


def test_edge_lists_have_no_room_for_more() -> None:
    nodes = [neg("first", "x"), neg("second", "x")]
    nodes[1].input.append("^first")
    node = extend_graph(RuntimeGraph(), graph_of(*g1().node, *nodes)).nodes["second"]
    assert [source.name for source, _ in node.inputs] == ["x"]
    assert [source.name for source in node.control_inputs] == ["first"]
    assert {sys.getsizeof(edges) for edges in (node.inputs, node.control_inputs)} == {ONE_ELEMENT}
