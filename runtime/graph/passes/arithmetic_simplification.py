"""Removal of arithmetic without an effect, and of pairs of operations that undo each other.

| pattern | becomes |
| --- | --- |
| x + 0, x − 0, x · 1, x / 1 with a scalar constant | x |
| Neg(Neg(x)), Invert(Invert(x)), LogicalNot(LogicalNot(x)) | x |
| Transpose(Transpose(x, p), q) with constant p and q that undo each other | x |
| Reshape(Reshape(x, s), t) | Reshape(x, t) |
| Cast from a type to itself | x |

x + 0 and x − 0 are removed only if the elements are integers, because −0.0 + 0 is +0.0 in floating
point.

TF: tensorflow/core/grappler/optimizers/arithmetic_optimizer.cc
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.graph.node import Endpoint, Node
from runtime.graph.passes.pruning import StepGraph
from runtime.graph.topology import is_loop_node, topological_order

_LARGEST = 1024  # elements of the constants that are looked at
_INVOLUTIONS = frozenset(("Neg", "Invert", "LogicalNot"))
# op → (the neutral constant, whether it may be the left operand, whether the node may be removed
# only if its elements are integers)
_NEUTRAL: dict[str, tuple[int, bool, bool]] = {
    "Add": (0, True, True),
    "AddV2": (0, True, True),
    "Sub": (0, False, True),
    "Mul": (1, True, False),
    "RealDiv": (1, False, False),
    "Div": (1, False, False),
}


def simplify_arithmetic(graph: StepGraph) -> None:
    """Change `graph`: if a node's output equals one of its inputs, its readers read that input."""
    replaced: dict[Endpoint, Endpoint] = {}
    for node in topological_order(graph.nodes):
        node.inputs = [replaced.get(endpoint, endpoint) for endpoint in node.inputs]
        if node.control_inputs or node.missing_inputs or any(node.input_is_ref):
            continue
        if is_loop_node(node):
            continue
        _skip_inner_reshape(node)
        endpoint = _equal_endpoint(node)
        if endpoint is not None and not endpoint[0].output_is_ref[endpoint[1]]:
            replaced[(node, 0)] = endpoint
    if not replaced:
        return
    graph.fetches = [replaced.get(endpoint, endpoint) for endpoint in graph.fetches]
    for node in graph.nodes:
        node.inputs = [replaced.get(endpoint, endpoint) for endpoint in node.inputs]


def _equal_endpoint(node: Node) -> Endpoint | None:
    if node.op in _NEUTRAL:
        return _without_neutral(node)
    rule = _RULES.get(node.op)
    return rule(node) if rule is not None else None


def _constant(endpoint: Endpoint) -> np.ndarray | None:
    """Return the value of `endpoint` if it is a small Const without control inputs, else None."""
    node = endpoint[0]
    if node.op != "Const" or node.control_inputs:
        return None
    value: np.ndarray = node.attr("value")
    return value if value.size <= _LARGEST else None


def _without_neutral(node: Node) -> Endpoint | None:
    neutral, may_be_left, integers_only = _NEUTRAL[node.op]
    if integers_only and not node.output_types[0].is_integer:
        return None
    sides = ((1, 0), (0, 1)) if may_be_left else ((1, 0),)
    for constant_side, other_side in sides:
        value = _constant(node.inputs[constant_side])
        if value is not None and np.ndim(value) == 0 and value == neutral:
            return node.inputs[other_side]
    return None


def _undone(node: Node) -> Endpoint | None:
    inner, index = node.inputs[0]
    if inner.op == node.op and index == 0 and not inner.control_inputs:
        return inner.inputs[0]
    return None


def _transposed_back(node: Node) -> Endpoint | None:
    inner, index = node.inputs[0]
    if inner.op != "Transpose" or index != 0 or inner.control_inputs:
        return None
    outer_order, inner_order = _constant(node.inputs[1]), _constant(inner.inputs[1])
    if outer_order is None or inner_order is None or len(outer_order) != len(inner_order):
        return None
    if any(not 0 <= axis < len(inner_order) for axis in (*outer_order, *inner_order)):
        return None
    back = [int(inner_order[axis]) for axis in outer_order]
    return inner.inputs[0] if back == list(range(len(back))) else None


def _same_cast(node: Node) -> Endpoint | None:
    return node.inputs[0] if node.attr("SrcT") == node.attr("DstT") else None


def _skip_inner_reshape(node: Node) -> None:
    if node.op != "Reshape":
        return
    inner, index = node.inputs[0]
    if inner.op == "Reshape" and index == 0 and not inner.control_inputs:
        # Reshape only checks the number of elements, and the inner Reshape does not change it.
        node.inputs[0] = inner.inputs[0]


_RULES: dict[str, Callable[[Node], Endpoint | None]] = {
    **dict.fromkeys(_INVOLUTIONS, _undone),
    "Transpose": _transposed_back,
    "Cast": _same_cast,
}
