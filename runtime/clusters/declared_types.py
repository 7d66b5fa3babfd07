"""Whether nodes have inputs of the types that they declare.

The nodes of functions are not checked when a graph is made. Kernels see the types of arrays at a
run, and raise errors; a model has the types that nodes declare.
"""

from __future__ import annotations

import numpy as np

from runtime.clusters.bounds import MAX_MADE
from runtime.foundation.errors import OpError
from runtime.graph.node import Node


def has_declared_types(node: Node) -> bool:
    """Return whether the inputs of `node`, and constants among them, are of the required types."""
    try:
        required, _ = node.types_of(node.info.inputs)
    except OpError:
        return False
    given = tuple(source.output_types[index] for source, index in node.inputs)
    return given == required and all(
        is_usable_constant(source) for source, _ in node.inputs if source.op == "Const"
    )


def is_usable_constant(node: Node) -> bool:
    """Return whether the value of a Const has the type that the node declares.

    A large array of one element that is repeated needs no memory here, but would in a model.
    """
    try:
        value = node.attr("value")
    except OpError:
        return False
    return (
        isinstance(value, np.ndarray)
        and value.dtype == node.output_types[0].numpy
        and (value.size <= MAX_MADE or 0 not in value.strides)
    )
