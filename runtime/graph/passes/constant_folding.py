"""Constant folding: nodes that depend on constants only are computed when a step is compiled.

A node is folded if its kernel is a pure function (no context, no state), all its inputs are
constants, and its result is within the size limit. The resulting constant has the control inputs
of the node and of the node's inputs, so that it runs, or is dead, in the same cases and the same
frame as the node.

TF: tensorflow/core/common_runtime/constant_folding.cc, grappler/optimizers/constant_folding.cc
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np

import protos as pb
from runtime.foundation.errors import OpError, ResourceExhaustedError
from runtime.foundation.running_task import check_task
from runtime.framework.kernel_registry import KernelRegistry, bind, bind_memory
from runtime.framework.memory_account import bytes_of, process_account
from runtime.graph.function_library import op_info
from runtime.graph.node import Endpoint, Node
from runtime.graph.passes.pruning import StepGraph
from runtime.graph.topology import is_loop_node, topological_order

MAX_FOLDED_BYTES = 10 << 20  # TensorFlow's default of `max_folded_constant_in_bytes`
_MOST_RESULTS = 16
_LARGE = 1 << 18  # bytes above which a result is counted
# How many times more memory than `max_bytes` the kernel of a node may need, by its bound.
_NEED_OF_RESULT = 8
FOLDING_SECONDS = 5.0  # after this time a compilation folds no further node
_now = time.monotonic
# These ops are stateless by their signatures, but their results differ between runs, or the nodes
# themselves must stay in the graph.
_NOT_FOLDED = frozenset(("Const", "Placeholder", "PlaceholderV2", "NoOp", "Timestamp", "_Arg"))


def fold_constants(
    graph: StepGraph, kernels: KernelRegistry, max_bytes: int = MAX_FOLDED_BYTES
) -> None:
    """Change `graph`: replace each node whose outputs are constant by Const nodes.

    A node whose outputs have more than `max_bytes` together is kept, and so are all nodes that
    remain after FOLDING_SECONDS, or after folded nodes have _MOST_RESULTS times `max_bytes`. Large
    results count in the memory of the process.
    """
    end = _now() + FOLDING_SECONDS
    left = _MOST_RESULTS * max_bytes
    replaced: dict[Endpoint, Endpoint] = {}
    folded: list[Node] = []
    for node in topological_order(graph.nodes):
        node.inputs = [replaced.get(endpoint, endpoint) for endpoint in node.inputs]
        check_task()
        outputs = _evaluate(node, kernels, min(left, max_bytes)) if _now() < end else None
        if outputs is None:
            folded.append(node)
            continue
        left -= sum(map(bytes_of, outputs))
        for index, value in enumerate(outputs):
            constant = _constant(node, index, value)
            replaced[(node, index)] = (constant, 0)
            folded.append(constant)
    if not replaced:
        return
    constants = {node: replaced[(node, 0)][0] for node, index in replaced if index == 0}
    graph.nodes = folded
    graph.fetches = [replaced.get(endpoint, endpoint) for endpoint in graph.fetches]
    graph.targets = [constants.get(node, node) for node in graph.targets]
    for node in graph.nodes:
        node.inputs = [replaced.get(endpoint, endpoint) for endpoint in node.inputs]
        node.control_inputs = [constants.get(control, control) for control in node.control_inputs]


def is_pure(node: Node) -> bool:
    """Return whether the op of `node` computes outputs from inputs, always the same ones."""
    return not (
        not node.inputs
        or node.info.is_stateful
        or node.missing_inputs
        or node.op in _NOT_FOLDED
        or is_loop_node(node)
        or any(node.output_is_ref)
    )


def _evaluate(node: Node, kernels: KernelRegistry, max_bytes: int) -> list[np.ndarray] | None:
    """Compute and return the outputs of `node`; return None if it must not be folded."""
    if not is_pure(node) or any(source.op != "Const" for source, _ in node.inputs):
        return None
    try:
        kernel = kernels.find(node)
        if kernel.needs_context or kernel.asynchronous:
            return None
        values = [source.attr("value") for source, _ in node.inputs]
        if _repeated_bytes(values) > max_bytes:
            return None
        bound = bind_memory(kernel, node)
        if bound is not None and bound[0](*values) > _NEED_OF_RESULT * max_bytes:
            return None
        with np.errstate(all="ignore"):
            result = bind(kernel, node)(*values)
    except (OpError, ValueError, TypeError, IndexError, MemoryError, OverflowError):
        return None  # The node stays, so a step that runs it raises the error.
    outputs = [result] if node.info.has_single_output else list(result or ())
    arrays = [value for value in outputs if isinstance(value, np.ndarray | np.generic)]
    if len(arrays) != len(node.output_types) or sum(map(bytes_of, arrays)) > max_bytes:
        return None
    results = [np.asarray(array) for array in arrays]
    try:
        for result in results:
            if result.nbytes > _LARGE:
                process_account.hold(result)
    except ResourceExhaustedError:
        return None
    return results


def _repeated_bytes(values: Iterable[object]) -> int:
    """Return what constants of equal elements, which take no memory, claim together.

    A kernel that copies or joins them needs that much.
    """
    arrays = (value for value in values if isinstance(value, np.ndarray))
    return sum(array.nbytes for array in arrays if 0 in array.strides)


def _constant(node: Node, index: int, value: np.ndarray) -> Node:
    """Return a Const node that replaces output `index` of `node`.

    The Const for output 0 has the name of `node`, so that traces and errors show a name of the
    user's graph.
    """
    info = op_info("Const")
    assert info is not None
    data_type = node.output_types[index]
    name = node.name if index == 0 else f"{node.name}__{index}"
    constant = Node(name, info, pb.NodeDef(op="Const"), {"dtype": data_type, "value": value})
    constant.output_types, constant.output_is_ref = (data_type,), (False,)
    waits = [control for source, _ in node.inputs for control in source.control_inputs]
    constant.control_inputs = list(dict.fromkeys([*node.control_inputs, *waits]))
    constant.device = node.device
    return constant
