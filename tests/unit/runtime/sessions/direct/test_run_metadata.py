"""Metadata of steps on request: traces, costs, partition graphs."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import DirectSession, InvalidArgumentError
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import X, direct_session, g1

CPU = "/job:localhost/replica:0/task:0/device:CPU"


def reported(session: DirectSession, **options: object) -> pb.RunMetadata:
    metadata = pb.RunMetadata()
    session.run({"x": X}, ["n"], (), pb.RunOptions(**options), metadata)  # type: ignore[arg-type]
    return metadata


@pytest.mark.parametrize("level", [1, 2, 3])
def test_every_level_traces_every_node(level: int) -> None:
    (device,) = reported(direct_session(g1()), trace_level=level).step_stats.dev_stats
    names = {stats.node_name for stats in device.node_stats}
    assert names == {"_SOURCE", "_arg_x_0_0", "a", "m", "n", "_retval_n_0_0"}


def test_nodes_without_work_stand_at_the_ends_of_the_step() -> None:
    (device,) = reported(direct_session(g1()), trace_level=3).step_stats.dev_stats
    begun = {stats.node_name: stats.all_start_nanos for stats in device.node_stats}
    assert begun["_SOURCE"] == begun["_arg_x_0_0"] <= begun["m"] <= begun["n"]
    assert begun["n"] <= begun["_retval_n_0_0"]


def test_partition_graphs_may_be_switched_off() -> None:
    config = pb.ConfigProto()
    config.experimental.disable_output_partition_graphs = True
    session = direct_session(g1(), config)
    with pytest.raises(InvalidArgumentError) as caught:
        reported(session, output_partition_graphs=True)
    assert caught.value.message == (
        "RunOptions.output_partition_graphs() is not supported when "
        "disable_output_partition_graphs is true."
    )
    assert reported(session) == pb.RunMetadata()


@pytest.mark.parametrize(
    ("every", "after", "costs"),
    [
        (0, 0, [False, False, False, False]),
        (1, 0, [True, True, True, True]),
        (2, 0, [False, True, False, True]),
        (2, 1, [False, False, True, False]),
    ],
)
def test_when_costs_are_reported(every: int, after: int, costs: list[bool]) -> None:
    config = pb.ConfigProto()
    config.graph_options.build_cost_model = every
    config.graph_options.build_cost_model_after = after
    session = direct_session(g1(), config)
    assert [reported(session).HasField("cost_graph") for _ in costs] == costs


def test_a_fetch_keeps_its_name_whatever_becomes_of_its_node() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    for name in ("first", "second"):  # common subexpressions: one node is computed for both
        graph.add("Neg", x, name=name)
    graph.add("Neg", np.float32(1), name="folded")
    graph.add("Neg", x, name="elsewhere")
    graph.graph_def.node[-1].device = "/device:CPU:1"
    session = direct_session(graph.graph_def, pb.ConfigProto(device_count={"CPU": 2}))
    metadata = pb.RunMetadata()
    options = pb.RunOptions(output_partition_graphs=True, trace_level=pb.RunOptions.FULL_TRACE)
    session.run({"x": X}, ["elsewhere", "folded", "second"], (), options, metadata)
    expected = {"_retval_elsewhere_0_0", "_retval_folded_0_1", "_retval_second_0_2"}
    graphs = [node.name for part in metadata.partition_graphs for node in part.node]
    traced = [node.node_name for each in metadata.step_stats.dev_stats for node in each.node_stats]
    for names in (graphs, traced):
        assert {name for name in names if name.startswith("_retval")} == expected


def test_feeds_and_fetches_are_on_the_client_device() -> None:
    graph = g1()
    graph.node[-2].device = "/device:CPU:1"
    session = direct_session(graph, pb.ConfigProto(device_count={"CPU": 2}))
    assert session.list_devices()[0].name == f"{CPU}:0"
    metadata = reported(session, output_partition_graphs=True)
    devices = {node.name: node.device for graph in metadata.partition_graphs for node in graph.node}
    assert devices["_arg_x_0_0"] == devices["_retval_n_0_0"] == f"{CPU}:0"
    assert devices["m"] == f"{CPU}:1"


def run_reporting(session: DirectSession, **options: object) -> pb.RunMetadata:
    metadata = pb.RunMetadata()
    session.run({"x": X}, ["m"], (), pb.RunOptions(**options), metadata)  # type: ignore[arg-type]
    return metadata


def test_a_trace_lists_every_node() -> None:
    metadata = run_reporting(direct_session(g1()), trace_level=pb.RunOptions.FULL_TRACE)
    (device,) = metadata.step_stats.dev_stats
    names = {stats.node_name for stats in device.node_stats}
    assert names == {"_SOURCE", "_arg_x_0_0", "a", "m", "_retval_m_0_0"}
    assert device.device == "/job:localhost/replica:0/task:0/device:CPU:0"


def test_no_trace_reports_nothing() -> None:
    assert run_reporting(direct_session(g1())) == pb.RunMetadata()


def test_partition_graphs() -> None:
    metadata = run_reporting(direct_session(g1()), output_partition_graphs=True)
    (graph,) = metadata.partition_graphs
    assert {n.name: n.op for n in graph.node} == {
        "_arg_x_0_0": "_Arg",
        "a": "Const",
        "m": "Mul",
        "_retval_m_0_0": "_Retval",
    }


def test_costs_come_every_nth_step() -> None:
    config = pb.ConfigProto()
    config.graph_options.build_cost_model = 3
    session = direct_session(g1(), config)
    has_costs = [run_reporting(session).HasField("cost_graph") for _ in range(6)]
    assert has_costs == [False, False, True, False, False, True]
