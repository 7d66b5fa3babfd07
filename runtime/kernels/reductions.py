"""Reductions over axes, and the index of the largest or smallest element.

Half-precision sums accumulate in float32, as TensorFlow's do.

TF: tensorflow/core/kernels/{reduction_ops_common.h,argmax_op.cc,l2loss_op.cc}
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.register_types import (
    COMPLEX_TYPES,
    HALF_TYPES,
    INTEGRAL_TYPES,
    REAL_NUMBER_TYPES,
    SINGLE_AND_DOUBLE,
)

FULL_WIDTH_TYPES = SINGLE_AND_DOUBLE + INTEGRAL_TYPES + COMPLEX_TYPES
# numpy's stubs do not know a `keepdims` that is a variable.
Reduce = Callable[..., Any]
add_reduce: Reduce = np.add.reduce
multiply_reduce: Reduce = np.multiply.reduce
maximum_reduce: Reduce = np.maximum.reduce
minimum_reduce: Reduce = np.minimum.reduce
and_reduce: Reduce = np.logical_and.reduce
or_reduce: Reduce = np.logical_or.reduce
FOLDED_SIZE = 64  # elements; multiplied one after the other, they take less than folding
ARG_MAX_RANK = 7  # TensorFlow's largest rank for ArgMax and ArgMin


@functools.lru_cache(maxsize=4096)
def _checked_axes(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Axes counted from 0, in order.

    Raises InvalidArgumentError for an axis out of range or given twice.
    """
    found: list[int] = []
    for axis in axes:
        if not -rank <= axis < rank:
            raise InvalidArgumentError(
                f"Invalid reduction dimension ({axis} for input with {rank} dimension(s)"
            )
        positive = axis % rank
        if positive in found:
            raise InvalidArgumentError(
                f"Invalid reduction arguments: Axes contains duplicate dimension: {positive}"
            )
        found.append(positive)
    return tuple(sorted(found))


def _axes_of(input: Any, reduction_indices: Any) -> tuple[int, ...]:
    return _checked_axes(tuple(reduction_indices.ravel().tolist()), input.ndim)


def _reduction(reduce: Reduce) -> Reduce:
    """A kernel from `reduce(input, axes, keep_dims)`; no axes return the input."""

    def kernel(input: Any, reduction_indices: Any, *, keep_dims: bool) -> Any:
        axes = _axes_of(input, reduction_indices)
        return reduce(input, axes, keep_dims) if axes else input

    kernel.__name__ = kernel.__qualname__ = reduce.__name__
    return kernel


def _in_float32(reduce: Reduce) -> Reduce:
    """`reduce` for half-precision input: float32 inside, rounded once."""

    def wide(input: Any, axes: tuple[int, ...], keep_dims: bool) -> Any:
        return reduce(input.astype(np.float32), axes, keep_dims).astype(input.dtype)

    wide.__name__ = wide.__qualname__ = reduce.__name__
    return wide


def reduce_sum(input: Any, axes: tuple[int, ...], keep_dims: bool) -> Any:
    """Sum, wrapping around for integers."""
    return add_reduce(input, axis=axes, keepdims=keep_dims, dtype=input.dtype)


def reduce_prod(input: Any, axes: tuple[int, ...], keep_dims: bool) -> Any:
    """Product, wrapping around for integers."""
    if axes == tuple(range(input.ndim - len(axes), input.ndim)) and input.size > FOLDED_SIZE:
        kept = input.shape[: input.ndim - len(axes)]
        input = _folded(input.reshape(*kept, -1))
        result = multiply_reduce(input, axis=-1, dtype=input.dtype)
        return result.reshape(*kept, *(1,) * len(axes)) if keep_dims else result
    return multiply_reduce(input, axis=axes, keepdims=keep_dims, dtype=input.dtype)


def _folded(rows: Any) -> Any:
    """Rows with the same products, at most FOLDED_SIZE long: halves are multiplied side by side.

    numpy multiplies along a row one element after the other.
    """
    while rows.shape[-1] > FOLDED_SIZE:
        half = rows.shape[-1] // 2
        product = np.multiply(rows[..., :half], rows[..., half : 2 * half])
        if rows.shape[-1] % 2:
            product[..., 0] *= rows[..., -1]
        rows = product
    return rows


