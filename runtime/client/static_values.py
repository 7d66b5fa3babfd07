"""What is known of a tensor's value while the graph is built: constants, and shapes of tensors.

TF: tensorflow/python/framework/tensor_util.py (constant_value, constant_value_as_shape)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.client.operation import Tensor
from runtime.framework.tensor_codec import tensor_from_proto

Shape = tuple[int, ...] | None  # −1 for an unknown dimension, None for an unknown rank
_LARGEST = 1 << 10  # elements; larger constants tell no shapes


class MisfitError(ValueError):
    """Shapes that can't go together; the text is TensorFlow's without the node."""


def known_value(tensor: Tensor) -> np.ndarray | None:
    """The value of a small constant, None for anything else."""
    operation = tensor.op
    if operation.type == "Const":
        proto = operation.node_def.attr["value"].tensor
        sizes = [dim.size for dim in proto.tensor_shape.dim]
        return tensor_from_proto(proto) if np.prod(sizes, dtype=int) <= _LARGEST else None
    return None


def known_shape(tensor: Tensor) -> Shape:
    """The shape that an int vector says: a constant, a tensor's shape, or both put together."""
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
    value: Any = known_value(tensor)
    return -1 if value is None or value.ndim else int(value)
