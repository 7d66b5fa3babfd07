"""The order between the stateful nodes of a step, which no edge of the graph gives.

A step plan runs nodes in one order, and two nodes that use one resource must keep theirs when nodes
between them become one. Only the order of a plan is kept: TensorFlow gives none without edges.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from runtime.framework.dtypes import DataType
from runtime.graph.node import Endpoint, Node

# Stateful ops without an effect: a step with these in another order gives the same values.
_HANDLES = frozenset(("VarHandleOp",))
_READS = frozenset(
    ("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape",
     "VarIsInitializedOp", "LookupTableFindV2", "LookupTableSizeV2")
)  # fmt: skip
_UNKNOWN = "unknown"  # the key of a resource that may be any
_NO_RESOURCE = "none"  # the key of nodes with effects elsewhere, such as Print


def has_effect(node: Node) -> bool:
    """Return whether a later node could see that `node` has run, other than by its outputs."""
    return (
        (node.info.is_stateful and node.op not in _HANDLES and node.op not in _READS)
        or any(node.input_is_ref)
        or any(node.output_is_ref)
    )


def order_edges(ordered: Sequence[Node]) -> dict[Node, list[Node]]:
    """Return, for each node of a plan's order, the earlier nodes that must stay before it.

    A reader follows the newest writer of its resource; a writer follows that and all readers since.
    A node whose resource can't be told counts as a writer of all resources.
    """
    writers: dict[Hashable, Node] = {}
    readers: dict[Hashable, list[Node]] = {}
    found: dict[Node, list[Node]] = {}
    for node in ordered:
        keys = _keys(node)
        if not keys:
            continue
        before: dict[Node, None] = {}
        is_writer = has_effect(node)
        if _UNKNOWN in keys:
            keys = [*writers, *(key for key in readers if key not in writers), *keys]
        else:
            keys = [*keys, _UNKNOWN]
        for key in dict.fromkeys(keys):
            if key in writers:
                before[writers[key]] = None
            if is_writer:
                before.update(dict.fromkeys(readers.get(key, ())))
        for key in dict.fromkeys(keys):
            if key == _UNKNOWN and _UNKNOWN not in _keys(node):
                continue
            if is_writer:
                writers[key] = node
                readers[key] = []
            else:
                readers.setdefault(key, []).append(node)
        before.pop(node, None)
        if before:
            found[node] = list(before)
    return found


def _keys(node: Node) -> list[Hashable]:
    """Return the resources that a node uses; none if it has neither effect nor resource."""
    sources = [
        endpoint
        for position, endpoint in enumerate(node.inputs)
        if _type_of(endpoint) is DataType.RESOURCE
        or (position < len(node.input_is_ref) and node.input_is_ref[position])
    ]
    if sources:
        return [_key(endpoint) for endpoint in sources]
    return [_NO_RESOURCE] if has_effect(node) and not any(node.output_is_ref) else []


def _key(endpoint: Endpoint) -> Hashable:
    node, index = endpoint
    if node.op == "VarHandleOp" and node.attr("shared_name"):
        return ("variable", node.attr("container"), node.attr("shared_name"))
    if node.output_is_ref and node.output_is_ref[index]:
        return ("reference", node.name)
    return _UNKNOWN


def _type_of(endpoint: Endpoint) -> DataType:
    node, index = endpoint
    return node.output_types[index]
