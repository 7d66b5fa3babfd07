"""Colocation: nodes are placed together by name, by the resource they use, and in functions."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import InvalidArgumentError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import X, direct_session, graph_of

ONE, OTHER = "/device:CPU:0", "/device:CPU:1"


def together(name: str, op: str, *locations: str, device: str = "") -> pb.NodeDef:
    """An operation on `x` with colocation groups."""
    node = pb.NodeDef(name=name, op=op, input=["x"], device=device)
    node.attr["T"].type = pb.DT_FLOAT
    node.attr["_class"].list.s.extend(f"loc:@{each}".encode() for each in locations)
    return node


def graph(*nodes: pb.NodeDef) -> pb.GraphDef:
    placeholder = pb.NodeDef(name="x", op="Placeholder")
    placeholder.attr["dtype"].type = pb.DT_FLOAT
    return graph_of(placeholder, *nodes)


def placed(
    graph_def: pb.GraphDef, fetches: list[str], *extensions: pb.GraphDef, **config: bool
) -> dict[str, str]:
    """The devices of a step's nodes, by node name."""
    session = direct_session(graph_def, pb.ConfigProto(device_count={"CPU": 2}, **config))
    for extension in extensions:
        session.extend(extension)
    metadata = pb.RunMetadata()
    options = pb.RunOptions(output_partition_graphs=True)
    session.run({"x": X}, fetches, (), options, metadata)
    prefix = "/job:localhost/replica:0/task:0"
    return {
        node.name: node.device.removeprefix(prefix)
        for partition in metadata.partition_graphs
        for node in partition.node
    }


def test_a_node_goes_where_the_one_is_that_it_names() -> None:
    leader = together("a", "Neg", device=OTHER)
    found = placed(graph(leader, together("b", "Exp", "a")), ["a", "b"])
    assert (found["a"], found["b"]) == (OTHER, OTHER)


def test_whether_that_is_a_part_of_the_step_or_not() -> None:
    leader = together("a", "Neg", device=OTHER)
    assert placed(graph(leader, together("b", "Exp", "a")), ["b"])["b"] == OTHER


def test_an_extension_goes_where_the_graph_is() -> None:
    leader = together("a", "Neg", device=OTHER)
    assert placed(graph(leader), ["b"], graph_of(together("b", "Exp", "a")))["b"] == OTHER


def test_who_asks_for_a_device_takes_the_others_along() -> None:
    nodes = [together("a", "Neg"), together("b", "Exp", "a"), together("c", "Abs", "a")]
    nodes[1].device = OTHER
    found = placed(graph(*nodes), ["a", "c"])
    assert (found["a"], found["c"]) == (OTHER, OTHER)


def test_a_name_that_is_not_there_still_joins() -> None:
    nodes = [together("a", "Neg", "nowhere", device=OTHER), together("b", "Exp", "nowhere")]
    assert placed(graph(*nodes), ["b"])["b"] == OTHER


def test_two_names_join_two_groups() -> None:
    nodes = [
        together("a", "Neg", "one", device=OTHER),
        together("b", "Exp", "two"),
        together("c", "Abs", "one", "two"),
    ]
    found = placed(graph(*nodes), ["b", "c"])
    assert (found["b"], found["c"]) == (OTHER, OTHER)


def clash() -> pb.GraphDef:
    return graph(together("a", "Neg", device=OTHER), together("b", "Exp", "a", device=ONE))


def test_two_devices_at_once_are_refused() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        placed(clash(), ["b"])
    assert caught.value.message == (
        "Cannot colocate nodes {{colocation_node b}} and {{colocation_node a}}: Cannot merge "
        "devices with incompatible ids: '/device:CPU:1' and '/device:CPU:0'\n\t [[{{node b}}]]"
    )


def test_soft_placement_brings_them_together() -> None:
    found = placed(clash(), ["a", "b"], allow_soft_placement=True)
    assert (found["a"], found["b"]) == (ONE, ONE)


def test_operations_are_where_their_variable_is() -> None:
    built = Graph()
    handle = built.add("VarHandleOp", name="v", dtype="float32", shape=(), shared_name="v")[0]
    built.graph_def.node[-1].device = OTHER
    built.add("AssignVariableOp", handle, np.float32(3), name="assign", dtype="float32")
    session = direct_session(built.graph_def, pb.ConfigProto(device_count={"CPU": 2}))
    nodes = {node.name: node.device for node in session.graph_def().node}
    assert nodes["assign"].endswith(OTHER)


def calling(device: str, of_call: str = "") -> pb.GraphDef:
    """A graph whose node `call` calls a function whose node `r` requests a device."""
    built = Graph()
    function = built.graph_def.library.function.add(ret={"y": "r:y:0"})
    function.signature.name = "f"
    function.signature.input_arg.add(name="x", type=pb.DT_FLOAT)
    function.signature.output_arg.add(name="y", type=pb.DT_FLOAT)
    function.node_def.append(pb.NodeDef(name="r", op="Neg", input=["x"], device=device))
    function.node_def[0].attr["T"].type = pb.DT_FLOAT
    x = built.placeholder("float32", "x")
    body = NameAttrList("f", {})
    built.add("PartitionedCall", [x], f=body, Tout=(DataType.FLOAT,), name="call")
    built.graph_def.node[-1].device = of_call
    return built.graph_def


@pytest.mark.parametrize(("device", "of_call"), [(OTHER, ""), ("", OTHER), (OTHER, ONE)])
def test_a_function_s_node_is_where_it_asks_to_be_or_where_the_call_is(
    device: str, of_call: str
) -> None:
    assert placed(calling(device, of_call), ["call"])["call/r"] == OTHER


@pytest.mark.parametrize(
    ("device", "text"),
    [
        ("/device:GPU:0", "Cannot assign a device for operation call/r: {{node call/r}} was "),
        ("garbage", "Malformed device specification 'garbage' in node: {{node call/r}}"),
    ],
)
def test_a_function_that_asks_for_a_device_that_is_not_there(device: str, text: str) -> None:
    session = direct_session(calling(device))
    with pytest.raises(InvalidArgumentError) as caught:
        session.run({"x": X}, ["call"])
    assert caught.value.message.startswith(text)
