"""Values of tensors that are known while the graph is built: constants and shapes.

TF: tensorflow/python/framework/tensor_util.py (constant_value, constant_value_as_shape)
"""

from __future__ import annotations

import numpy as np

from runtime.client.framework.operation import Tensor
from runtime.framework.tensor_codec import tensor_from_proto

Shape = tuple[int, ...] | None  # −1 if a size is unknown, None if the rank is unknown
_LARGEST = 1 << 10  # maximum number of elements; a constant with more is not decoded


class MisfitError(ValueError):
    """Raised if shapes are incompatible.

    The message is TensorFlow's, without the description of the node.
    """


def known_value(tensor: Tensor) -> np.ndarray | None:
    """Return the value of a constant of at most `_LARGEST` elements, None for other tensors."""
    operation = tensor.op
    if operation.type == "Const":
        proto = operation.node_def.attr["value"].tensor
        sizes = [dim.size for dim in proto.tensor_shape.dim]
        return tensor_from_proto(proto) if np.prod(sizes, dtype=int) <= _LARGEST else None
    return None


def known_shape(tensor: Tensor) -> Shape:
    """Return what is known of the shape that `tensor`, an integer vector, holds.

    If the vector is a constant, the output of Shape, or a Pack of sizes, known sizes are returned.
    Of other vectors only the length, which is the rank of the shape, can be known.
    """
    value = known_value(tensor)
    if value is not None:
        return tuple(value.tolist()) if value.ndim == 1 else None
    operation = tensor.op
    if operation.type == "Shape":
        return operation.inputs[0].shape.sizes
    if operation.type == "Pack":
        return tuple(_known_size(each) for each in operation.inputs)
    length = tensor.shape.sizes
    return (-1,) * length[0] if length is not None and len(length) == 1 and length[0] >= 0 else None


def _known_size(tensor: Tensor) -> int:
    value = known_value(tensor)
    return -1 if value is None or value.ndim else int(value)
