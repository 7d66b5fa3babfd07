"""A graph with clusters as nodes: edges, order, targets, and graphs that name the op."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from runtime.api import NotFoundError, SessionOptions, new_session
from runtime.clusters.cluster_graph import CLUSTER_OP, clustered_graph, graph_of
from runtime.clusters.partition import partition
from runtime.graph.passes.pruning import StepGraph
from runtime.graph.topology import topological_order
from tests.conformance.case import Graph
from tests.unit.runtime.clusters.test_partition import TABLE, step_graph, step_graphs


@given(step_graphs())
def test_clusters_of_any_graph_make_no_cycle_and_lose_no_node(graph: StepGraph) -> None:
    clusters = partition(graph, TABLE)
    made = clustered_graph(graph, dict.fromkeys(clusters))
    assert topological_order(made.nodes) == made.nodes
    assert len([node for node in made.nodes if node.op == CLUSTER_OP]) == len(clusters)
    inside = {node for each in clusters for node in each.nodes}
    outside = [node.name for node in graph.nodes if node not in inside]
    assert sorted(each.name for each in made.nodes if each.op != CLUSTER_OP) == sorted(outside)
    assert len(made.fetches) == len(graph.fetches)
    known = set(made.nodes)
    assert {source for node in made.nodes for source, _ in node.inputs} <= known
    assert {control for node in made.nodes for control in node.control_inputs} <= known


def test_the_graph_stays_as_it_is() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    graph.add("Relu", x, name="y")
    step = step_graph(graph, ["x"], ["y"])
    before = [(node, list(node.inputs), list(node.control_inputs)) for node in step.nodes]
    (cluster,) = partition(step, TABLE)
    clustered_graph(step, {cluster: None})
    inner, copies = graph_of(cluster)
    assert before == [(node, node.inputs, node.control_inputs) for node in step.nodes]
    assert [node.op for node in inner.nodes] == ["_Arg", "Relu"]
    assert list(copies) == list(cluster.nodes)


def test_a_target_in_a_cluster_runs_the_cluster() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    graph.add("Relu", x, name="y")
    step = step_graph(graph, ["x"], ["y"], ["y"])
    made = clustered_graph(step, dict.fromkeys(partition(step, TABLE)))
    assert [node.op for node in made.targets] == [CLUSTER_OP]


def test_writes_and_reads_of_a_variable_keep_their_order() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    handle = graph.add("VarHandleOp", name="v", dtype="float32", shape=(), shared_name="v")[0]
    graph.add("ReadVariableOp", handle, name="before", dtype="float32")
    y = graph.add("Relu", x, name="y")[0]
    graph.add("AssignVariableOp", handle, y, name="set", dtype="float32")
    graph.add("ReadVariableOp", handle, name="after", dtype="float32")
    step = step_graph(graph, ["x"], ["before", "after"], ["set"])
    made = clustered_graph(step, dict.fromkeys(partition(step, TABLE)))
    names = [node.name for node in made.nodes]
    assert names.index("before") < names.index("set") < names.index("after")


def test_a_graph_that_names_the_op_of_clusters_has_an_unknown_op() -> None:
    graph = Graph()
    graph.add("Const", dtype="float32", value=np.float32(1), name="c")
    graph.graph_def.node[0].op = CLUSTER_OP
    session = new_session(SessionOptions())
    with pytest.raises(NotFoundError, match=CLUSTER_OP):
        session.create(graph.graph_def)
