"""Kernels that read or update a part of a variable: scatters, slices, counters and gathers.

The variable is given by a reference or by a resource handle.

TF: tensorflow/core/kernels/{scatter_op,scatter_nd_op,strided_slice_op,count_up_to_op}.cc,
resource_variable_ops.cc
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, OutOfRangeError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import Kernel, KernelDef, OpKernelContext
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.resources.variable import Variable
from runtime.framework.shapes import position_text, shape_text, sizes_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.gather import check_indices, gather_nd, gather_v2
from runtime.kernels.array.scatter import without_nan
from runtime.kernels.array.slicing import StridedSliceMasks, put_in_slice, strided_slice_index
from runtime.kernels.state.resource_variables import look_up_variable

# A Combine is called with (target, index, updates). It combines `updates` with target[index] and
# writes the result into `target`. An index may name the same element several times.
Index = np.ndarray | tuple[np.ndarray, ...]
Combine = Callable[[np.ndarray, Index, np.ndarray], None]


def _update(target: np.ndarray, index: Index, updates: np.ndarray) -> None:
    target[index] = updates


def _divide(target: np.ndarray, index: Index, updates: np.ndarray) -> None:
    if target.dtype.kind not in "iu":
        np.divide.at(target, index, updates)
        return
    if not np.all(updates):
        raise InvalidArgumentError("Integer division by zero")
    # Division rounds toward zero, as in C, so signs and magnitudes are computed separately. The
    # magnitudes are unsigned, because the magnitude of the lowest integer does not fit into the
    # signed type.
    signs = np.ones(target.shape, target.dtype)
    np.multiply.at(signs, index, np.sign(updates))
    signs *= np.sign(target)
    unsigned = np.dtype(f"u{target.itemsize}")
    sizes = np.abs(target).view(unsigned)
    np.floor_divide.at(sizes, index, np.abs(updates).view(unsigned))
    target[...] = sizes.view(target.dtype) * signs


def _subtract(target: np.ndarray, index: Index, updates: np.ndarray) -> None:
    # The difference of two bools is true if they are not equal.
    function = np.logical_xor if target.dtype.kind == "b" else np.subtract
    function.at(target, index, updates)


def _maximum(target: np.ndarray, index: Index, updates: np.ndarray) -> None:
    np.maximum.at(target, index, without_nan(updates, -math.inf))


def _minimum(target: np.ndarray, index: Index, updates: np.ndarray) -> None:
    np.minimum.at(target, index, without_nan(updates, math.inf))


_COMBINES: dict[str, Combine] = {
    "Add": np.add.at,
    "Div": _divide,
    "Max": _maximum,
    "Min": _minimum,
    "Mul": np.multiply.at,
    "Sub": _subtract,
    "Update": _update,
}


def _check_scatter(shape: tuple[int, ...], indices: np.ndarray, updates: np.ndarray) -> None:
    if not shape:
        raise InvalidArgumentError("params must be at least 1-D, got shape []")
    updates_shape = np.shape(updates)
    if updates_shape not in ((), indices.shape + shape[1:]):
        raise InvalidArgumentError(
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], "
            f"got updates.shape {shape_text(updates_shape)}, indices.shape "
            f"{shape_text(indices.shape)}, params.shape {shape_text(shape)}"
        )
    outside = (indices < 0) | (indices >= shape[0])
    if outside.any():
        first = int(outside.argmax())
        raise InvalidArgumentError(
            f"indices{position_text(first, indices.shape)} = {indices.item(first)} "
            f"is not in [0, {shape[0]})"
        )


def _scatter(combine: Combine, is_resource: bool) -> Kernel:
    def apply(variable: Variable, indices: np.ndarray, updates: np.ndarray) -> Variable:
        # Resource ops check this for every dtype, even if there are no indices. The ops on
        # references check only integers.
        if is_resource and combine is _divide and not np.all(updates):
            raise InvalidArgumentError("updates must not contain 0")

        def change(array: np.ndarray) -> None:
            _check_scatter(array.shape, indices, updates)
            if indices.size:
                combine(array, indices, updates)

        variable.update(change)
        return variable

    return _by_handle(apply) if is_resource else apply


def _by_handle(apply: Callable[..., Variable]) -> Kernel:
    """Make the kernel that calls `apply` with the variable of a resource handle.

    The kernel has no output.
    """

    def kernel(context: OpKernelContext, handle: ResourceHandle, *inputs: np.ndarray) -> None:
        apply(look_up_variable(context, handle), *inputs)

    return kernel


def _check_scatter_nd(
    shape: tuple[int, ...], indices: np.ndarray, updates: tuple[int, ...]
) -> None:
    if not shape:
        raise InvalidArgumentError("Output must be at least 1-D, got shape: []")
    if indices.ndim < 1:
        raise InvalidArgumentError(
            f"Indices shape must have rank at least one. Found:{shape_text(indices.shape)}"
        )
    if not updates:
        raise InvalidArgumentError(
            f"Updates shape must have rank at least one. Found:{shape_text(updates)}"
        )
    outer, depth = indices.ndim - 1, indices.shape[-1]
    if updates[:outer] != indices.shape[:-1]:
        raise InvalidArgumentError(
            f"Dimensions [0,{outer}) of indices[shape={shape_text(indices.shape)}] = "
            f"{math.prod(indices.shape[:-1])} must match dimensions [0,{outer}) of "
            f"updates[shape={shape_text(updates)}] = {math.prod(updates[:outer])}"
        )
    if updates != indices.shape[:-1] + shape[depth:]:
        raise InvalidArgumentError(
            "Must have updates.shape = indices.shape[:batch_dim] + "
            f"params_shape[slice_dim:], got updates.shape: {shape_text(updates)}, indices.shape: "
            f"{shape_text(indices.shape)}, params_shape: {shape_text(shape)}, slice_dim: {depth}, "
            f"and batch_dim: {indices.ndim - 1}"
        )


def _scatter_nd(combine: Combine, is_resource: bool) -> Kernel:
    def apply(variable: Variable, given: np.ndarray, updates: np.ndarray) -> Variable:
        # A vector of indices is treated as a column, of which only the first index is used.
        is_vector = given.ndim == 1
        indices = given[:, np.newaxis] if is_vector else given

        def change(array: np.ndarray) -> None:
            nonlocal indices, updates
            _check_scatter_nd(array.shape, indices, np.shape(updates))
            if is_vector:
                indices, updates = indices[:1], updates[:1]
            limits = np.array(array.shape[: indices.shape[-1]], np.int64)
            outside = np.asarray(((indices < 0) | (indices >= limits)).any(-1))
            if outside.any():
                _raise_outside(indices, outside, array.shape)
            if indices.size:
                combine(array, tuple(np.moveaxis(indices, -1, 0)), updates)

        variable.update(change)
        return variable

    return _by_handle(apply) if is_resource else apply


def _raise_outside(indices: np.ndarray, outside: np.ndarray, shape: tuple[int, ...]) -> None:
    first = int(outside.argmax())
    row = sizes_text(indices.reshape(-1, indices.shape[-1])[first].tolist())
    raise InvalidArgumentError(
        f"indices{position_text(first, outside.shape)} = {row} "
        f"does not index into shape {shape_text(shape)}"
    )


def _assign_slice(
    variable: Variable,
    begin: np.ndarray,
    end: np.ndarray,
    strides: np.ndarray,
    value: np.ndarray,
    masks: StridedSliceMasks,
) -> None:
    def change(array: np.ndarray) -> None:
        index = strided_slice_index(array.shape, begin, end, strides, masks)
        put_in_slice(array, index, value)

    variable.update(change)


def strided_slice_assign(
    ref: Variable,
    begin: np.ndarray,
    end: np.ndarray,
    strides: np.ndarray,
    value: np.ndarray,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Variable:
    """StridedSliceAssign: broadcast `value` and write it into a slice of the variable."""
    masks = StridedSliceMasks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    _assign_slice(ref, begin, end, strides, value, masks)
    return ref


def resource_strided_slice_assign(
    context: OpKernelContext,
    handle: ResourceHandle,
    begin: np.ndarray,
    end: np.ndarray,
    strides: np.ndarray,
    value: np.ndarray,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> None:
    """ResourceStridedSliceAssign: broadcast `value` and write it into a slice of the variable."""
    masks = StridedSliceMasks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    _assign_slice(look_up_variable(context, handle), begin, end, strides, value, masks)


def count_up_to(ref: Variable, *, limit: int) -> np.ndarray:
    """CountUpTo: add one to the variable and return its previous value.

    Raises OutOfRangeError if the variable has reached `limit`.
    """
    before: list[np.ndarray] = []

    def change(array: np.ndarray) -> None:
        if array.ndim:
            raise InvalidArgumentError(f"input is not a scalar: {shape_text(array.shape)}")
        if array >= limit:
            raise OutOfRangeError(f"Reached limit of {limit}")
        before.append(array.copy())
        array += 1

    ref.update(change)
    return before[0]


def resource_count_up_to(
    context: OpKernelContext, handle: ResourceHandle, *, limit: int
) -> np.ndarray:
    """ResourceCountUpTo: add one to the variable of `handle` and return its previous value.

    Raises OutOfRangeError if the variable has reached `limit`.
    """
    return count_up_to(look_up_variable(context, handle), limit=limit)


def resource_gather(
    context: OpKernelContext,
    handle: ResourceHandle,
    indices: np.ndarray,
    *,
    batch_dims: int,
    dtype: DataType,
) -> TensorValue:
    """ResourceGather: return the rows of a variable at `indices`, along dimension `batch_dims`."""
    variable = look_up_variable(context, handle)
    if variable.dtype != dtype:
        raise InvalidArgumentError(
            "Trying to read variable with wrong dtype. "
            f"Expected {dtype.tf_name} got {variable.dtype.tf_name}"
        )
    axis = np.array(batch_dims)
    # The result is a copy of the rows. Therefore no reader shares the variable's array, and a table
    # that is looked up and updated in turns is updated without a copy.
    return variable.look(lambda value: _gathered(value, indices, axis, batch_dims))


def _gathered(value: np.ndarray, indices: np.ndarray, axis: np.ndarray, dims: int) -> TensorValue:
    result = gather_v2(value, indices, axis, batch_dims=dims)
    if not np.asarray(result).size:  # unlike GatherV2, this op checks indices of empty rows
        check_indices(indices, value.shape[dims])
    return result


def resource_gather_nd(
    context: OpKernelContext, handle: ResourceHandle, indices: np.ndarray
) -> TensorValue:
    """ResourceGatherNd: return the slices of a variable at `indices` [I…, k]."""
    # `look` requires a result that is a copy, but this one may be a view of the value.
    value = look_up_variable(context, handle).read()
    return gather_nd(context, value, indices, bad_indices_policy="")


_ND = ("Add", "Max", "Min", "Sub", "Update")
KERNELS = (
    KernelDef("CountUpTo", count_up_to),
    KernelDef("ResourceCountUpTo", resource_count_up_to),
    KernelDef("ResourceGather", resource_gather),
    KernelDef("ResourceGatherNd", resource_gather_nd),
    KernelDef("ResourceStridedSliceAssign", resource_strided_slice_assign),
    KernelDef("StridedSliceAssign", strided_slice_assign),
    *(KernelDef(f"Scatter{op}", _scatter(run, False)) for op, run in _COMBINES.items()),
    *(KernelDef(f"ResourceScatter{op}", _scatter(run, True)) for op, run in _COMBINES.items()),
    *(KernelDef(f"ScatterNd{op}", _scatter_nd(_COMBINES[op], False)) for op in _ND),
    *(KernelDef(f"ResourceScatterNd{op}", _scatter_nd(_COMBINES[op], True)) for op in _ND),
)
