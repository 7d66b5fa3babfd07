"""The kernel of SparseToDense, and checks of indices that other sparse ops use too.

TF: tensorflow/core/kernels/sparse_to_dense_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text


def sparse_to_dense(
    indices: np.ndarray,
    output_shape: np.ndarray,
    values: np.ndarray,
    default_value: np.ndarray,
    *,
    validate_indices: bool,
) -> np.ndarray:
    """SparseToDense: return a tensor with `values` at `indices` and `default_value` elsewhere.

    `values` is [n] or []. `indices` is [n, k], where k is the rank of the result, or if k is 1 also
    [n] or [].
    """
    _check_inputs(indices, output_shape, values, default_value)
    rows = indices if indices.ndim > 1 else indices.reshape(-1, 1)
    sizes = tuple(output_shape.tolist())
    check_allocation(sizes, values.dtype)
    if validate_indices:
        check_sorted_indices(rows, sizes)
    elif not is_within(rows, sizes):
        raise InvalidArgumentError(
            f"Indices are not valid (out of bounds).  Shape: {shape_text(sizes)}"
        )
    result = np.empty(sizes, values.dtype)
    result[...] = default_value
    if len(rows):
        result[tuple(rows.T)] = values
    return result


def _check_inputs(
    indices: np.ndarray, output_shape: np.ndarray, values: np.ndarray, default_value: np.ndarray
) -> None:
    if indices.ndim > 2:
        raise InvalidArgumentError(
            "sparse_indices should be a scalar, vector, or matrix, "
            f"got shape {shape_text(indices.shape)}"
        )
    count = indices.shape[0] if indices.ndim else 1
    ranks = indices.shape[1] if indices.ndim > 1 else 1
    if output_shape.ndim != 1:
        raise InvalidArgumentError(
            f"output_shape must be rank 1, got shape {shape_text(output_shape.shape)}"
        )
    if output_shape.size != ranks:
        raise InvalidArgumentError(
            f"output_shape has incorrect number of elements: {output_shape.size} should be: {ranks}"
        )
    if values.ndim and values.shape != (count,):
        raise InvalidArgumentError(
            f"sparse_values has incorrect shape {shape_text(values.shape)}, "
            f"should be [] or [{count}]"
        )
    if default_value.ndim:
        raise InvalidArgumentError("default_value should be a scalar.")


def is_within(rows: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Return whether all index rows of `rows` [n, k] are within `shape` [k]."""
    return bool(((rows >= 0) & (rows < np.array(shape, np.int64))).all())


def check_within(rows: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raise InvalidArgumentError for the first index row of `rows` [n, k] outside `shape` [k]."""
    if not is_within(rows, shape):
        outside = ((rows < 0) | (rows >= np.array(shape, np.int64))).any(-1)
        first = int(outside.argmax())
        raise InvalidArgumentError(
            f"indices[{first}] = {_row_text(rows[first])} is out of bounds: "
            f"need 0 <= index < [{','.join(map(str, shape))}]"
        )


OUT_OF_ORDER = (
    "is out of order. Many sparse ops require sorted indices.\n"
    "    Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n"
)


def check_sorted_indices(rows: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raise InvalidArgumentError unless `rows` are within `shape` and ascend in row-major order.

    A row that equals the previous row is an error too.
    """
    check_within(rows, shape)
    if not rows.shape[1]:
        return
    before, after = rows[:-1], rows[1:]
    differs = before != after
    repeated = ~differs.any(-1)
    first_difference = differs.argmax(-1)
    picked = np.arange(len(before))
    unsorted = before[picked, first_difference] > after[picked, first_difference]
    wrong = repeated | unsorted
    if wrong.any():
        first = int(wrong.argmax())
        why = "is repeated" if repeated[first] else OUT_OF_ORDER
        raise InvalidArgumentError(f"indices[{first + 1}] = {_row_text(after[first])} {why}")


def _row_text(row: np.ndarray) -> str:
    return f"[{','.join(map(str, row.tolist()))}]"


KERNELS = (KernelDef("SparseToDense", sparse_to_dense),)
