"""Partition: clusters are convex and complete; constants and control edges have their rules."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from runtime.clusters.emit_cluster import ClusterGraph
from runtime.clusters.op_emitter import OpEmitter
from runtime.clusters.partition import dependencies, partition, refusals
from runtime.clusters.values import Value
from runtime.graph.graph import Graph as RuntimeGraph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.node import Node
from runtime.graph.passes.pruning import StepGraph, prune
from runtime.graph.topology import topological_order
from tests.conformance.case import Graph


def _unused(*_: object) -> Value:
    raise AssertionError("partition emits nothing")


TABLE = {
    row.op: row
    for row in (
        OpEmitter("AddV2", _unused, is_heavy=True),
        OpEmitter("Relu", _unused),
        OpEmitter("Identity", _unused),
        OpEmitter("Shape", _unused),
        OpEmitter("Pack", _unused),
        OpEmitter("Reshape", _unused, constants=(1,)),
    )
}


def step_graph(
    graph: Graph, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str] = ()
) -> StepGraph:
    return prune(extend_graph(RuntimeGraph(), graph.graph_def), feeds, fetches, targets)


def names(clusters: Sequence[ClusterGraph]) -> list[list[str]]:
    return [[node.name for node in each.nodes] for each in clusters]


def edges_of(endpoints: Sequence[tuple[Node, int]]) -> list[str]:
    return [f"{node.name}:{index}" for node, index in endpoints]


def test_an_unsupported_node_between_two_cuts_them() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    first = graph.add("Relu", x, name="first")[0]
    cut = graph.add("Neg", first, name="cut")[0]
    graph.add("AddV2", cut, first, name="last")
    found = partition(step_graph(graph, ["x"], ["last"]), TABLE)
    assert names(found) == [["first"], ["last"]]
    assert edges_of(found[0].outputs) == ["first:0"]
    assert edges_of(found[1].inputs) == ["cut:0", "first:0"]


def test_a_node_beside_an_unsupported_one_stays_with_its_neighbours() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    first = graph.add("Relu", x, name="first")[0]
    graph.add("Neg", first, name="beside")
    graph.add("AddV2", first, x, name="last")
    found = partition(step_graph(graph, ["x"], ["last", "beside"]), TABLE)
    assert names(found) == [["first", "last"]]
    assert edges_of(found[0].outputs) == ["first:0", "last:0"]


def test_nodes_that_others_only_wait_for_are_no_cluster() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    graph.add("Relu", x, name="unread")
    graph.add("AddV2", x, x, name="sum")
    graph.add("NoOp", name="end", control=["unread", "sum"])
    step = step_graph(graph, ["x"], ["sum"], ["end"])
    assert names(partition(step, TABLE)) == [["sum"]]


def test_every_cluster_has_the_constants_that_it_reads() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    one = graph.add("Const", name="one", dtype="float32", value=np.float32(1))[0]
    first = graph.add("AddV2", x, one, name="first")[0]
    cut = graph.add("Neg", first, name="cut")[0]
    graph.add("AddV2", cut, one, name="last")
    found = partition(step_graph(graph, ["x"], ["last"]), TABLE)
    assert names(found) == [["one", "first"], ["one", "last"]]


def test_types_that_a_model_can_not_have_stay_outside() -> None:
    graph = Graph()
    x = graph.placeholder("string", "x")
    graph.add("Identity", x, name="same")
    assert partition(step_graph(graph, ["x"], ["same"]), TABLE) == []


def test_a_constant_input_may_be_computed_from_sizes() -> None:
    graph = Graph()
    x, shape = graph.placeholder("float32", "x"), graph.placeholder("int32", "shape")
    size = graph.add("Shape", x, name="size", out_type="int32")[0]
    same = graph.add("Identity", size, name="same")[0]
    graph.add("Reshape", x, same, name="known")
    graph.add("Reshape", x, shape, name="fed")
    found = partition(step_graph(graph, ["x", "shape"], ["known", "fed"]), TABLE)
    assert names(found) == [["size", "same", "known"]]


def test_refused_nodes_are_in_no_cluster() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    for name in ("a", "b", "c"):
        x = graph.add("Relu", x, name=name)[0]
    step = step_graph(graph, ["x"], ["c"])
    refused = [node for node in step.nodes if node.name == "b"]
    assert names(partition(step, TABLE, refused=refused)) == [["a"], ["c"]]


def test_sources_are_apart_from_inputs() -> None:
    graph = Graph()
    x, weight = graph.placeholder("float32", "x"), graph.placeholder("float32", "weight")
    graph.add("AddV2", weight, x, name="sum")
    step = step_graph(graph, ["x", "weight"], ["sum"])
    argument = step.arguments[1]
    assert argument is not None
    (found,) = partition(step, TABLE, sources=[(argument, 0)])
    assert edges_of(found.inputs) == ["_arg_x_0_0:0"]
    assert edges_of(found.sources) == ["_arg_weight_0_1:0"]


def test_a_control_edge_from_an_effect_orders_the_cluster() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    first = graph.add("Relu", x, name="first")[0]
    graph.add("Print", first, [first], name="shown")
    graph.add("NoOp", name="after", control=["shown"])
    graph.add("AddV2", first, x, name="last", control=["after"])
    found = partition(step_graph(graph, ["x"], ["last"]), TABLE)
    assert names(found) == [["first"], ["last"]]


def test_a_control_edge_from_a_read_orders_nothing() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    first = graph.add("Relu", x, name="first")[0]
    graph.add("Neg", first, name="pure")
    graph.add("NoOp", name="after", control=["pure"])
    graph.add("AddV2", first, x, name="last", control=["after"])
    found = partition(step_graph(graph, ["x"], ["last"]), TABLE)
    assert names(found) == [["first", "last"]]


def test_nothing_that_may_be_dead_is_in_a_cluster() -> None:
    graph = Graph()
    x, taken = graph.placeholder("float32", "x"), graph.placeholder("bool", "taken")
    branch = graph.add("Switch", x, taken, name="switch")[1]
    inner = graph.add("Relu", branch, name="inner")[0]
    graph.add("AddV2", x, inner, name="last")
    assert partition(step_graph(graph, ["x", "taken"], ["last"]), TABLE) == []


@st.composite
def step_graphs(draw: st.DrawFn) -> StepGraph:
    """Acyclic graphs of supported and unsupported nodes, with control edges and effects."""
    graph = Graph()
    outputs = [graph.placeholder("float32", "x")]
    made: list[str] = []
    for number in range(draw(st.integers(1, 25))):
        op = draw(st.sampled_from(("Relu", "AddV2", "AddV2", "Neg", "Print", "NoOp")))
        inputs = [draw(st.sampled_from(outputs)) for _ in range({"AddV2": 2, "NoOp": 0}.get(op, 1))]
        control = draw(st.lists(st.sampled_from(made), max_size=2, unique=True)) if made else []
        operands = [inputs[0], [inputs[0]]] if op == "Print" else inputs
        name = f"n{number}"
        outputs += graph.add(op, *operands, name=name, control=control)
        made.append(name)
    fetches = draw(st.lists(st.sampled_from(outputs[1:]), max_size=3)) if outputs[1:] else []
    return step_graph(graph, ["x"], [name for name, _ in fetches], made)


@given(step_graphs())
def test_clusters_are_convex_and_complete(graph: StepGraph) -> None:
    clusters = partition(graph, TABLE)
    ordered = topological_order(graph.nodes)
    edges = dependencies(ordered)
    members = [set(each.nodes) for each in clusters]
    supported = {node for node in graph.nodes if node.op in TABLE}
    grouped = set[Node]().union(*members)
    assert grouped <= supported
    assert sum(map(len, members)) == len(grouped)
    unread = supported - grouped
    read = {source for node in graph.nodes if node not in unread for source, _ in node.inputs}
    assert not unread & (read | {node for node, _ in graph.fetches})
    for inside in members:
        below: set[Node] = set()  # outside nodes that depend on the cluster
        for node in ordered:
            sources = edges[node]
            if node in inside:
                assert not any(source in below for source in sources), node.name
            elif any(source in inside or source in below for source in sources):
                below.add(node)


def test_each_node_that_no_cluster_may_have_has_a_reason() -> None:
    graph = Graph()
    x, text = graph.placeholder("float32", "x"), graph.placeholder("string", "text")
    shape = graph.placeholder("int32", "shape")
    graph.add("Relu", x, name="relu")
    graph.add("Neg", x, name="neg")
    graph.add("Identity", text, name="same")
    graph.add("Reshape", x, shape, name="reshaped")
    step = step_graph(graph, ["x", "text", "shape"], ["relu", "neg", "same", "reshaped"])
    reasons = {node.name: why for node, why in refusals(step, TABLE).items() if node.op != "_Arg"}
    assert reasons == {
        "neg": "no emitter writes it for the engine",
        "same": "the engine does not have the type of an input or output",
        "reshaped": "an input that must be constant is computed by each run",
    }
