"""Kernels of reductions over axes; ArgMax and ArgMin return the index of an extreme element.

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
# This type is declared because numpy's stubs reject a `keepdims` that is not a literal.
Reduce = Callable[..., np.ndarray]
add_reduce: Reduce = np.add.reduce
multiply_reduce: Reduce = np.multiply.reduce
maximum_reduce: Reduce = np.maximum.reduce
minimum_reduce: Reduce = np.minimum.reduce
and_reduce: Reduce = np.logical_and.reduce
or_reduce: Reduce = np.logical_or.reduce
FOLDED_SIZE = 64  # elements; for shorter rows `reduce` is faster than folding
ARG_MAX_RANK = 7  # TensorFlow's largest rank for ArgMax and ArgMin


@functools.lru_cache(maxsize=4096)
def _checked_axes(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Return `axes` as sorted numbers in [0, rank).

    Raises InvalidArgumentError if an axis is out of range or occurs twice.
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
    """Return a kernel that calls `reduce(input, axes, keep_dims)`.

    If there are no axes, the kernel returns its input.
    """

    def kernel(input: np.ndarray, reduction_indices: np.ndarray, *, keep_dims: bool) -> np.ndarray:
        axes = _axes_of(input, reduction_indices)
        return reduce(input, axes, keep_dims) if axes else input

    kernel.__name__ = kernel.__qualname__ = reduce.__name__
    return kernel


def _in_float32(reduce: Reduce) -> Reduce:
    """Return a function that computes `reduce` of half-precision input in float32.

    The result is rounded to half precision once.
    """

    def wide(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
        return reduce(input.astype(np.float32), axes, keep_dims).astype(input.dtype)

    wide.__name__ = wide.__qualname__ = reduce.__name__
    return wide


def reduce_sum(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """Sum: return the sum over `axes` in the dtype of `input`; integers wrap around."""
    return add_reduce(input, axis=axes, keepdims=keep_dims, dtype=input.dtype)


def reduce_prod(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """Prod: return the product over `axes` in the dtype of `input`; integers wrap around."""
    if axes == tuple(range(input.ndim - len(axes), input.ndim)) and input.size > FOLDED_SIZE:
        kept = input.shape[: input.ndim - len(axes)]
        input = _folded(input.reshape(*kept, -1))
        result = multiply_reduce(input, axis=-1, dtype=input.dtype)
        return result.reshape(*kept, *(1,) * len(axes)) if keep_dims else result
    return multiply_reduce(input, axis=axes, keepdims=keep_dims, dtype=input.dtype)


def _folded(rows: np.ndarray) -> np.ndarray:
    """Return rows of at most FOLDED_SIZE elements that have the same products as `rows` `[…, n]`.

    Each round multiplies the two halves of a row elementwise, which numpy vectorises. `reduce`
    along a row would multiply one element after the other.
    """
    while rows.shape[-1] > FOLDED_SIZE:
        half = rows.shape[-1] // 2
        product = np.multiply(rows[..., :half], rows[..., half : 2 * half])
        if rows.shape[-1] % 2:
            product[..., 0] *= rows[..., -1]
        rows = product
    return rows


def reduce_mean(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """Mean: return the mean of floating-point or complex numbers over `axes`.

    Over no elements it is NaN for floating-point and 0 for complex numbers.
    """
    total = add_reduce(input, axis=axes, keepdims=keep_dims)
    count = math.prod(input.shape[axis] for axis in axes)
    if count == 0 and input.dtype.kind == "c":
        return total  # complex: 0, as in TensorFlow
    return np.divide(total, input.dtype.type(count))


def reduce_integer_mean(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """Mean of integers: return the mean over `axes`, rounded toward zero.

    The sum is computed in 64 bits. The mean over no elements is 0.
    """
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
    """Return whether `dtype` is a floating-point type of 16 bits or more."""
    return dtype.kind == "f" or dtype == ml_dtypes.bfloat16


def reduce_max(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """Max: return the largest element over `axes`.

    Over no elements it is the lowest value of the dtype.
    """
    if input.size:
        return maximum_reduce(input, axis=axes, keepdims=keep_dims)
    return maximum_reduce(input, axis=axes, keepdims=keep_dims, initial=_lowest(input.dtype))


def reduce_min(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """Min: return the smallest element over `axes`.

    Over no elements it is the highest value of the dtype.
    """
    if input.size:
        return minimum_reduce(input, axis=axes, keepdims=keep_dims)
    return minimum_reduce(input, axis=axes, keepdims=keep_dims, initial=_highest(input.dtype))


def reduce_all(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """All: return whether all elements over `axes` are true."""
    return and_reduce(input, axis=axes, keepdims=keep_dims)


def reduce_any(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """Any: return whether at least one element over `axes` is true."""
    return or_reduce(input, axis=axes, keepdims=keep_dims)


def reduce_euclidean_norm(input: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    """Return sqrt(sum(|x|²)) over `axes`, computed in the dtype of `input`."""
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
    """EuclideanNorm: return sqrt(sum(|x|²)) over the axes `reduction_indices`.

    If there are no axes, the result is the absolute values.
    """
    return reduce_euclidean_norm(input, _axes_of(input, reduction_indices), keep_dims)


def half_euclidean_norm(
    input: np.ndarray, reduction_indices: np.ndarray, *, keep_dims: bool
) -> np.ndarray:
    """EuclideanNorm of half-precision input: compute `euclidean_norm` in float32."""
    axes = _axes_of(input, reduction_indices)
    return reduce_euclidean_norm(input.astype(np.float32), axes, keep_dims).astype(input.dtype)


def l2_loss(t: np.ndarray) -> np.ndarray:
    """L2Loss: return sum(t²) / 2."""
    flat = np.ravel(t)
    return np.multiply(np.dot(flat, flat), t.dtype.type(0.5))


def half_l2_loss(t: np.ndarray) -> np.ndarray:
    """L2Loss of a half-precision tensor: compute `l2_loss` in float32."""
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
    """Return the kernel of ArgMax or ArgMin.

    `loser` replaces NaN before `find` is called, because TensorFlow's comparisons ignore NaN.
    """

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
