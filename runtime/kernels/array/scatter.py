"""Kernels that write updates at indices of a tensor: ScatterNd and the TensorScatter ops.

TF: tensorflow/core/kernels/scatter_nd_op.cc
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import position_text, shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box
from runtime.kernels.math.row_runs import combine_runs, run_starts, stable_order

# combine(target [r, m], rows [n], updates [n, m]) combines update i with row rows[i] of the
# target and writes the result into it, in order; a row may occur several times.
Combine = Callable[[np.ndarray, np.ndarray, np.ndarray], None]

_MAX_DEPTH = 7  # an index vector has at most this length
_EMPTY_OUTPUT_SHAPE = "Indices and updates specified for empty output shape"


def _update(target: np.ndarray, rows: np.ndarray, updates: np.ndarray) -> None:
    target[rows] = updates


def _add(target: np.ndarray, rows: np.ndarray, updates: np.ndarray) -> None:
    if target.dtype.hasobject:  # strings are concatenated
        for row, update in zip(rows.tolist(), updates, strict=True):
            target[row] += update
    else:
        _combine(np.add, target, rows, updates)


def _combine(ufunc: np.ufunc, target: np.ndarray, rows: np.ndarray, updates: np.ndarray) -> None:
    """Combine the updates of each row with each other, then the result with the row of `target`."""
    if updates.shape[1] == 1:
        ufunc.at(target[:, 0], rows, updates[:, 0])
        return
    order = stable_order(rows, len(target))
    ordered = rows[order]
    starts = run_starts(ordered)
    runs = combine_runs(ufunc, updates, order, starts, updates.dtype)
    places = ordered[starts]
    target[places] = ufunc(target[places], runs)


def _subtract(target: np.ndarray, rows: np.ndarray, updates: np.ndarray) -> None:
    _add(target, rows, np.negative(updates))


def _maximum(target: np.ndarray, rows: np.ndarray, updates: np.ndarray) -> None:
    _combine(np.maximum, target, rows, without_nan(updates, -math.inf))


def _minimum(target: np.ndarray, rows: np.ndarray, updates: np.ndarray) -> None:
    _combine(np.minimum, target, rows, without_nan(updates, math.inf))


def without_nan(updates: np.ndarray, otherwise: float) -> np.ndarray:
    """Return `updates` with `otherwise` in place of NaN.

    TensorFlow's scatters keep the larger or smaller of two numbers by a comparison, which is false
    for NaN: as an update it changes nothing, in the target it stays.
    """
    if updates.dtype.kind in "biu":
        return updates
    unknown = np.isnan(updates)
    return np.where(unknown, updates.dtype.type(otherwise), updates) if unknown.any() else updates


def scatter_nd(
    indices: np.ndarray, updates: TensorValue, shape: np.ndarray, *, bad_indices_policy: str
) -> np.ndarray:
    """ScatterNd: return zeros of `shape` with `updates` [I…, S…] added at `indices` [I…, k]."""
    updates = box(updates)
    _check_ranks(indices.shape, updates.shape)
    sizes = tuple(shape.ravel().tolist())
    check_allocation(sizes, updates.dtype)
    if not _valid_empty_output_shape(len(sizes), indices, updates):
        raise InvalidArgumentError(_EMPTY_OUTPUT_SHAPE)
    _check_scatter_nd_shapes(indices.shape, updates.shape, sizes)
    if shape.ndim != 1:
        raise InvalidArgumentError("Shape must be a vector")
    _check_target(sizes, indices, updates)
    result = np.zeros(sizes, updates.dtype)
    if result.dtype.hasobject:
        result[...] = b""
    _scatter(result, indices, updates, _add, bad_indices_policy)
    return result


def _valid_empty_output_shape(places: int, indices: np.ndarray, updates: np.ndarray) -> bool:
    """Return whether empty tensors occur only where TensorFlow accepts them.

    TensorFlow accepts the inputs if `indices` and `updates` are both empty, or if none of
    `indices`, `updates` and the target is empty. `places` is the size of the target.

    TF: ValidEmptyOutputShape
    """
    is_nothing = not indices.size and not updates.size
    return is_nothing or bool(places and indices.size and updates.size)


def _check_scatter_nd_shapes(
    indices: tuple[int, ...], updates: tuple[int, ...], result: tuple[int, ...]
) -> None:
    outer, depth = len(indices) - 1, indices[-1]
    if updates[:outer] != indices[:-1]:
        raise InvalidArgumentError(
            f"Dimensions [0,{outer}) of indices[shape={shape_text(indices)}] must match "
            f"dimensions [0,{outer}) of updates[shape={shape_text(updates)}]"
        )
    if updates[outer:] != result[depth:] or depth > len(result):
        raise InvalidArgumentError(
            f"Dimensions [{depth},{len(result)}) of input[shape={shape_text(result)}] must match "
            f"dimensions [{outer},{len(updates)}) of updates[shape={shape_text(updates)}]"
        )


def _check_target(shape: tuple[int, ...], indices: np.ndarray, updates: np.ndarray) -> None:
    """Make the checks that all scatter ops share; each op makes its own checks before.

    TF: PrepareAndValidateInputs, for which a vector of indices is a column
    """
    if not shape:
        raise InvalidArgumentError("Output must be at least 1-D, got shape: []")
    if not _valid_empty_output_shape(math.prod(shape), indices, updates):
        raise InvalidArgumentError(
            "Indices and updates specified for empty output.  "
            f"indices shape: {shape_text(indices.shape)}"
        )
    if len(indices) != len(updates):
        raise InvalidArgumentError(
            f"Dimensions [0,1) of indices[shape={shape_text(indices.shape)}] = {len(indices)} "
            "must match dimensions [0,1) of "
            f"updates[shape={shape_text(updates.shape)}] = {len(updates)}"
        )
    outer, depth = (indices.ndim - 1, indices.shape[-1]) if indices.ndim > 1 else (1, 1)
    if depth > len(shape) or updates.shape != indices.shape[:outer] + shape[depth:]:
        raise InvalidArgumentError(
            "Must have updates.shape = indices.shape[:batch_dim] + params_shape[slice_dim:], "
            f"got updates.shape: {shape_text(updates.shape)}, "
            f"indices.shape: {shape_text(indices.shape)}, params_shape: {shape_text(shape)}, "
            f"slice_dim: {depth}, and batch_dim: {outer}"
        )
    if math.prod(shape) and indices.shape == (0,):  # TensorFlow reads beyond the vector
        raise InvalidArgumentError(f"indices = [] does not index into shape {shape_text(shape)}")
    if math.prod(shape) and not 0 < depth <= _MAX_DEPTH:
        raise InvalidArgumentError(
            "Only indices.shape[-1] values between 1 and 5 are currently supported.  "
            f"Requested rank: {depth}"
        )


def _scatter(
    target: np.ndarray, indices: np.ndarray, updates: np.ndarray, combine: Combine, policy: str
) -> None:
    """Combine `updates` with `target` and write the result into `target`.

    The caller must have copied `target` and checked the shapes.
    """
    if not target.size or not indices.size:
        return
    if indices.ndim > 1:
        rows = indices.reshape(-1, indices.shape[-1])
    else:
        # TensorFlow uses only the first element of a vector of indices.
        rows, updates = indices[:1, np.newaxis], updates[:1]
    depth = rows.shape[1]
    limits = np.array(target.shape[:depth], np.int64)
    slices = updates.reshape(len(rows), math.prod(target.shape[depth:]))
    inside = ((rows >= 0) & (rows < limits)).all(-1)
    if not inside.all():
        if policy != "IGNORE":
            _raise_bad_index(indices, rows, int(inside.argmin()), target.shape)
        rows, slices = rows[inside], slices[inside]
    flat = rows.astype(np.int64) @ _strides(limits)
    combine(target.reshape(math.prod(limits.tolist()), -1), flat, slices)


def _strides(limits: np.ndarray) -> np.ndarray:
    """Return the strides of the indexed dimensions, counted in rows.

    `limits` are the sizes of these dimensions.
    """
    return np.append(limits[1:], 1)[::-1].cumprod()[::-1][: len(limits)]


def _raise_bad_index(
    indices: np.ndarray, rows: np.ndarray, first: int, shape: tuple[int, ...]
) -> None:
    where = f"indices{position_text(first, indices.shape[:-1])}"
    row = ", ".join(map(str, rows[first].tolist()))
    raise InvalidArgumentError(f"{where} = [{row}] does not index into shape {shape_text(shape)}")


def scatter_nd_non_aliasing_add(
    input: TensorValue, indices: np.ndarray, updates: TensorValue, *, bad_indices_policy: str
) -> np.ndarray:
    """ScatterNdNonAliasingAdd: return `input` with the updates added at `indices`.

    Shapes: `updates` [I…, S…], `indices` [I…, k].
    """
    array, changes = box(input), box(updates)
    _check_ranks(indices.shape, changes.shape)
    return _scattered(array, indices, changes, _add, bad_indices_policy)


def _tensor_scatter(combine: Combine) -> Callable[..., np.ndarray]:
    def kernel(
        tensor: TensorValue, indices: np.ndarray, updates: TensorValue, *, bad_indices_policy: str
    ) -> np.ndarray:
        array, changes = box(tensor), box(updates)
        _check_ranks(indices.shape, changes.shape)
        if not _valid_empty_output_shape(array.size, indices, changes):
            raise InvalidArgumentError(_EMPTY_OUTPUT_SHAPE)
        _check_tensor_scatter(array.shape, indices, changes.shape)
        return _scattered(array, indices, changes, combine, bad_indices_policy)

    return kernel


def _scattered(
    array: np.ndarray, indices: np.ndarray, changes: np.ndarray, combine: Combine, policy: str
) -> np.ndarray:
    _check_target(array.shape, indices, changes)
    result = array.copy()
    _scatter(result, indices, changes, combine, policy)
    return result


def _check_ranks(indices: tuple[int, ...], updates: tuple[int, ...]) -> None:
    for name, given in (("Indices", indices), ("Updates", updates)):
        if not given:
            raise InvalidArgumentError(
                f"{name} shape must have rank at least one. Found:{shape_text(given)}"
            )


def _check_tensor_scatter(
    tensor: tuple[int, ...], indices: np.ndarray, updates: tuple[int, ...]
) -> None:
    outer, depth = indices.ndim - 1, indices.shape[-1]
    if updates[:outer] != indices.shape[:-1]:
        raise InvalidArgumentError(
            "Outer dimensions of indices and update must match. "
            f"Indices shape: {shape_text(indices.shape)}, updates shape:{shape_text(updates)}"
        )
    inner = len(updates) - outer
    if depth > len(tensor) or inner != len(tensor) - depth:
        raise InvalidArgumentError(
            "Inner dimensions of output shape must match inner dimensions of updates shape. "
            f"Output: {shape_text(tensor)} updates: {shape_text(updates)}"
        )
    if updates[outer:] != tensor[depth:]:
        raise InvalidArgumentError(
            f"The inner {inner} dimensions of output.shape={shape_text(tensor)} must match the "
            f"inner {inner} dimensions of updates.shape={shape_text(updates)}"
        )


KERNELS = (
    KernelDef("ScatterNd", scatter_nd),
    KernelDef("ScatterNdNonAliasingAdd", scatter_nd_non_aliasing_add),
    KernelDef("TensorScatterAdd", _tensor_scatter(_add)),
    KernelDef("TensorScatterMax", _tensor_scatter(_maximum)),
    KernelDef("TensorScatterMin", _tensor_scatter(_minimum)),
    KernelDef("TensorScatterSub", _tensor_scatter(_subtract)),
    KernelDef("TensorScatterUpdate", _tensor_scatter(_update)),
)
