"""Kernels that return slices of a tensor, their gradients, or tensors with a slice replaced.

TF: tensorflow/core/kernels/{slice_op,strided_slice_op}.cc, tensorflow/core/util/strided_slice_op.cc
"""

from __future__ import annotations

import dataclasses
import functools
from types import EllipsisType

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box, unbox

# One entry of a numpy index. With these types only ("basic indexing") numpy returns a view.
_MASK_BITS = 32  # TensorFlow's masks are 32-bit integers, which bounds the entries
Index = int | slice | EllipsisType | None


def slice_(value: TensorValue, begin: np.ndarray, size: np.ndarray) -> TensorValue:
    """Slice: return `size` elements from `begin` on, in each dimension of `value`.

    A size of −1 extends to the end of the dimension.
    """
    array = box(value)
    if begin.shape != (array.ndim,) or size.shape != (array.ndim,):
        raise InvalidArgumentError(
            f"Expected begin and size arguments to be 1-D tensors of size {array.ndim}, but got "
            f"shapes {shape_text(begin.shape)} and {shape_text(size.shape)} instead."
        )
    index: list[Index] = []
    for axis, (start, count) in enumerate(zip(begin.tolist(), size.tolist(), strict=True)):
        length = array.shape[axis]
        if not 0 <= start <= length:
            raise InvalidArgumentError(f"Expected begin[{axis}] in [0, {length}], but got {start}")
        if count == -1:
            count = length - start
        if not 0 <= count <= length - start:
            raise InvalidArgumentError(
                f"Expected size[{axis}] in [0, {length - start}], but got {count}"
            )
        index.append(slice(start, start + count))
    return unbox(array[(*index, ...)])


@dataclasses.dataclass(frozen=True, slots=True)
class StridedSliceMasks:
    """The five bit masks of StridedSlice; bit i applies to entry i of begin, end and strides."""

    begin: int
    end: int
    ellipsis: int
    new_axis: int
    shrink_axis: int


# The masks of a node never change, so they are cached and not made anew in every step.
_masks = functools.lru_cache(maxsize=4096)(StridedSliceMasks)


def strided_slice_index(
    shape: tuple[int, ...],
    begin: np.ndarray,
    end: np.ndarray,
    strides: np.ndarray,
    masks: StridedSliceMasks,
) -> tuple[Index, ...]:
    """Return the numpy index that the inputs of StridedSlice describe; it makes a view.

    Raises InvalidArgumentError if the vectors differ in size, a stride is 0, there are two ellipses
    or too many entries, or an entry in the mask `shrink_axis` is out of bounds.

    TF: tensorflow/core/util/strided_slice_op.cc (ValidateStridedSliceOp)
    """
    same = begin.shape == end.shape == strides.shape
    if begin.ndim != 1 or not same or len(begin) >= _MASK_BITS:
        raise InvalidArgumentError(
            "Expected begin, end, and strides to be 1D equal size tensors, but got shapes "
            f"{shape_text(begin.shape)}, {shape_text(end.shape)}, and "
            f"{shape_text(strides.shape)} instead."
        )
    count = len(begin)
    if masks.ellipsis & (masks.ellipsis - 1):
        raise InvalidArgumentError("Multiple ellipses in slice spec not allowed")
    starts, stops, steps = begin.tolist(), end.tolist(), strides.tolist()
    index: list[Index] = []
    axis = 0
    for entry in range(count):
        bit = 1 << entry
        if masks.ellipsis & bit:
            later = (masks.new_axis >> (entry + 1)) & ((1 << (count - entry - 1)) - 1)
            kept = max(len(shape) - (count - entry - 1) + later.bit_count(), axis)
            index += [slice(None)] * (kept - axis)
            axis = kept
        elif masks.new_axis & bit:
            index.append(None)
        elif axis >= len(shape):
            raise InvalidArgumentError(
                f"Index out of range using input dim {axis}; input has only {len(shape)} dims"
            )
        else:
            dimension = (axis, shape[axis], starts[entry], stops[entry], steps[entry])
            index.append(_entry_index(*dimension, bit, masks))
            axis += 1
    return (*index, ...)


