"""Check a sparse tensor's indices, values and shape; raise errors with TensorFlow's messages.

TF: tensorflow/core/util/sparse/sparse_tensor.cc (SparseTensor::Create),
tensorflow/core/framework/tensor_shape.cc (BuildTensorShapeBase, MakeShape)
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.shapes import shape_text

COUNT_LIMIT = 1 << 63  # a signed int64 counts the elements of a shape


def check_sparse(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> None:
    """Raise InvalidArgumentError unless `indices`, `values` and `shape` fit together.

    TF: the ops that validate before SparseTensor::Create
    """
    for name, given, rank in (("indices", indices, 2), ("values", values, 1), ("shape", shape, 1)):
        if given.ndim != rank:
            raise InvalidArgumentError(
                f"Sparse {name} must be rank {rank} but is rank {given.ndim}"
            )
    if len(values) != len(indices):
        raise InvalidArgumentError(
            f"Number of elements in indices ({len(indices)}) and values ({len(values)}) do not "
            "match"
        )
    if shape.size != indices.shape[1]:
        raise InvalidArgumentError(
            f"Index rank ({indices.shape[1]}) and shape rank ({shape.size}) do not match"
        )


def check_bounds(indices: np.ndarray, shape: np.ndarray) -> None:
    """Raise InvalidArgumentError unless every index is within the dense `shape`."""
    outside = (indices < 0) | (indices >= shape)
    if outside.any():
        first = int(outside.any(-1).argmax())
        raise InvalidArgumentError(
            f"Sparse index tuple indices[{first}, :] = {indices[first].tolist()} is out of bounds"
        )


def check_parts(indices: np.ndarray, values: np.ndarray, rank: int) -> None:
    """Raise InvalidArgumentError unless `indices` is [n, rank] and `values` is [n]."""
    if values.ndim != 1:
        raise InvalidArgumentError(f"vals must be a vec, but got: {shape_text(values.shape)}")
    if not indices.ndim:
        raise InvalidArgumentError("indices must be a matrix, but got a scalar")
    if len(indices) != len(values):
        raise InvalidArgumentError(
            "indices and values rows (indexing dimension) must match. "
            f"(indices = {len(indices)}, values = {len(values)})"
        )
    if indices.ndim != 2 or indices.shape[1] != rank:
        raise InvalidArgumentError("Order length must be SparseTensor rank.")


def check_sparse_tensor(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> None:
    """Raise InvalidArgumentError unless `indices`, `values` and `shape` fit together.

    `shape` is checked first, then the rank of `indices`, then the rest with `check_parts`.
    """
    built_shape(shape)
    if indices.ndim != 2:
        raise InvalidArgumentError(
            f"indices must be a matrix, but got: {shape_text(indices.shape)}"
        )
    check_parts(indices, values, shape.size)


def built_shape(shape: np.ndarray) -> tuple[int, ...]:
    """Return the sizes of a dense shape, for ops in which TensorFlow adds one dimension at a time.

    Raises InvalidArgumentError if a size is negative or there would be 2⁶³ elements or more.
    """
    sizes = tuple(shape.tolist())
    count = 1
    for size in sizes:
        if size < 0:
            raise InvalidArgumentError(f"Expected shape dimensions to be non-negative, got {size}")
        if count * size >= COUNT_LIMIT:
            raise InvalidArgumentError(
                f"Encountered overflow when multiplying {count} with {size}, result: -1"
            )
        count *= size
    return sizes


def made_shape(shape: np.ndarray) -> tuple[int, ...]:
    """Return the sizes of a dense shape, for ops in which TensorFlow makes the shape at once.

    Raises InvalidArgumentError if a size is negative or there would be 2⁶³ elements or more.
    """
    sizes = tuple(shape.tolist())
    for size in sizes:
        if size < 0:
            raise InvalidArgumentError(f"Dimension {size} must be >= 0")
    if math.prod(sizes) >= COUNT_LIMIT:
        raise InvalidArgumentError(
            f"Shape {shape_text(sizes)} would have more than 2**63 - 1 elements"
        )
    return sizes
