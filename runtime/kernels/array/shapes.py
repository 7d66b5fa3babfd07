"""Kernels that return, change or check shapes.

TF: tensorflow/core/kernels/{shape_ops,reshape_op,broadcast_to_op}.cc
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text, sizes_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box, unbox


def _shape_of(value: TensorValue) -> tuple[int, ...]:
    """Return the shape of `value`; a bare resource or variant is a scalar."""
    return value.shape if isinstance(value, np.ndarray) else ()


def shape(value: TensorValue, *, out_type: DataType) -> np.ndarray:
    """Shape: return the sizes of the dimensions of `value`, as a vector [rank]."""
    sizes = _shape_of(value)
    try:
        return np.array(sizes, out_type.numpy)
    except OverflowError:
        axis = next(axis for axis, size in enumerate(sizes) if size >= 1 << 31)
        raise InvalidArgumentError(
            f"Shape output type is 32-bit  but dim {axis} is {sizes[axis]}"
        ) from None


def shape_n(*values: TensorValue, out_type: DataType) -> list[np.ndarray]:
    """ShapeN: return the shape of each input."""
    return [shape(value, out_type=out_type) for value in values]


def size(value: TensorValue, *, out_type: DataType) -> np.ndarray:
    """Size: return the number of elements of `value`."""
    count = math.prod(_shape_of(value))
    if out_type is DataType.INT32 and count >= 1 << 31:
        raise InvalidArgumentError(
            "Number of elements was larger than representable by 32-bit output type"
        )
    return np.array(count, out_type.numpy)


def rank(value: TensorValue) -> np.ndarray:
    """Rank: return the number of dimensions of `value`."""
    return np.array(len(_shape_of(value)), np.int32)


TENSORFLOW_RANKS = 254  # a shape of TensorFlow has fewer dimensions than this


def reshape(tensor: TensorValue, shape: np.ndarray) -> TensorValue:
    """Reshape: return a view of `tensor` with the sizes in `shape`.

    One size may be −1; it is computed from the other sizes.
    """
    if shape.ndim > 1:
        raise InvalidArgumentError(f"sizes input must be 1-D, not {shape_text(shape.shape)}")
    if shape.size >= TENSORFLOW_RANKS:
        raise InvalidArgumentError(
            f"too many dimensions: must be < {TENSORFLOW_RANKS}, but received {shape.size}"
        )
    array = box(tensor)
    return unbox(array.reshape(_reshape_sizes(array, np.atleast_1d(shape).tolist())))


def _reshape_sizes(array: np.ndarray, sizes: list[int]) -> list[int]:
    """Return `sizes` with −1 replaced by the size that fits.

    Raises InvalidArgumentError unless a shape of these sizes has as many elements as `array`.
    """
    unknown = -1
    product = 1
    for axis, size in enumerate(sizes):
        if size == -1:
            if unknown >= 0:
                raise InvalidArgumentError(
                    f"Only one input size may be -1, not both {unknown} and {axis}"
                )
            unknown = axis
        elif size < 0:
            raise InvalidArgumentError(f"Size {axis} must be non-negative, not {size}")
        elif size:  # zeros are left out, because the missing size is a quotient of products
            product *= size
    if unknown >= 0:
        sizes[unknown] = _missing_size(array.shape, product, 0 in sizes)
    if math.prod(sizes) != array.size:
        raise InvalidArgumentError(
            f"Input to reshape is a tensor with {array.size} values, "
            f"but the requested shape has {math.prod(sizes)}"
        )
    if math.prod(size for size in sizes if size) >= 1 << 63:
        raise InvalidArgumentError(f"Shape {shape_text(sizes)} has too many elements")
    return sizes


def _missing_size(shape: tuple[int, ...], product: int, has_zero: bool) -> int:
    """Return the size that −1 stands for in the wanted shape.

    `product` is the product of the wanted sizes other than −1 and 0. If both shapes have a size of
    0, these zeros cancel.
    """
    cancels = has_zero and 0 in shape
    count = math.prod(size for size in shape if size or not has_zero)
    if count % product and not cancels:
        raise InvalidArgumentError(
            f"Input to reshape is a tensor with {count} values, "
            f"but the requested shape requires a multiple of {product}"
        )
    return count // product


def expand_dims(value: TensorValue, dim: np.ndarray) -> np.ndarray:
    """ExpandDims: return a view of `value` with a dimension of size 1 inserted at `dim`."""
    array = box(value)
    if dim.size != 1:
        raise InvalidArgumentError("'dim' must be a tensor with a single value")
    axis = int(dim.item())
    if not -1 - array.ndim <= axis <= array.ndim:
        raise InvalidArgumentError(
            f"Tried to expand dim index {axis} for tensor with {array.ndim} dimensions."
        )
    axis %= array.ndim + 1
    return array.reshape(*array.shape[:axis], 1, *array.shape[axis:])


def squeeze(value: TensorValue, *, squeeze_dims: tuple[int, ...]) -> TensorValue:
    """Squeeze: return a view of `value` without its dimensions of size 1.

    If `squeeze_dims` is not empty, only these dimensions are removed.
    """
    array = box(value)
    ranks = array.ndim
    for axis in squeeze_dims:
        if not -ranks <= axis < ranks:
            raise InvalidArgumentError(
                f"Tried to squeeze dim index {axis} for tensor with {ranks} dimensions."
            )
    chosen = {axis % ranks for axis in squeeze_dims}
    sizes = []
    for axis, size in enumerate(array.shape):
        if axis in chosen and size != 1:
            raise InvalidArgumentError(
                f"Can not squeeze dim[{axis}], expected a dimension of 1, got {size}"
            )
        if size != 1 or (chosen and axis not in chosen):
            sizes.append(size)
    return unbox(array.reshape(sizes))


def ensure_shape(value: TensorValue, *, shape: tuple[int, ...] | None) -> TensorValue:
    """EnsureShape: return `value`.

    Raises InvalidArgumentError unless the shape of `value` is compatible with `shape`.
    """
    got = _shape_of(value)
    fits = shape is None or (
        len(shape) == len(got)
        and all(want in (-1, size) for want, size in zip(shape, got, strict=True))
    )
    if not fits:
        raise InvalidArgumentError(
            f"Shape of tensor {shape_text(got)} is not compatible with expected shape "
            f"{shape_text(shape)}."
        )
    return value


def broadcast_to(value: TensorValue, shape: np.ndarray) -> TensorValue:
    """BroadcastTo: return a copy of `value` that is broadcast to `shape`."""
    array = box(value)
    if shape.ndim != 1:
        raise InvalidArgumentError(
            f"shape must be a vector of {{int32,int64}}, got shape {shape_text(shape.shape)}"
        )
    sizes = shape.tolist()
    if len(sizes) < array.ndim:
        raise InvalidArgumentError(
            f"Rank of input ({array.ndim}) must be no greater than rank of output shape "
            f"({len(sizes)})."
        )
    check_allocation(sizes, array.dtype)
    fits = all(
        size in (1, wanted) for size, wanted in zip(array.shape[::-1], sizes[::-1], strict=False)
    )
    if not fits:
        raise InvalidArgumentError(
            f"Incompatible shapes: {shape_text(array.shape)} vs. {shape_text(sizes)}"
        )
    # A view with stride 0 needs less memory than the copy but is slower to read repeatedly.
    return unbox(np.broadcast_to(array, sizes).copy())


def broadcast_args(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """BroadcastArgs: return the shape that the shapes `first` and `second` broadcast to."""
    for index, given in enumerate((first, second)):
        if given.ndim != 1:
            raise InvalidArgumentError(f"In[{index}] must be a vector.{shape_text(given.shape)}")
    one, two = first.tolist(), second.tolist()
    longest = max(len(one), len(two))
    one = [1] * (longest - len(one)) + one
    two = [1] * (longest - len(two)) + two
    sizes = []
    for left, right in zip(one, two, strict=True):
        if left != right and 1 not in (left, right):
            raise InvalidArgumentError(
                f"Incompatible shapes: {sizes_text(first.tolist())} vs. "
                f"{sizes_text(second.tolist())}"
            )
        sizes.append(right if left == 1 else left)
    return np.array(sizes, first.dtype)


def empty(shape: np.ndarray, *, dtype: DataType) -> np.ndarray:
    """Empty: return a tensor of the given `shape`.

    It always holds zeros (or empty strings), so that no freed memory is exposed.
    """
    if shape.ndim != 1:
        raise InvalidArgumentError(
            f"shape must be a vector of int32, got shape {shape_text(shape.shape)}"
        )
    sizes = shape.tolist()
    check_allocation(sizes, dtype.numpy)
    result = np.zeros(sizes, dtype.numpy)
    if dtype is DataType.STRING:
        result[...] = b""
    return result


KERNELS = (
    KernelDef("BroadcastArgs", broadcast_args),
    KernelDef("BroadcastTo", broadcast_to),
    KernelDef("Empty", empty),
    KernelDef("EnsureShape", ensure_shape),
    KernelDef("ExpandDims", expand_dims),
    KernelDef("Rank", rank),
    KernelDef("Reshape", reshape),
    KernelDef("Shape", shape),
    KernelDef("ShapeN", shape_n),
    KernelDef("Size", size),
    KernelDef("Squeeze", squeeze),
)
