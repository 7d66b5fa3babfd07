"""XlaConv and XlaConvV2: convolutions in any number of dimensions, dilated, strided, in groups.

The kernel's places are taken one by one, so that no copy of all windows is made.

TF: tensorflow/compiler/tf2xla/kernels/xla_conv_op.cc
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.kernels.xla.attributes import (
    MIXED_TYPES,
    TYPES,
    check_dimensions,
    dimension_numbers_of,
)
from runtime.kernels.xla.contractions import converted, multiplied_in
from runtime.kernels.xla.windows import Windows, padded, windows_of


def _convolution(
    lhs: np.ndarray, rhs: np.ndarray, windows: Windows, groups: int, dtype: np.dtype
) -> np.ndarray:
    """Return [batch, features, …] for lhs [batch, channels, …] and rhs [features, channels, …]."""
    batch, channels, *sizes = lhs.shape
    features = rhs.shape[0]
    counts = windows.counts(sizes)
    wide = multiplied_in(lhs, rhs, dtype)
    no_edges = [(0, 0), (0, 0)]
    interior = [0, 0, *windows.interior()]
    whole = padded(converted(lhs, wide), np.zeros((), wide), [*no_edges, *windows.edges], interior)
    kernel = converted(rhs, wide).reshape(groups, features // max(groups, 1), *rhs.shape[1:])
    result = np.zeros((batch, groups, features // groups, math.prod(counts)), wide)
    flat_kernel = kernel.reshape(*kernel.shape[:3], -1)
    if result.size:
        for number, place in enumerate(windows.places(counts)):
            part = whole[(slice(None), slice(None), *place)]
            rows = part.reshape(batch, groups, channels // groups, -1)
            result += np.matmul(flat_kernel[..., number], rows)
    return converted(result.reshape(batch, features, *counts), dtype)


def _groups_of(count: np.ndarray) -> int:
    if np.ndim(count) or int(count) < 1:
        raise InvalidArgumentError(
            f"feature_group_count must be a positive scalar, got {np.asarray(count).tolist()}"
        )
    return int(count)


def _orders(
    text: str, rank: int
) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:  # fmt: skip
    """Return for input, kernel and output which dimensions are [batch, channels, …]."""
    numbers = dimension_numbers_of(pb.ConvolutionDimensionNumbers, text)
    orders = (
        [numbers.input_batch_dimension, numbers.input_feature_dimension,
         *numbers.input_spatial_dimensions],
        [numbers.kernel_output_feature_dimension, numbers.kernel_input_feature_dimension,
         *numbers.kernel_spatial_dimensions],
        [numbers.output_batch_dimension, numbers.output_feature_dimension,
         *numbers.output_spatial_dimensions],
    )  # fmt: skip
    for order in orders:
        if len(order) != rank:
            raise InvalidArgumentError(
                f"dimension_numbers has {len(order)} dimensions for tensors of rank {rank}"
            )
        check_dimensions("dimension_numbers", order, rank)
    return orders


def xla_conv_v2(
    lhs: np.ndarray,
    rhs: np.ndarray,
    window_strides: np.ndarray,
    padding: np.ndarray,
    lhs_dilation: np.ndarray,
    rhs_dilation: np.ndarray,
    feature_group_count: np.ndarray,
    *,
    dimension_numbers: str,
    preferred_element_type: DataType,
    batch_group_count: int,
) -> np.ndarray:
    """XlaConvV2: the kernel is not reversed; `dimension_numbers` says what each dimension is."""
    return _conv(
        (np.asarray(lhs), np.asarray(rhs)),
        (window_strides, padding, lhs_dilation, rhs_dilation),
        dimension_numbers,
        (_groups_of(feature_group_count), batch_group_count),
        preferred_element_type.numpy,
    )


def xla_conv(
    lhs: np.ndarray,
    rhs: np.ndarray,
    window_strides: np.ndarray,
    padding: np.ndarray,
    lhs_dilation: np.ndarray,
    rhs_dilation: np.ndarray,
    feature_group_count: np.ndarray,
    *,
    dimension_numbers: str,
) -> np.ndarray:
    """XlaConv: XlaConvV2 in the type of the inputs, without groups of the batch."""
    return _conv(
        (np.asarray(lhs), np.asarray(rhs)),
        (window_strides, padding, lhs_dilation, rhs_dilation),
        dimension_numbers,
        (_groups_of(feature_group_count), 1),
        np.asarray(lhs).dtype,
    )


def _conv(
    arrays: tuple[np.ndarray, np.ndarray],
    moves: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    text: str,
    groups: tuple[int, int],
    dtype: np.dtype,
) -> np.ndarray:
    lhs, rhs = arrays
    if lhs.ndim != rhs.ndim or lhs.ndim < 2:
        raise InvalidArgumentError(
            f"lhs and rhs must have the same rank, at least 2, got {lhs.ndim} and {rhs.ndim}"
        )
    of_input, of_kernel, of_output = _orders(text, lhs.ndim)
    lhs, rhs = lhs.transpose(of_input), rhs.transpose(of_kernel)
    strides, edges, lhs_dilation, rhs_dilation = moves
    windows = windows_of(
        lhs.ndim - 2, np.array(rhs.shape[2:]), strides, edges, lhs_dilation, rhs_dilation
    )
    _check_groups(lhs.shape, rhs.shape, *groups)
    parts = zip(np.split(lhs, groups[1]), np.split(rhs, groups[1]), strict=True)
    result = np.concatenate([_convolution(a, b, windows, groups[0], dtype) for a, b in parts], 1)
    return np.ascontiguousarray(result.transpose(np.argsort(of_output)))


def _check_groups(
    lhs: tuple[int, ...], rhs: tuple[int, ...], groups: int, batch_groups: int
) -> None:
    fits = (
        batch_groups >= 1
        and (groups == 1 or batch_groups == 1)
        and lhs[1] == rhs[1] * groups
        and rhs[0] % (groups * batch_groups) == 0
        and lhs[0] % batch_groups == 0
    )
    if not fits:
        raise InvalidArgumentError(
            f"{lhs[1]} channels of {lhs[0]} rows do not fit a kernel of {rhs[1]} channels and "
            f"{rhs[0]} features in {groups} feature groups and {batch_groups} batch groups"
        )


KERNELS = (
    KernelDef("XlaConv", xla_conv, {"T": TYPES}, expensive=True),
    KernelDef("XlaConvV2", xla_conv_v2, MIXED_TYPES, expensive=True),
)
