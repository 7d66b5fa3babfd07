"""Dead branch elimination: an If or Case with a constant condition becomes a call of its branch.

It runs before inlining, so that only the body of the taken branch is inlined into the graph.

TF: tensorflow/core/grappler/optimizers/function_optimizer.cc
"""

from __future__ import annotations

import numpy as np

from runtime.framework.attr_value import NameAttrList
from runtime.graph.function_library import op_info
from runtime.graph.node import Node
from runtime.graph.passes.pruning import StepGraph

_IF = frozenset(("If", "StatelessIf"))
_CASE = frozenset(("Case", "StatelessCase"))


def remove_dead_branches(graph: StepGraph) -> None:
    """Change `graph`: turn each If or Case with a constant condition into a call of its branch."""
    for node in graph.nodes:
        if (node.op in _IF or node.op in _CASE) and not node.missing_inputs:
            function = _taken_branch(node)
            if function is not None:
                _make_call(node, function)


def _taken_branch(node: Node) -> NameAttrList | None:
    source, _ = node.inputs[0]
    if source.op != "Const" or source.control_inputs:
        return None
    value = source.attr("value")
    if node.op in _CASE:
        branches: tuple[NameAttrList, ...] = node.attr("branches")
        index = int(value)
        return branches[index] if 0 <= index < len(branches) else branches[-1]
    branch: NameAttrList = node.attr("then_branch" if _is_true(value) else "else_branch")
    return branch


def _is_true(value: np.ndarray) -> bool:
    """Return whether the condition `value` of an If is true.

    A scalar number is true if it is not zero, a scalar string if it is not empty, and any other
    tensor if it has elements.

    TF: tensorflow/core/kernels/functional_ops.cc (ToBool)
    """
    array = np.asarray(value)
    if array.ndim:
        return array.size > 0
    return len(array[()]) > 0 if array.dtype.kind == "O" else bool(array)


def _make_call(node: Node, function: NameAttrList) -> None:
    is_stateless = node.op.startswith("Stateless")
    info = op_info("PartitionedCall" if is_stateless else "StatefulPartitionedCall")
    assert info is not None
    node.become(info, {"f": function, "Tin": node.attr("Tin"), "Tout": node.attr("Tout")})
    node.inputs = node.inputs[1:]
    node.input_is_ref = node.input_is_ref[1:]
