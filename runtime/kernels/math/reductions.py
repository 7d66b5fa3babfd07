"""Reductions over axes, and the index of the largest or smallest element.

Half-precision sums are accumulated in float32, as in TensorFlow.

TF: tensorflow/core/kernels/{reduction_ops_common.h,argmax_op.cc,l2loss_op.cc}
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import ml_dtypes
import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import (
    COMPLEX_TYPES,
    HALF_TYPES,
    INTEGRAL_TYPES,
    REAL_NUMBER_TYPES,
    SINGLE_AND_DOUBLE,
)
from runtime.framework.shapes import shape_text

FULL_WIDTH_TYPES = SINGLE_AND_DOUBLE + INTEGRAL_TYPES + COMPLEX_TYPES
# numpy's type stubs reject a `keepdims` that is not a literal.
Reduce = Callable[..., np.ndarray]
add_reduce: Reduce = np.add.reduce
multiply_reduce: Reduce = np.multiply.reduce
maximum_reduce: Reduce = np.maximum.reduce
minimum_reduce: Reduce = np.minimum.reduce
and_reduce: Reduce = np.logical_and.reduce
or_reduce: Reduce = np.logical_or.reduce
FOLDED_SIZE = 64  # elements; shorter rows are multiplied faster one by one than by folding
ARG_MAX_RANK = 7  # TensorFlow's largest rank for ArgMax and ArgMin


@functools.lru_cache(maxsize=4096)
def _checked_axes(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """The axes as sorted numbers in [0, rank).

    Raises InvalidArgumentError for an axis out of range or named twice.
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


def _axes_of(input: np.ndarray, reduction_indices: np.ndarray) -> tuple[int, ...]:
    return _checked_axes(tuple(reduction_indices.ravel().tolist()), input.ndim)


def _reduction(reduce: Reduce) -> Reduce:
    """A kernel from `reduce(input, axes, keep_dims)`; without axes it returns the input."""

    def kernel(input: np.ndarray, reduction_indices: np.ndarray, *, keep_dims: bool) -> np.ndarray:
        axes = _axes_of(input, reduction_indices)
        return reduce(input, axes, keep_dims) if axes else input

    kernel.__name__ = kernel.__qualname__ = reduce.__name__
    return kernel


def _in_float32(reduce: Reduce) -> Reduce:
    """`reduce` for half-precision input: computed in float32 and rounded once."""

    def wide(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
        return reduce(input.astype(np.float32), axes, keep_dims).astype(input.dtype)

    wide.__name__ = wide.__qualname__ = reduce.__name__
    return wide


def reduce_sum(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """Sum: the sum in the input's dtype; integers wrap around."""
    return add_reduce(input, axis=axes, keepdims=keep_dims, dtype=input.dtype)


def reduce_prod(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """Prod: the product in the input's dtype; integers wrap around."""
    if axes == tuple(range(input.ndim - len(axes), input.ndim)) and input.size > FOLDED_SIZE:
        kept = input.shape[: input.ndim - len(axes)]
        input = _folded(input.reshape(*kept, -1))
        result = multiply_reduce(input, axis=-1, dtype=input.dtype)
        return result.reshape(*kept, *(1,) * len(axes)) if keep_dims else result
    return multiply_reduce(input, axis=axes, keepdims=keep_dims, dtype=input.dtype)


def _folded(rows: np.ndarray) -> np.ndarray:
    """Rows of at most FOLDED_SIZE elements with the same products as `rows` `[…, n]`.

    Each round multiplies the two halves of a row elementwise, which numpy vectorises; its `reduce`
    along a row multiplies one element after the other.
    """
    while rows.shape[-1] > FOLDED_SIZE:
        half = rows.shape[-1] // 2
        product = np.multiply(rows[..., :half], rows[..., half : 2 * half])
        if rows.shape[-1] % 2:
            product[..., 0] *= rows[..., -1]
        rows = product
    return rows


def reduce_mean(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """Mean: the mean of floating-point or complex numbers; NaN over no elements."""
    total = add_reduce(input, axis=axes, keepdims=keep_dims)
    count = math.prod(input.shape[axis] for axis in axes)
    if count == 0 and input.dtype.kind == "c":
        return total  # TensorFlow's complex mean over no elements is 0
    return np.divide(total, input.dtype.type(count))


def reduce_integer_mean(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """Mean: the mean of integers, summed in 64 bits, rounded toward zero; 0 over no elements."""
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


def _lowest(dtype: np.dtype) -> np.generic | int:
    return dtype.type(-np.inf) if is_floating(dtype) else np.iinfo(dtype).min


def _highest(dtype: np.dtype) -> np.generic | int:
    return dtype.type(np.inf) if is_floating(dtype) else np.iinfo(dtype).max


def is_floating(dtype: np.dtype) -> bool:
    """Whether the dtype is a floating-point type of 16 bits or more."""
    return dtype.kind == "f" or dtype == ml_dtypes.bfloat16


def reduce_max(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """Max: the largest element; the dtype's lowest value over no elements."""
    if input.size:
        return maximum_reduce(input, axis=axes, keepdims=keep_dims)
    return maximum_reduce(input, axis=axes, keepdims=keep_dims, initial=_lowest(input.dtype))


def reduce_min(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """Min: the smallest element; the dtype's highest value over no elements."""
    if input.size:
        return minimum_reduce(input, axis=axes, keepdims=keep_dims)
    return minimum_reduce(input, axis=axes, keepdims=keep_dims, initial=_highest(input.dtype))


def reduce_all(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """All: whether all elements are true."""
    return and_reduce(input, axis=axes, keepdims=keep_dims)


def reduce_any(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """Any: whether at least one element is true."""
    return or_reduce(input, axis=axes, keepdims=keep_dims)


def reduce_euclidean_norm(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """EuclideanNorm: sqrt(sum(|x|²)), computed in the input's dtype."""
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


def euclidean_norm(
    input: np.ndarray, reduction_indices: np.ndarray, *, keep_dims: bool
) -> np.ndarray:
    """EuclideanNorm: sqrt(sum(|x|²)); without axes the absolute values."""
    return reduce_euclidean_norm(input, _axes_of(input, reduction_indices), keep_dims)


def half_euclidean_norm(
    input: np.ndarray, reduction_indices: np.ndarray, *, keep_dims: bool
) -> np.ndarray:
    """EuclideanNorm of half-precision input, computed in float32."""
    axes = _axes_of(input, reduction_indices)
    return reduce_euclidean_norm(input.astype(np.float32), axes, keep_dims).astype(input.dtype)


def l2_loss(t: np.ndarray) -> np.ndarray:
    """L2Loss: sum(t²) / 2."""
    flat = np.ravel(t)
    return np.multiply(np.dot(flat, flat), t.dtype.type(0.5))


def half_l2_loss(t: np.ndarray) -> np.ndarray:
    """L2Loss of a half-precision tensor, summed in float32."""
    return l2_loss(t.astype(np.float32)).astype(t.dtype)


def _arg_axis(input: np.ndarray, dimension: np.ndarray) -> int:
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
    """ArgMax or ArgMin; `loser` replaces NaN, which TensorFlow's comparisons ignore."""

    def kernel(input: np.ndarray, dimension: np.ndarray, *, output_type: DataType) -> np.ndarray:
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
