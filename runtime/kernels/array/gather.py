"""Kernels that read the elements of a tensor at given indices.

TF: tensorflow/core/kernels/{gather_op,gather_nd_op,one_hot_op}.cc
"""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.shapes import position_text, shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box, unbox


def check_indices(indices: np.ndarray, limit: int, name: str = "indices") -> None:
    """Raise InvalidArgumentError, which names the first bad index, unless all are in [0, limit)."""
    if not indices.size or (indices.min() >= 0 and indices.max() < limit):
        return
    flat = int(((indices < 0) | (indices >= limit)).argmax())
    where = f"{name}{position_text(flat, indices.shape)}"
    raise InvalidArgumentError(f"{where} = {indices.ravel()[flat]} is not in [0, {limit})")


def gather(params: TensorValue, indices: np.ndarray) -> TensorValue:
    """Gather: return the slices of `params` at `indices` along the first dimension."""
    return _gather(box(params), indices, 0, 0)


def gather_v2(
    params: TensorValue, indices: np.ndarray, axis: np.ndarray, *, batch_dims: int
) -> TensorValue:
    """GatherV2: return the slices of `params` at `indices` along dimension `axis`.

    Shapes: `params` [B…, P…, n, S…] and `indices` [B…, I…] give [B…, P…, I…, S…]. `batch_dims` is
    the number of dimensions in B.
    """
    if axis.ndim:
        raise InvalidArgumentError("axis must be scalar")
    return _gather(box(params), indices, int(axis), batch_dims)


def _gather(params: np.ndarray, indices: np.ndarray, axis: int, batch_dims: int) -> TensorValue:
    ranks = params.ndim
    if ranks < 1:
        raise InvalidArgumentError("params must be at least 1 dimensional")
    if not -ranks <= axis < ranks:
        raise InvalidArgumentError(
            f"Expected axis in the range [{-ranks}, {ranks}), but got {axis}"
        )
    axis %= ranks
    if batch_dims:
        batch_dims = _check_batch_dims(params, indices, axis, batch_dims)
    # If a dimension other than `axis` is empty, no index is read, so none is checked.
    if 0 in (*params.shape[:axis], *params.shape[axis + 1 :]):
        shape = params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1 :]
        return unbox(np.empty(shape, params.dtype))
    check_indices(indices, params.shape[axis])
    if not batch_dims:
        result_shape = params.shape[:axis] + indices.shape + params.shape[axis + 1 :]
        check_allocation(result_shape, params.dtype)
        return unbox(params.take(indices, axis))
    return _gather_batches(params, indices, axis, batch_dims)


def _check_batch_dims(params: np.ndarray, indices: np.ndarray, axis: int, batch_dims: int) -> int:
    if not -indices.ndim <= batch_dims <= indices.ndim:
        raise InvalidArgumentError(
            f"Expected batch_dims in the range [{-indices.ndim}, {indices.ndim}], "
            f"but got {batch_dims}"
        )
    if batch_dims < 0:
        batch_dims += indices.ndim
    if batch_dims >= params.ndim:
        raise InvalidArgumentError(
            f"batch_dims ({batch_dims}) must be less than rank(params) ({params.ndim})."
        )
    if axis < batch_dims:
        raise InvalidArgumentError(
            f"batch_dims ({batch_dims}) must be less than or equal to axis ({axis})."
        )
    for dim in range(batch_dims):
        if params.shape[dim] != indices.shape[dim]:
            raise InvalidArgumentError(
                f"params.shape[{dim}]: {params.shape[dim]} should be equal to "
                f"indices.shape[{dim}]: {indices.shape[dim]}"
            )
    return batch_dims


def _gather_batches(
    params: np.ndarray, indices: np.ndarray, axis: int, batch_dims: int
) -> TensorValue:
    batch, outer = params.shape[:batch_dims], params.shape[batch_dims:axis]
    inner = params.shape[axis + 1 :]
    result_shape = batch + outer + indices.shape[batch_dims:] + inner
    check_allocation(result_shape, params.dtype)
    batches, outers = math.prod(batch), math.prod(outer)
    flat = params.reshape(batches, outers, params.shape[axis], math.prod(inner))
    chosen = indices.reshape(batches, 1, math.prod(indices.shape[batch_dims:]))
    rows = flat[np.arange(batches)[:, None, None], np.arange(outers)[None, :, None], chosen]
    return unbox(rows.reshape(result_shape))