def reduce_mean(input: Any, axes: tuple[int, ...], keep_dims: bool) -> Any:
    """Mean of floating-point or complex numbers; NaN for no elements."""
    total = add_reduce(input, axis=axes, keepdims=keep_dims)
    count = math.prod(input.shape[axis] for axis in axes)
    if count == 0 and input.dtype.kind == "c":
        return total  # TensorFlow's complex mean of nothing is 0
    return np.divide(total, input.dtype.type(count))


def reduce_integer_mean(input: Any, axes: tuple[int, ...], keep_dims: bool) -> Any:
    """Mean of integers, summed in 64 bits and rounded toward zero; 0 for no elements."""
    total = add_reduce(
        input,
        axis=axes,
        keepdims=keep_dims,
        dtype=np.uint64 if input.dtype.kind == "u" else np.int64,
    )
    count = max(1, math.prod(input.shape[axis] for axis in axes))
    quotient = total // count
    rounded = quotient + (np.less(total, 0) & (total % count != 0))
    return np.asarray(rounded).astype(input.dtype)


def _lowest(dtype: np.dtype) -> Any:
    return dtype.type(-np.inf) if is_floating(dtype) else np.iinfo(dtype).min


def _highest(dtype: np.dtype) -> Any:
    return dtype.type(np.inf) if is_floating(dtype) else np.iinfo(dtype).max


def is_floating(dtype: np.dtype) -> bool:
    """Whether the dtype is a floating-point type of 16 bits or more."""
    return dtype.kind == "f" or dtype == ml_dtypes.bfloat16


def reduce_max(input: Any, axes: tuple[int, ...], keep_dims: bool) -> Any:
    """Largest element; the type's lowest value for no elements."""
    if input.size:
        return maximum_reduce(input, axis=axes, keepdims=keep_dims)
    return maximum_reduce(input, axis=axes, keepdims=keep_dims, initial=_lowest(input.dtype))


def reduce_min(input: Any, axes: tuple[int, ...], keep_dims: bool) -> Any:
    """Smallest element; the type's highest value for no elements."""
    if input.size:
        return minimum_reduce(input, axis=axes, keepdims=keep_dims)
    return minimum_reduce(input, axis=axes, keepdims=keep_dims, initial=_highest(input.dtype))


def reduce_all(input: Any, axes: tuple[int, ...], keep_dims: bool) -> Any:
    """Whether all elements are true."""
    return and_reduce(input, axis=axes, keepdims=keep_dims)


def reduce_any(input: Any, axes: tuple[int, ...], keep_dims: bool) -> Any:
    """Whether any element is true."""
    return or_reduce(input, axis=axes, keepdims=keep_dims)


def reduce_euclidean_norm(input: Any, axes: tuple[int, ...], keep_dims: bool) -> Any:
    """sqrt(sum(|x|²)), computed in the input's own type."""
    if input.dtype.char in "fd":
        every = [*range(input.ndim)]
        kept = [axis for axis in every if axis not in axes]
        total = np.asarray(np.einsum(input, every, input, every, kept))
        if keep_dims:
            total = np.expand_dims(total, axes)
    else:
        squares = np.multiply(input, np.conjugate(input))
        total = add_reduce(squares, axis=axes, keepdims=keep_dims, dtype=input.dtype)
    return np.sqrt(total).astype(input.dtype)


def euclidean_norm(input: Any, reduction_indices: Any, *, keep_dims: bool) -> Any:
    """sqrt(sum(|x|²)); the absolute value for no axes."""
    return reduce_euclidean_norm(input, _axes_of(input, reduction_indices), keep_dims)


def half_euclidean_norm(input: Any, reduction_indices: Any, *, keep_dims: bool) -> Any:
    """`euclidean_norm` of half-precision input, computed in float32."""
    axes = _axes_of(input, reduction_indices)
    return reduce_euclidean_norm(input.astype(np.float32), axes, keep_dims).astype(input.dtype)


