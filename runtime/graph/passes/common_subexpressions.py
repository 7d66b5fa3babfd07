"""Common subexpression elimination: nodes with the same op, attributes and inputs become one.

It applies to stateless nodes outside of v1 control flow. Two constants are equal if their types,
shapes and bytes are equal.

TF: tensorflow/core/graph/optimizer_cse.cc
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from runtime.framework.attr_value import AttributeValue
from runtime.graph.node import Endpoint, Node
from runtime.graph.passes.pruning import StepGraph
from runtime.graph.topology import is_loop_node, topological_order

_MAX_COMPARED_BYTES = 1 << 16  # larger constants are equal only if they are the same object
_NEVER_SHARED = frozenset(("_Arg", "Placeholder", "PlaceholderV2", "NoOp", "Assert", "Print"))


def share_subexpressions(graph: StepGraph) -> None:
    """Change `graph`: of equal nodes, keep the first, which the readers of the others then read.

    Targets are never removed.
    """
    kept: dict[Hashable, Node] = {}
    replaced: dict[Node, Node] = {}
    for node in topological_order(graph.nodes):
        node.inputs = [_moved(endpoint, replaced) for endpoint in node.inputs]
        if not _may_be_shared(node):
            continue
        other = kept.setdefault(_key(node), node)
        if other is not node:
            replaced[node] = other
    if not replaced:
        return
    targets = set(graph.targets)
    graph.nodes = [node for node in graph.nodes if node not in replaced or node in targets]
    graph.fetches = [_moved(endpoint, replaced) for endpoint in graph.fetches]
    for node in graph.nodes:
        node.inputs = [_moved(endpoint, replaced) for endpoint in node.inputs]
        node.control_inputs = [replaced.get(control, control) for control in node.control_inputs]


def _moved(endpoint: Endpoint, replaced: dict[Node, Node]) -> Endpoint:
    return replaced.get(endpoint[0], endpoint[0]), endpoint[1]


def _may_be_shared(node: Node) -> bool:
    return not (
        node.info.is_stateful
        or node.op in _NEVER_SHARED
        or is_loop_node(node)
        or any(node.output_is_ref)
        or any(node.input_is_ref)
        or node.missing_inputs
    )


def _key(node: Node) -> Hashable:
    attrs = tuple((name, _hashable(node.find_attr(name))) for name in sorted(node.info.attr_types))
    inputs = tuple((id(source), index) for source, index in node.inputs)
    controls = frozenset(id(control) for control in node.control_inputs)
    return node.op, attrs, inputs, controls, node.device


def _hashable(value: AttributeValue) -> Hashable:
    if isinstance(value, np.ndarray):
        if value.dtype == np.dtype(object) or value.nbytes > _MAX_COMPARED_BYTES:
            return id(value)
        return value.dtype.str, value.shape, value.tobytes()
    return repr(value)