def gather_nd(
    context: OpKernelContext, params: TensorValue, indices: np.ndarray, *, bad_indices_policy: str
) -> TensorValue:
    """GatherNd: return the slice `params[i1, …, ik]` for each index vector in `indices` [I…, k]."""
    array = box(params)
    if array.ndim < 1:
        raise InvalidArgumentError("params must be at least a vector")
    if indices.ndim < 1:
        raise InvalidArgumentError("indices must be at least a vector")
    depth = indices.shape[-1]
    if depth > array.ndim:
        raise InvalidArgumentError(
            "index innermost dimension length must be <= params rank; "
            f"saw: {depth} vs. {array.ndim}"
        )
    result_shape = indices.shape[:-1] + array.shape[depth:]
    if array.size == 0 and math.prod(indices.shape[:-1]):
        raise InvalidArgumentError(
            "Requested more than 0 entries, but params is empty.  "
            f"Params shape: {shape_text(array.shape)}"
        )
    check_allocation(result_shape, array.dtype)
    outside = _out_of_bounds(indices, array.shape)
    if outside.any():
        if bad_indices_policy != "IGNORE":
            _raise_out_of_bounds(indices, outside, array.shape, context.node.name)
        return _gather_in_bounds(array, indices, outside, result_shape)
    if depth == 0:
        return np.broadcast_to(array, result_shape).copy()
    return unbox(array[(*np.moveaxis(indices, -1, 0), ...)])


def _out_of_bounds(indices: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return which index vectors of `indices` [I…, k] are out of bounds of `shape`: bool [I…]."""
    outside = np.zeros(indices.shape[:-1], bool)
    for column, limit in zip(np.moveaxis(indices, -1, 0), shape, strict=False):
        outside |= (column < 0) | (column >= limit)
    return outside


def _gather_in_bounds(
    array: np.ndarray, indices: np.ndarray, outside: np.ndarray, result_shape: tuple[int, ...]
) -> np.ndarray:
    """Return the slices of `array` at `indices`, and zeros (or empty strings) for bad indices.

    `outside` is true for each index vector that is out of bounds.
    """
    result = np.zeros(result_shape, array.dtype)
    if array.dtype.hasobject:
        result[...] = b""
    result[~outside] = array[tuple(indices[~outside].T)]
    return result


def _raise_out_of_bounds(
    indices: np.ndarray, outside: np.ndarray, shape: tuple[int, ...], node_name: str
) -> NoReturn:
    flat = int(outside.argmax())
    where = f"indices{position_text(flat, outside.shape)}"
    row = ", ".join(map(str, indices.reshape(-1, indices.shape[-1])[flat].tolist()))
    raise InvalidArgumentError(
        f"{where} = [{row}] does not index into param shape {shape_text(shape)}, "
        f"node name: {node_name}"
    )


def one_hot(
    indices: np.ndarray,
    depth: np.ndarray,
    on_value: TensorValue,
    off_value: TensorValue,
    *,
    axis: int,
) -> np.ndarray:
    """OneHot: return a tensor with a new dimension `axis` of size `depth`.

    Along that dimension the element at each index in `indices` is `on_value`, all others are
    `off_value`.
    """
    indices, on_value, off_value = np.asarray(indices), box(on_value), box(off_value)
    if not -1 <= axis <= indices.ndim:
        raise InvalidArgumentError(
            f"Expected axis to be -1 or between [0, {indices.ndim + 1}).  But received: {axis}"
        )
    for name, given in (("depth", depth), ("on_value", on_value), ("off_value", off_value)):
        if given.ndim:
            raise InvalidArgumentError(
                f"{name} must be a scalar, but got: {shape_text(given.shape)}"
            )
    if depth < 0:
        raise InvalidArgumentError(f"depth must be non-negative, got: {depth}")
    axis = indices.ndim if axis == -1 else axis
    result_shape = (*indices.shape[:axis], int(depth), *indices.shape[axis:])
    check_allocation(result_shape, on_value.dtype)
    result = np.empty(result_shape, on_value.dtype)
    result[...] = off_value
    # `flat` is [before, depth, after]: the index at (before, after) sets one element.
    flat = (
        result.reshape(math.prod(indices.shape[:axis]), int(depth), -1) if result.size else result
    )
    if result.size:
        pairs = indices.reshape(flat.shape[0], flat.shape[2])
        before, after = np.nonzero((pairs >= 0) & (pairs < depth))
        flat[before, pairs[before, after], after] = on_value
    return result


KERNELS = (
    KernelDef("Gather", gather),
    KernelDef("GatherNd", gather_nd),
    KernelDef("GatherV2", gather_v2),
    KernelDef("OneHot", one_hot),
)
