"""Several devices in one session: placement, transfers, and the same values as on one device."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import DirectSession, InvalidArgumentError
from runtime.graph.passes.placer import log_device_mapping
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import direct_session, in_caller

PREFIX = "/job:localhost/replica:0/task:0/device:CPU:"


class PlacedGraph(Graph):
    """A graph whose nodes may name a CPU."""

    def on(self, cpu: int, op: str, *inputs: Any, **attrs: Any) -> Any:
        outputs = self.add(op, *inputs, **attrs)
        self.graph_def.node[-1].device = f"/device:CPU:{cpu}"
        return outputs[0] if outputs else None


def ping_pong(devices: Sequence[int]) -> pb.GraphDef:
    """A chain n0, n1, … of operations on x, placed on the given devices in turn."""
    graph = PlacedGraph()
    value: Any = graph.placeholder("float32", "x")
    for index, cpu in enumerate(devices):
        value = graph.on(cpu, ("Exp", "Neg", "Sigmoid")[index % 3], value, name=f"n{index}")
    return graph.graph_def


def two_cpus(graph: pb.GraphDef) -> DirectSession:
    return direct_session(graph, pb.ConfigProto(device_count={"CPU": 2}))


@pytest.mark.parametrize("options", [pb.RunOptions(), in_caller()], ids=["pool", "caller"])
def test_two_devices_give_what_one_gives(options: pb.RunOptions) -> None:
    x = np.float32([0.5, -2])
    fetches = ["n5", "n2", "n0"]
    split = two_cpus(ping_pong([0, 1, 0, 1, 1, 0]))
    whole = direct_session(ping_pong([0] * 6))
    for _ in range(3):
        ours = split.run({"x": x}, fetches, (), options)
        for got, want in zip(ours, whole.run({"x": x}, fetches), strict=True):
            np.testing.assert_array_equal(got, want)


def test_partition_graphs_hold_pairs_of_send_and_recv() -> None:
    metadata = pb.RunMetadata()
    options = pb.RunOptions(output_partition_graphs=True, trace_level=pb.RunOptions.FULL_TRACE)
    two_cpus(ping_pong([1, 0])).run({"x": np.float32(1)}, ["n1"], (), options, metadata)
    client, other = metadata.partition_graphs
    assert {node.name: node.op for node in client.node} == {
        "_arg_x_0_0": "_Arg",
        "_arg_x_0_0/_0": "_Send",
        "n0/_3": "_Recv",
        "n1": "Neg",
        "_retval_n1_0_0": "_Retval",
    }
    assert {node.name: node.op for node in other.node} == {
        "_arg_x_0_0/_1": "_Recv",
        "n0": "Exp",
        "n0/_2": "_Send",
    }

    def edges(graph: pb.GraphDef, op: str) -> set[bytes]:
        return {node.attr["tensor_name"].s for node in graph.node if node.op == op}

    assert edges(client, "_Send") == edges(other, "_Recv")
    assert edges(other, "_Send") == edges(client, "_Recv")
    assert {node.device for node in other.node} == {f"{PREFIX}1"}
    assert {device.device for device in metadata.step_stats.dev_stats} == {
        f"{PREFIX}0",
        f"{PREFIX}1",
    }


def test_a_value_crosses_once_for_all_its_readers() -> None:
    graph = PlacedGraph()
    x = graph.placeholder("float32", "x")
    one = graph.on(1, "Neg", x, name="one")
    two = graph.on(1, "Exp", x, name="two")
    graph.on(0, "AddV2", one, two, name="sum")
    metadata = pb.RunMetadata()
    options = pb.RunOptions(output_partition_graphs=True)
    two_cpus(graph.graph_def).run({"x": np.float32(1)}, ["sum"], (), options, metadata)
    assert [node.op for node in metadata.partition_graphs[0].node].count("_Send") == 1


def test_control_edges_cross() -> None:
    graph = PlacedGraph()
    variable = graph.on(1, "VarHandleOp", name="v", dtype="float32", shape=(), shared_name="v")
    graph.on(1, "AssignVariableOp", variable, np.float32(7), name="assign", dtype="float32")
    graph.on(0, "NoOp", name="after", control=["assign"])
    graph.on(1, "ReadVariableOp", variable, name="read", dtype="float32")
    session = two_cpus(graph.graph_def)
    session.run({}, [], ["after"])
    assert session.run({}, ["read"]) == [7]


def test_operations_on_a_variable_go_where_it_is() -> None:
    graph = PlacedGraph()
    graph.on(1, "VariableV2", name="v", dtype="float32", shape=())
    variable = ("v:0", graph.placeholder("float32", "x")[1])
    graph.add("Assign", variable, np.float32(3), name="assign")
    graph.add("AssignAdd", variable, np.float32(1), name="add")
    session = two_cpus(graph.graph_def)
    session.run({}, [], ["assign"])
    assert session.run({}, ["add"]) == [4]


def test_an_error_on_one_device_ends_the_step() -> None:
    graph = PlacedGraph()
    x = graph.placeholder("float32", "x")
    bad = graph.on(1, "AddV2", x, np.zeros(3, np.float32), name="bad")
    graph.on(0, "Neg", bad, name="n")
    session = two_cpus(graph.graph_def)
    for options in (pb.RunOptions(), in_caller()):
        with pytest.raises(InvalidArgumentError, match="Incompatible shapes") as caught:
            session.run({"x": np.zeros(2, np.float32)}, ["n"], (), options)
        assert "{{node bad}}" in caught.value.message
    assert session.run({"x": np.float32(1)}, ["n"])[0].tolist() == [-1, -1, -1]


def test_a_dead_value_crosses_dead() -> None:
    graph = PlacedGraph()
    x = graph.placeholder("float32", "x")
    pred = graph.placeholder("bool", "pred")
    false, true = graph.add("Switch", x, pred, name="switch")
    one = graph.on(1, "Neg", true, name="one")
    graph.on(0, "Merge", [false, one], name="merged")
    session = two_cpus(graph.graph_def)
    for pred_value, want in ((True, -3), (False, 3)):
        feeds = {"x": np.float32(3), "pred": np.bool_(pred_value)}
        assert session.run(feeds, ["merged"]) == [want]


def test_placement_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    graph = ping_pong([1, 0])
    graph.node[-1].attr["_class"].list.s.append(b"loc:@n0")
    graph.node[-1].device = ""
    config = pb.ConfigProto(log_device_placement=True, device_count={"CPU": 2})
    with caplog.at_level(logging.INFO, logger="runtime.graph.passes.placer"):
        direct_session(graph, config)
    assert caplog.messages == [
        f"Device mapping:\n{PREFIX}0 -> CPU\n{PREFIX}1 -> CPU",
        f"x: (Placeholder): {PREFIX}0",
        f"n0: (Exp): {PREFIX}1",
        f"n1: (Neg): {PREFIX}1",
    ]


def test_no_device_is_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="runtime.graph.passes.placer"):
        log_device_mapping([])
    assert caplog.messages == ["Device mapping: no known devices."]
