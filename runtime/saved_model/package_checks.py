"""Checks of the nodes of a SavedModel whose ops packages bring, before it serves anything."""

from __future__ import annotations

from collections.abc import Iterator

import protos as pb
from runtime.foundation.errors import OpError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.op_packages import kernels_of_package, package_ops
from runtime.framework.tensor_codec import tensor_from_proto
from runtime.graph.constant_inputs import ConstantInputs
from runtime.saved_model.inspection import used_ops


def check_nodes(graph_def: pb.GraphDef) -> None:
    """Call `KernelDef.check` and `KernelDef.constants` for the nodes whose ops a package brings.

    Raises what the first of these raises, with the name of the node.
    """
    checked = used_ops(graph_def) & package_ops()
    if not checked:
        return
    constants = ConstantInputs(graph_def)
    for function, node in _nodes(graph_def):
        if node.op not in checked:
            continue
        for kernel in kernels_of_package(node.op)[0]:
            try:
                _check(kernel, node, function, constants)
            except OpError as error:
                name = f"{function}/{node.name}" if function else node.name
                raise type(error)(f"Node {name} ({node.op}): {error}") from None


def _check(kernel: KernelDef, node: pb.NodeDef, function: str, constants: ConstantInputs) -> None:
    if kernel.check is not None:
        kernel.check(node)
    for index, read in kernel.constants.items():
        for value in constants.values(function, node, index):
            read(tensor_from_proto(value))


def _nodes(graph_def: pb.GraphDef) -> Iterator[tuple[str, pb.NodeDef]]:
    """Yield (the function whose body has the node, "" for the graph; the node)."""
    yield from (("", node) for node in graph_def.node)
    for function in graph_def.library.function:
        yield from ((function.signature.name, node) for node in function.node_def)
