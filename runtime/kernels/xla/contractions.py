"""XlaDot, XlaDotV2 and XlaEinsum: products of two tensors, summed over dimensions.

TF: tensorflow/compiler/tf2xla/kernels/xla_dot_op.cc, einsum_op.cc
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.op_kernel import KernelDef
from runtime.kernels.linalg.einsum import einsum
from runtime.kernels.math.casts import cast
from runtime.kernels.xla.attributes import (
    MIXED_TYPES,
    TYPES,
    check_dimensions,
    dimension_numbers_of,
    others,
)


def summed_in(dtype: np.dtype) -> np.dtype:
    """Return the type in which products are summed: float32 for narrower floating point."""
    is_narrow = dtype.kind not in "iub" and dtype.itemsize <= 2
    return np.dtype(np.float32) if is_narrow else dtype


def multiplied_in(lhs: np.ndarray, rhs: np.ndarray, dtype: np.dtype) -> np.dtype:
    """Return the type in which products are made and summed whose type is `dtype`.

    That is `dtype`, or the type of the inputs if `dtype` can't hold all its numbers.
    """
    own = max(lhs.dtype, rhs.dtype, key=lambda each: ("buifVc".index(each.kind), each.itemsize))
    return summed_in(dtype if np.can_cast(own, dtype) else own)


def converted(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return numbers in another type; complex ones lose their imaginary part in a real one.

    A number that an integer type can't hold becomes its nearest, NaN becomes 0.
    """
    if array.dtype.kind not in "iub" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        whole = np.trunc(array.real.astype(np.float64))
        held = np.where(whole < float(limits.max), np.nan_to_num(whole), 0.0)
        converted = np.maximum(held, float(limits.min)).astype(dtype)
        return np.where(whole >= float(limits.max), dtype.type(limits.max), converted)
    source, target = from_numpy(array.dtype), from_numpy(dtype)
    return np.asarray(cast(array, SrcT=source, DstT=target, Truncate=False))


def _dot(lhs: np.ndarray, rhs: np.ndarray, text: str, dtype: np.dtype) -> np.ndarray:
    """Return batch dimensions, then those of `lhs` and of `rhs` that are not summed over."""
    numbers = dimension_numbers_of(pb.DotDimensionNumbers, text)
    batch = list(numbers.lhs_batch_dimensions), list(numbers.rhs_batch_dimensions)
    summed = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
    _check(lhs, rhs, batch, summed)
    free = others(lhs.ndim, batch[0], summed[0]), others(rhs.ndim, batch[1], summed[1])
    sizes = [lhs.shape[each] for each in batch[0]]
    rows, columns = ([a.shape[i] for i in f] for a, f in zip((lhs, rhs), free, strict=True))
    inner = math.prod(lhs.shape[each] for each in summed[0])
    wide = multiplied_in(lhs, rhs, dtype)
    left = converted(lhs.transpose([*batch[0], *free[0], *summed[0]]), wide)
    right = converted(rhs.transpose([*batch[1], *summed[1], *free[1]]), wide)
    product = np.matmul(
        left.reshape(math.prod(sizes), math.prod(rows), inner),
        right.reshape(math.prod(sizes), inner, math.prod(columns)),
    )
    return converted(product.reshape([*sizes, *rows, *columns]), dtype)


def _check(
    lhs: np.ndarray,
    rhs: np.ndarray,
    batch: tuple[Sequence[int], Sequence[int]],
    summed: tuple[Sequence[int], Sequence[int]],
) -> None:
    for side, array in enumerate((lhs, rhs)):
        dims = [*batch[side], *summed[side]]
        check_dimensions("Batch and contracting dimensions", dims, array.ndim)
    for left, right in (batch, summed):
        if [lhs.shape[each] for each in left] != [rhs.shape[each] for each in right]:
            raise InvalidArgumentError(
                f"Dimensions {list(left)} of {list(lhs.shape)} and {list(right)} of "
                f"{list(rhs.shape)} must have the same sizes"
            )


def xla_dot(lhs: np.ndarray, rhs: np.ndarray, *, dimension_numbers: str) -> np.ndarray:
    """XlaDot: the product in the type of its inputs."""
    lhs, rhs = np.asarray(lhs), np.asarray(rhs)
    return _dot(lhs, rhs, dimension_numbers, lhs.dtype)


def xla_dot_v2(
    lhs: np.ndarray,
    rhs: np.ndarray,
    *,
    dimension_numbers: str,
    preferred_element_type: DataType,
) -> np.ndarray:
    """XlaDotV2: the product in a type of its own."""
    return _dot(np.asarray(lhs), np.asarray(rhs), dimension_numbers, preferred_element_type.numpy)


def xla_einsum(a: np.ndarray, b: np.ndarray, *, equation: str) -> np.ndarray:
    """XlaEinsum: Einstein's sum of two tensors."""
    if summed_in(a.dtype) == a.dtype:
        return einsum(a, b, equation=equation)
    wide = summed_in(a.dtype)
    return einsum(a.astype(wide), b.astype(wide), equation=equation).astype(a.dtype)


KERNELS = (
    KernelDef("XlaDot", xla_dot, {"T": TYPES}, expensive=True),
    KernelDef("XlaDotV2", xla_dot_v2, MIXED_TYPES, expensive=True),
    KernelDef("XlaEinsum", xla_einsum, expensive=True),
)
