"""Kernels that change the indices of a sparse tensor, but not its values.

A sparse tensor consists of indices [n, rank] (int64), values [n] and a dense shape [rank].

TF: tensorflow/core/kernels/sparse_{reshape,reorder,concat,split,slice}_op.cc
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.sparse.sparse_tensor_checks import built_shape, check_bounds, check_sparse

Sparse = tuple[np.ndarray, np.ndarray, np.ndarray]


def flat_positions(indices: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """Return the row-major positions [n] in `shape` of the rows of `indices` [n, rank]."""
    sizes = shape.tolist()
    if math.prod(sizes) >= 1 << 63:
        raise InvalidArgumentError(f"Shape {shape_text(sizes)} has too many elements")
    strides = np.array([math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))], np.int64)
    return np.asarray(indices @ strides)


def index_rows(positions: np.ndarray, sizes: list[int]) -> np.ndarray:
    """Return the index rows [n, rank] of row-major positions; the inverse of `flat_positions`."""
    rows = np.empty((len(positions), len(sizes)), np.int64)
    left = positions
    for axis in range(len(sizes)):
        stride = max(1, math.prod(sizes[axis + 1 :]))
        rows[:, axis] = left // stride
        left = left - rows[:, axis] * stride
    return rows


def sparse_reshape(
    indices: np.ndarray, shape: np.ndarray, new_shape: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """SparseReshape: return the indices and the dense shape of the reshaped tensor.

    One size in `new_shape` may be −1, which means the size that is left.
    """
    if indices.ndim != 2:
        raise InvalidArgumentError("Input must be a matrix.")
    for name, given in (("Input", shape), ("Target", new_shape)):
        if given.ndim != 1:
            raise InvalidArgumentError(
                f"{name} shape should be a vector but received shape {shape_text(given.shape)}"
            )
    if shape.size != indices.shape[1]:
        raise InvalidArgumentError(
            f"Input tensor rank must match input shape length. Got: {indices.shape[1]} and "
            f"{shape.size}"
        )
    sizes = _target_sizes(shape.tolist(), new_shape.tolist())
    if sizes == shape.tolist():
        return indices, shape  # indices are returned unchanged even if they are out of bounds
    positions = flat_positions(indices, shape)
    return index_rows(positions, sizes), np.array(sizes, np.int64)


def _target_sizes(sizes: list[int], target: list[int]) -> list[int]:
    if any(size < 0 for size in sizes):
        raise InvalidArgumentError(f"Input shape {sizes} must not have negative sizes")
    if target.count(-1) > 1:
        first = target.index(-1)
        raise InvalidArgumentError(
            "only one output dimension may be -1, not both "
            f"{first} and {target.index(-1, first + 1)}"
        )
    for axis, size in enumerate(target):
        if size < -1:
            raise InvalidArgumentError(f"size {axis} must be non-negative, not {size}")
    count = math.prod(sizes)
    product = math.prod(size for size in target if size != -1)
    if -1 in target:
        if not product:
            raise InvalidArgumentError(
                "reshape cannot infer the missing input size for an empty tensor unless all "
                "specified input sizes are non-zero"
            )
        if count % product:
            shown = [1 if size == -1 else size for size in target]
            raise InvalidArgumentError(
                f"Input to reshape is a SparseTensor with {count} dense values, but the requested "
                f"shape requires a multiple of {product}. input_shape={shape_text(sizes)} "
                f"output_shape={shape_text(shown)}"
            )
        target[target.index(-1)] = count // product
    elif product != count:
        raise InvalidArgumentError(
            f"Input to reshape is a tensor with {count} dense values, but the requested shape has "
            f"{product}. input_shape={shape_text(sizes)} output_shape={shape_text(target)}"
        )
    return target


def sparse_reorder(
    indices: np.ndarray, values: np.ndarray, shape: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """SparseReorder: sort the elements in row-major order."""
    check_sparse(indices, values, shape)
    order = np.argsort(flat_positions(indices, shape), kind="stable")
    return indices[order], values[order]


def sparse_concat(*parts: np.ndarray, concat_dim: int) -> Sparse:
    """SparseConcat: concatenate sparse tensors along a dimension; sort in row-major order."""
    count = len(parts) // 3
    indices, values, shapes = parts[:count], parts[count : 2 * count], parts[2 * count :]
    for each in zip(indices, values, shapes, strict=True):
        check_sparse(*each)
    ranks = shapes[0].size
    if not -ranks <= concat_dim < ranks:
        raise InvalidArgumentError(
            f"Concat dimension must be in range [{-ranks}, {ranks}), got {concat_dim}"
        )
    dim = concat_dim % ranks
    result_shape = shapes[0].copy()
    moved = [indices[0]]
    for position in range(1, count):
        _check_concat_shape(shapes[0], shapes[position], dim, position)
        shifted = indices[position].copy()
        shifted[:, dim] += result_shape[dim]
        moved.append(shifted)
        result_shape[dim] += shapes[position][dim]
    joined = np.concatenate(moved)
    order = np.argsort(flat_positions(joined, result_shape), kind="stable")
    return joined[order], np.concatenate(values)[order], result_shape


def _check_concat_shape(first: np.ndarray, other: np.ndarray, dim: int, position: int) -> None:
    if len(other) != len(first):
        raise InvalidArgumentError(
            f"Ranks of all input tensors must match: expected {len(first)} but got {len(other)} "
            f"at position {position}"
        )
    for axis, (want, got) in enumerate(zip(first.tolist(), other.tolist(), strict=True)):
        if axis != dim and want != got:
            raise InvalidArgumentError(
                f"Input shapes must match: expected {want} for dimension {axis} but got {got} at "
                f"position {position}"
            )


def sparse_split(
    split_dim: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    shape: np.ndarray,
    *,
    num_split: int,
) -> list[np.ndarray]:
    """SparseSplit: split a sparse tensor into `num_split` parts along a dimension.

    If the sizes can't be equal, the first parts are larger by one.
    """
    if split_dim.ndim:
        raise InvalidArgumentError(
            f"Input axis should be a scalar but received shape {shape_text(split_dim.shape)}"
        )
    check_sparse(indices, values, shape)
    ranks = shape.size
    if not -ranks <= int(split_dim) < ranks:
        raise InvalidArgumentError(
            f"Input axis should be in range [{-ranks}, {ranks}), got {int(split_dim)}"
        )
    dim = int(split_dim) % ranks
    length = int(shape[dim])
    if not 1 <= num_split <= length:
        raise InvalidArgumentError(
            "Input num_split should be between 1 and the splitting dimension size "
            f"({length}), got {num_split}"
        )
    check_bounds(indices, shape)
    sizes = [length // num_split + (part < length % num_split) for part in range(num_split)]
    results: list[list[np.ndarray]] = [[], [], []]
    begin = 0
    for size in sizes:
        start = np.zeros(ranks, np.int64)
        start[dim] = begin
        extent = shape.copy()
        extent[dim] = size
        for collected, part in zip(results, _slice(indices, values, start, extent), strict=True):
            collected.append(part)
        begin += size
    return [part for collected in results for part in collected]


def _slice(
    indices: np.ndarray, values: np.ndarray, start: np.ndarray, extent: np.ndarray
) -> Sparse:
    inside = np.ones(len(indices), bool)
    for column, first, size in zip(indices.T, start.tolist(), extent.tolist(), strict=True):
        inside &= column >= first
        inside &= column < first + size
    return indices[inside] - start, values[inside], extent


def sparse_slice(
    indices: np.ndarray, values: np.ndarray, shape: np.ndarray, start: np.ndarray, size: np.ndarray
) -> Sparse:
    """SparseSlice: return the elements in [start, start + size).

    The shape of the result is cut off at the end of the input's shape.
    """
    check_sparse(indices, values, shape)
    for name, given in (("start", start), ("size", size)):
        if given.ndim != 1:
            raise InvalidArgumentError(
                f"Input {name} should be a vector but received shape {shape_text(given.shape)}"
            )
        if given.size != shape.size:
            raise InvalidArgumentError(
                f"Expected {name} to be a vector of length {shape.size} but got length {given.size}"
            )
    built_shape(shape)
    # If `start` is negative, TensorFlow does not shorten the slice by the part before index 0.
    extent = np.where(start < shape - size, size, np.maximum(shape - start, 0))
    if (extent < 0).any():
        raise InvalidArgumentError(f"Expected a non-negative size, got {extent[extent < 0][0]}")
    inside = ((indices >= start) & (indices < start + size)).all(axis=1)
    return indices[inside] - start, values[inside], extent


def sparse_slice_grad(
    gradients: np.ndarray, indices: np.ndarray, start: np.ndarray, sliced_indices: np.ndarray
) -> np.ndarray:
    """SparseSliceGrad: return the gradient with respect to each input element.

    The gradient of an element outside the slice is 0.
    """
    ranks = start.size
    for name, given in (("input_indices", indices), ("output_indices", sliced_indices)):
        if given.ndim != 2 or given.shape[1] != ranks or start.ndim != 1:
            raise InvalidArgumentError(
                f"{name} should be a matrix with {ranks} columns, as input_start has, but has "
                f"shape {shape_text(given.shape)}"
            )
    if gradients.shape != sliced_indices.shape[:1]:
        raise InvalidArgumentError(
            "Number of gradients and output indices should match. Got "
            f"{gradients.size} and {sliced_indices.shape[0]}"
        )
    if len(sliced_indices) > len(indices):
        raise InvalidArgumentError(
            "# rows of output_indices should be not greater than of input_indices, "
            f"got {len(sliced_indices)} and {len(indices)}"
        )
    result = np.zeros(len(indices), gradients.dtype)
    places = _positions_in_order(indices, sliced_indices + start)
    if len(places) < len(gradients):
        raise InternalError(
            "Elements of backprop_val_grad aren't all propagated. "
            f"Num elements:{len(gradients)}, used: {len(places)}"
        )
    result[places] = gradients
    return result


def _positions_in_order(rows: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Find the rows `wanted` in `rows`, in this order; return their positions in `rows`.

    The search ends at the first row that is not found.
    """
    numbers = np.unique(np.concatenate([wanted, rows]), axis=0, return_inverse=True)[1].ravel()
    asked, given = np.split(numbers, [len(wanted)])
    inside = np.flatnonzero(np.isin(given, asked))
    if np.array_equal(given[inside], asked):
        return inside
    found: list[int] = []
    for place in inside.tolist():
        check_task()
        if len(found) < len(asked) and given[place] == asked[len(found)]:
            found.append(place)
    return np.array(found, np.int64)


KERNELS = (
    KernelDef("SparseConcat", sparse_concat),
    KernelDef("SparseReorder", sparse_reorder),
    KernelDef("SparseReshape", sparse_reshape),
    KernelDef("SparseSlice", sparse_slice),
    KernelDef("SparseSliceGrad", sparse_slice_grad),
    KernelDef("SparseSplit", sparse_split),
)
