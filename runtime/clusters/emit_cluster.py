"""Emits a cluster: calls the emitter of each node and keeps the values of the edges."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from runtime.clusters.dimensions import InexpressibleError, Shape
from runtime.clusters.emission import ONNX_TYPES, DeclinedError, Emission
from runtime.clusters.emitters import EMITTERS
from runtime.clusters.op_emitter import OpEmitter
from runtime.clusters.patterns import PATTERNS, recognize
from runtime.clusters.patterns.pattern import Pattern
from runtime.clusters.values import Value
from runtime.framework.dtypes import DataType
from runtime.graph.node import Endpoint, Node

_SUMS = frozenset((
    "Add", "AddN", "AddV2", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "BiasAdd", "Conv2D",
    "DepthwiseConv2dNative", "MatMul", "Mean", "Mul", "Sub", "Sum",
))  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterGraph:
    """The nodes of a cluster in topological order, and the edges that enter and leave it.

    `inputs` are known at a run; `sources` follow from variables only. Const nodes that the cluster
    reads are among `nodes`.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Endpoint, ...]
    sources: tuple[Endpoint, ...]
    outputs: tuple[Endpoint, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class EmittedCluster:
    """The operations of a cluster, and the values of `ClusterGraph.outputs` in that order."""

    emission: Emission
    outputs: tuple[Value, ...]


class RefusedError(Exception):
    """Some nodes of a cluster can't be written; `reasons` says which and why."""

    def __init__(self, reasons: Mapping[Node, str]) -> None:
        super().__init__("; ".join(f"{node.name} ({node.op}): {reasons[node]}" for node in reasons))
        self.reasons = dict(reasons)


def emit_cluster(
    cluster: ClusterGraph,
    shapes: Sequence[Shape],
    arrays: Sequence[np.ndarray],
    table: Mapping[str, OpEmitter] = EMITTERS,
    patterns: Sequence[Pattern] = PATTERNS,
) -> EmittedCluster:
    """Return the cluster as operations of a model, in which `patterns` are recognised.

    `shapes` are those of `cluster.inputs`, with symbols for sizes that may differ between runs;
    `arrays` are the present values of `cluster.sources`. Raises RefusedError with every node that
    its emitter declines; nodes that read an output of such a node are left out of account.
    """
    emission = Emission()
    emission.summed = _summed(cluster)
    values: dict[Endpoint, Value] = {}
    for endpoint, shape in zip(cluster.inputs, shapes, strict=True):
        values[endpoint] = emission.input(_type_of(endpoint), shape)
    for position, (endpoint, array) in enumerate(zip(cluster.sources, arrays, strict=True)):
        values[endpoint] = emission.weight(array, position)
    refused: dict[Node, str] = {}
    for node in cluster.nodes:
        if node.op == "Const":
            values[node, 0] = emission.constant(node.attr("value"))
        elif all(endpoint in values for endpoint in node.inputs):
            _emit(emission, node, values, table, refused)
    for node, index in cluster.outputs:
        if (node, index) in values and values[node, index].dtype not in ONNX_TYPES:
            refused[node] = f"a {node.output_types[index].name} leaves the cluster"
    if refused:
        raise RefusedError(refused)
    outputs = [emission.in_model(emission.as_is(values[each])) for each in cluster.outputs]
    outputs = recognize(emission, outputs, patterns)
    emission.add_checks()
    return EmittedCluster(emission, tuple(outputs))


def _emit(
    emission: Emission,
    node: Node,
    values: dict[Endpoint, Value],
    table: Mapping[str, OpEmitter],
    refused: dict[Node, str],
) -> None:
    emission.node_name = node.name
    try:
        made = table[node.op].emit(emission, node, [values[each] for each in node.inputs])
    except (DeclinedError, InexpressibleError) as error:
        refused[node] = str(error)
        return
    for index, value in enumerate(made if isinstance(made, list) else [made]):
        assert value.dtype is node.output_types[index], f"{node.name}:{index} is {value.dtype!r}"
        values[node, index] = value


def _summed(cluster: ClusterGraph) -> frozenset[Node]:
    """Return the nodes that only sums and products in the cluster read."""
    read: set[Node] = set()
    other = {node for node, _ in cluster.outputs}
    for node in cluster.nodes:
        (read if node.op in _SUMS else other).update(source for source, _ in node.inputs)
    return frozenset(read - other)


def _type_of(endpoint: Endpoint) -> DataType:
    node, index = endpoint
    return node.output_types[index]