def l2_loss(t: Any) -> Any:
    """sum(t²) / 2."""
    flat = np.ravel(t)
    return np.multiply(np.dot(flat, flat), t.dtype.type(0.5))


def half_l2_loss(t: Any) -> Any:
    """sum(t²) / 2 of a half-precision tensor, summed in float32."""
    return l2_loss(t.astype(np.float32)).astype(t.dtype)


def _arg_axis(input: Any, dimension: Any) -> int:
    if np.ndim(dimension):
        raise InvalidArgumentError(
            f"dim must be a scalar, but received tensor of shape: {shape_text(dimension.shape)}"
        )
    axis, rank = int(dimension), input.ndim
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"Expected dimension in the range [{-rank}, {rank}), but got {axis}"
        )
    if input.shape[axis] == 0:
        raise InvalidArgumentError(
            f"Reduction axis {axis % rank} is empty in shape {shape_text(input.shape)}"
        )
    if rank > ARG_MAX_RANK:
        raise InvalidArgumentError(
            f"Argmax and Argmin only support up to {ARG_MAX_RANK} input dimensions, but got "
            f"{rank}. Inputs shape: {shape_text(input.shape)}"
        )
    return axis


def _arg_kernel(find: Reduce, loser: float) -> Reduce:
    """ArgMax or ArgMin; `loser` stands in for NaN, which TensorFlow passes over."""

    def kernel(input: Any, dimension: Any, *, output_type: DataType) -> Any:
        axis = _arg_axis(input, dimension)
        index = find(input, axis=axis)
        if is_floating(input.dtype):
            chosen = np.take_along_axis(input, np.expand_dims(index, axis), axis)
            if np.isnan(chosen).any():
                stand_in = input.dtype.type(loser)
                index = find(np.where(np.isnan(input), stand_in, input), axis=axis)
        return index.astype(output_type.numpy)

    kernel.__name__ = kernel.__qualname__ = find.__name__
    return kernel


KERNELS: tuple[KernelDef, ...] = (
    KernelDef("Sum", _reduction(reduce_sum), {"T": FULL_WIDTH_TYPES}),
    KernelDef("Sum", _reduction(_in_float32(reduce_sum)), {"T": HALF_TYPES}),
    KernelDef("Prod", _reduction(reduce_prod), {"T": FULL_WIDTH_TYPES}),
    KernelDef("Prod", _reduction(_in_float32(reduce_prod)), {"T": HALF_TYPES}),
    KernelDef("Mean", _reduction(reduce_mean), {"T": SINGLE_AND_DOUBLE + COMPLEX_TYPES}),
    KernelDef("Mean", _reduction(_in_float32(reduce_mean)), {"T": HALF_TYPES}),
    KernelDef("Mean", _reduction(reduce_integer_mean), {"T": INTEGRAL_TYPES}),
    KernelDef("Max", _reduction(reduce_max), {"T": REAL_NUMBER_TYPES}),
    KernelDef("Min", _reduction(reduce_min), {"T": REAL_NUMBER_TYPES}),
    KernelDef("All", _reduction(reduce_all)),
    KernelDef("Any", _reduction(reduce_any)),
    KernelDef("EuclideanNorm", euclidean_norm, {"T": FULL_WIDTH_TYPES}),
    KernelDef("EuclideanNorm", half_euclidean_norm, {"T": HALF_TYPES}),
    KernelDef("L2Loss", l2_loss, {"T": SINGLE_AND_DOUBLE}),
    KernelDef("L2Loss", half_l2_loss, {"T": HALF_TYPES}),
    KernelDef(
        "ArgMax", _arg_kernel(np.argmax, -np.inf), {"T": (*REAL_NUMBER_TYPES, DataType.BOOL)}
    ),
    KernelDef("ArgMin", _arg_kernel(np.argmin, np.inf), {"T": (*REAL_NUMBER_TYPES, DataType.BOOL)}),
)
