"""The graph of a step with its clusters as single nodes, and the graph of one cluster.

Both are copies, so the graph from which they come stays as it is. The op of a cluster's node is
known here only: a graph that comes from outside and names it has an unknown op.
"""

from __future__ import annotations

from collections.abc import Mapping

import protos as pb
from runtime.clusters.cluster_op import CLUSTER_OP
from runtime.clusters.emit_cluster import ClusterGraph
from runtime.clusters.partition import effects_of, visible_control_inputs
from runtime.clusters.resource_order import order_edges
from runtime.framework.op_kernel import KernelDef, KernelResult, OpKernelContext
from runtime.framework.tensor_value import TensorValue
from runtime.graph.node import Endpoint, Node, OpInfo
from runtime.graph.passes.pruning import StepGraph, argument_node
from runtime.graph.topology import topological_order


def _op_def() -> pb.OpDef:
    op_def = pb.OpDef(name=CLUSTER_OP)
    op_def.input_arg.add(name="inputs", type_list_attr="Tin")
    op_def.output_arg.add(name="outputs", type_list_attr="Tout")
    for name in ("Tin", "Tout"):
        op_def.attr.add(name=name, type="list(type)")
    return op_def


_CLUSTER_INFO = OpInfo(_op_def())


def _run_cluster(context: OpKernelContext, *values: TensorValue) -> KernelResult:
    """Run the kernel that `clustered_graph` gave the node."""
    return context.node.attr("kernel")(context, values)


CLUSTER_KERNEL = KernelDef(CLUSTER_OP, _run_cluster)


def clustered_graph(graph: StepGraph, clusters: Mapping[ClusterGraph, object]) -> StepGraph:
    """Return a copy of `graph` in which each cluster is one node.

    The values of `clusters` are the kernels: functions of a context and the arrays of the cluster's
    inputs, which return a list of its outputs. They find its sources in the step.
    """
    effects = effects_of(graph)
    in_order = order_edges(topological_order(graph.nodes))
    copies: dict[Node, Node] = {}
    endpoints: dict[Endpoint, Endpoint] = {}
    for number, (cluster, kernel) in enumerate(clusters.items()):
        node = _cluster_node(cluster, number, kernel)
        members = [each for each in cluster.nodes if each.op != "Const"]
        copies |= dict.fromkeys(members, node)
        endpoints |= {each: (node, index) for index, each in enumerate(cluster.outputs)}
    nodes: dict[Node, None] = {}
    for node in graph.nodes:
        copy = copies.get(node)
        if copy is None:
            copy = copies[node] = node.clone()
        nodes[copy] = None

    def copied(endpoint: Endpoint) -> Endpoint:
        return endpoints.get(endpoint) or (copies[endpoint[0]], endpoint[1])

    edges: dict[Node, dict[Node, None]] = {copy: {} for copy in nodes}
    for node in graph.nodes:
        copy = copies[node]
        before = [*visible_control_inputs(node, effects), *in_order.get(node, ())]
        edges[copy].update((copies[each], None) for each in before if copies[each] is not copy)
        if copy.op != CLUSTER_OP:
            copy.inputs = [copied(endpoint) for endpoint in node.inputs]
    for cluster in clusters:
        node = copies[cluster.nodes[-1]]
        node.inputs = [copied(each) for each in cluster.inputs]
    for copy, before_copy in edges.items():
        copy.control_inputs = list(before_copy)
    return StepGraph(
        topological_order(list(nodes)),
        [None if each is None else copies[each] for each in graph.arguments],
        [copied(endpoint) for endpoint in graph.fetches],
        list(dict.fromkeys(copies[node] for node in graph.targets)),
        list(graph.retvals),
    )


def _cluster_node(cluster: ClusterGraph, number: int, kernel: object) -> Node:
    inputs = [source.output_types[index] for source, index in cluster.inputs]
    outputs = tuple(node.output_types[index] for node, index in cluster.outputs)
    node = Node(
        f"cluster_{number}",
        _CLUSTER_INFO,
        pb.NodeDef(name=f"cluster_{number}", op=CLUSTER_OP, device=cluster.nodes[-1].device),
        {"Tin": tuple(inputs), "Tout": outputs, "kernel": kernel},
    )
    node.output_types, node.output_is_ref = outputs, (False,) * len(outputs)
    node.input_is_ref = (False,) * len(inputs)
    return node


def graph_of(cluster: ClusterGraph) -> tuple[StepGraph, dict[Node, Node]]:
    """Return a cluster as the graph of a step, and the copies of its nodes in that graph.

    Its arguments are the inputs and then the sources of the cluster, its fetches the outputs.
    """
    arguments = {
        endpoint: argument_node(endpoint, position)
        for position, endpoint in enumerate((*cluster.inputs, *cluster.sources))
    }
    copies = {node: node.clone() for node in cluster.nodes}
    for node, copy in copies.items():
        copy.inputs = [
            (arguments[each], 0) if each in arguments else (copies[each[0]], each[1])
            for each in node.inputs
        ]
        copy.control_inputs = []
    graph = StepGraph(
        [*arguments.values(), *copies.values()],
        list(arguments.values()),
        [(copies[node], index) for node, index in cluster.outputs],
        [],
    )
    return graph, copies