def _entry_index(
    axis: int, length: int, start: int, stop: int, step: int, bit: int, masks: StridedSliceMasks
) -> int | slice:
    """Return the index of one dimension.

    It is an int if the mask `shrink_axis` removes the dimension, otherwise a slice.
    """
    if step == 0:
        raise InvalidArgumentError(f"strides[{axis}] must be non-zero")
    if masks.shrink_axis & bit:
        if step < 0:
            raise InvalidArgumentError("only stride 1 allowed on non-range indexing.")
        single = start + length if start < 0 else start
        if not 0 <= single < length:
            raise InvalidArgumentError(f"slice index {single} of dimension {axis} out of bounds.")
        return single
    # A Python slice follows TensorFlow's rules; None stands for a masked begin or end.
    return slice(None if masks.begin & bit else start, None if masks.end & bit else stop, step)


def strided_slice(
    value: TensorValue,
    begin: np.ndarray,
    end: np.ndarray,
    strides: np.ndarray,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> TensorValue:
    """StridedSlice: return the view of `value` that `begin`, `end` and `strides` select."""
    masks = _masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    array = box(value)
    return unbox(array[strided_slice_index(array.shape, begin, end, strides, masks)])


_ZEROS = {DataType.STRING: b"", DataType.VARIANT: None, DataType.RESOURCE: None}


def strided_slice_grad(
    shape: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    strides: np.ndarray,
    gradient: TensorValue,
    *,
    T: DataType,  # noqa: N803 # the attribute's name
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> np.ndarray:
    """StridedSliceGrad: return zeros of `shape` with `gradient` written at the slice.

    If the dtype is string, the empty string takes the place of zero; if it is variant or resource,
    None does.
    """
    gradient = box(gradient)
    masks = _masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    if shape.ndim != 1:
        raise InvalidArgumentError(
            f"shape must be 1-D, got shape.shape = {shape_text(shape.shape)}"
        )
    sizes = tuple(shape.tolist())
    index = strided_slice_index(sizes, begin, end, strides, masks)
    check_allocation(sizes, gradient.dtype)
    result = np.full(sizes, _ZEROS.get(T, 0), gradient.dtype)
    target = result[index]
    if target.shape != gradient.shape:
        raise InvalidArgumentError(
            f"shape of dy was {shape_text(gradient.shape)} instead of {shape_text(target.shape)}"
        )
    target[...] = gradient
    return result


def put_in_slice(array: np.ndarray, index: tuple[Index, ...], value: TensorValue) -> None:
    """Write `value`, broadcast to the shape of the slice `array[index]`, into that slice."""
    # If the index has an ellipsis, numpy returns a view even of one element.
    target = array[index if Ellipsis in index else (*index, ...)]
    if not target.size:
        return
    try:
        target[...] = value
    except ValueError:
        raise InvalidArgumentError(
            f"Cannot broadcast input shape {shape_text(box(value).shape)} into final shape "
            f"{shape_text(target.shape)}"
        ) from None


def tensor_strided_slice_update(
    value: TensorValue,
    begin: np.ndarray,
    end: np.ndarray,
    strides: np.ndarray,
    update: TensorValue,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> TensorValue:
    """TensorStridedSliceUpdate: return a copy of `value` with `update` written at the slice."""
    masks = _masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    result = box(value).copy()
    index = strided_slice_index(result.shape, begin, end, strides, masks)
    put_in_slice(result, index, update)
    return unbox(result)


KERNELS = (
    KernelDef("Slice", slice_),
    KernelDef("StridedSlice", strided_slice),
    KernelDef("StridedSliceGrad", strided_slice_grad),
    KernelDef("TensorStridedSliceUpdate", tensor_strided_slice_update),
)
