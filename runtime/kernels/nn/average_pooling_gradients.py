"""Gradients of average pooling.

TF: tensorflow/core/kernels/avgpooling_op.cc, pooling_ops_3d.cc
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, UnimplementedError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import FLOAT_TYPES
from runtime.framework.shapes import shape_text
from runtime.kernels.math.accumulation import accumulation_dtype
from runtime.kernels.nn.pooling import check_batch, check_depth, pooled_dimensions
from runtime.kernels.nn.window import (
    WindowedDimension,
    channel_axis,
    from_channels_last,
    spatial_values,
    to_channels_last,
)


def avg_pool_grad(
    orig_input_shape: np.ndarray,
    grad: np.ndarray,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str,
) -> np.ndarray:
    """AvgPoolGrad: return the gradient of average pooling with respect to the input.

    Each element of `grad` is divided evenly among the elements of its window. The result has the
    shape `orig_input_shape`.
    """
    rank = len(data_format)
    if rank == 5 and min(ksize) <= 0:
        first = next(size for size in ksize if size <= 0)
        raise InvalidArgumentError(f"ksize must be positive, got: {first}")
    check_batch(ksize, strides)
    if rank == 5:
        check_depth(ksize, strides, data_format, "Pooling")
    shape = _input_shape(orig_input_shape, grad, rank)
    check_allocation(shape, grad.dtype)
    if rank == 4 and 0 in shape:
        return np.zeros(shape, grad.dtype)
    if ksize[channel_axis(data_format)] != 1 and rank == 4:
        raise UnimplementedError("Non-spatial pooling is not yet supported. Volunteers? :)")
    dimensions = pooled_dimensions(shape, ksize, strides, padding, (), data_format)
    if rank == 5 and grad.shape[0] != shape[0]:
        raise InvalidArgumentError(
            "Expected first dimension of tensor_in_shape and out_backprop to match, got "
            f"{shape[0]} and {grad.shape[0]}"
        )
    spatial = spatial_values(grad.shape, data_format)
    _check_grad_shape(grad, shape, dimensions, data_format)
    if 0 in grad.shape:
        return np.zeros(shape, grad.dtype)
    result = to_channels_last(grad, data_format).astype(accumulation_dtype(grad.dtype))
    for axis, (count, each) in enumerate(zip(spatial, dimensions, strict=True), start=1):
        result = _distribute(result, axis, each, *_window_bounds(count, each, whole=rank == 4))
    missing = shape[0] - len(result)
    if missing:
        result = np.pad(result, ((0, missing), *((0, 0),) * (rank - 1)))
    return from_channels_last(result.astype(grad.dtype, copy=False), data_format)


def _input_shape(orig_input_shape: np.ndarray, grad: np.ndarray, rank: int) -> list[int]:
    if orig_input_shape.ndim != 1 or orig_input_shape.size != rank:
        name = "tensor_in" if rank == 5 else "out_backprop"
        raise InvalidArgumentError(f"{name} must be 1-dimensional and {rank} elements")
    if grad.ndim != rank:
        raise InvalidArgumentError(f"out_backprop must be {rank}-dimensional")
    shape = [int(size) for size in orig_input_shape]
    for size in shape:
        if size < 0:
            raise InvalidArgumentError(f"Expected a non-negative size, got {size}")
    return shape


def _check_grad_shape(
    grad: np.ndarray,
    shape: Sequence[int],
    dimensions: Sequence[WindowedDimension],
    data_format: str,
) -> None:
    """Raise InvalidArgumentError unless `grad` has the shape that pooling would produce.

    In 2-D, TensorFlow also accepts a smaller gradient; missing elements contribute nothing.
    """
    spatial, axis = spatial_values(grad.shape, data_format), channel_axis(data_format)
    others = [(grad.shape[each], shape[each]) for each in (0, axis)]
    if list(spatial) == [each.output for each in dimensions] and all(a == b for a, b in others):
        return
    if len(shape) == 4:
        _check_window_bounds(len(grad), spatial, shape, dimensions)
        (images, most), (depth, wanted) = others
        if 0 in (images, *spatial) or (images <= most and depth == wanted):
            return
    raise InvalidArgumentError(
        f"grad of shape {shape_text(grad.shape)} does not fit an input of shape {shape_text(shape)}"
    )


def _check_window_bounds(
    images: int,
    spatial: Sequence[int],
    shape: Sequence[int],
    dimensions: Sequence[WindowedDimension],
) -> None:
    """Raise InvalidArgumentError if TensorFlow's bounds check of 2-D pooling raises it.

    That check is made only for the windows of the last image, with flat indices that ignore the
    channels.
    """
    index, outside = np.array(images - 1), np.array(False)
    for count, each in zip(spatial, dimensions, strict=True):
        begin, end = _window_bounds(count, each, whole=True)
        index = index[..., np.newaxis] * each.input + end - 1
        outside = outside[..., np.newaxis] | (begin + each.pad_before > each.input)
    refused = np.flatnonzero(outside | (index >= math.prod(shape)))
    if not refused.size:
        return
    if outside.item(refused[0]):
        raise InvalidArgumentError("index * stride must be less than or equal to input size")
    raise InvalidArgumentError(
        f"Output only has {math.prod(shape)} elements but computation requested would use "
        f"element with index={index.item(refused[0])}"
    )


def _window_bounds(
    count: int, dimension: WindowedDimension, whole: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the begin and the end of the first `count` windows, in input elements.

    A begin is negative if the window begins in the padding. If `whole` is true, ends follow
    TensorFlow's rule for 2-D pooling: the full window size is counted from the first element inside
    the input, and if that would exceed the input, the window ends where the input ends.
    """
    begin = np.arange(count) * dimension.stride - dimension.pad_before
    end = np.minimum(begin + dimension.window, dimension.input)
    if whole:
        beyond = np.maximum(begin, 0) + dimension.window > dimension.input
        end = np.where(beyond, dimension.input, end)
    return begin, end


def _distribute(
    gradient: np.ndarray,
    axis: int,
    dimension: WindowedDimension,
    begin: np.ndarray,
    end: np.ndarray,
) -> np.ndarray:
    """Divide the gradient of each output along `axis` evenly among the inputs of its window.

    Window i covers the inputs from `begin[i]` to `end[i]`, which is excluded.
    """
    sizes = np.maximum(end - np.maximum(begin, 0), 1).astype(gradient.dtype)
    shares = gradient / sizes.reshape(-1, *(1,) * (gradient.ndim - 1 - axis))
    shape = (*gradient.shape[:axis], dimension.input, *gradient.shape[axis + 1 :])
    result = np.zeros(shape, gradient.dtype)
    before = (slice(None),) * axis
    # Window positions that cover only padding are skipped.
    for tap in range(max(0, -int(begin[-1])), int((end - begin).max())):
        chosen = np.flatnonzero((begin + tap >= 0) & (begin + tap < end))
        if chosen.size:
            outputs = slice(int(chosen[0]), int(chosen[-1]) + 1)
            inputs = begin[outputs] + tap
            places = slice(int(inputs[0]), int(inputs[-1]) + 1, dimension.stride)
            result[(*before, places)] += shares[(*before, outputs)]
    return result


KERNELS = (
    KernelDef("AvgPool3DGrad", avg_pool_grad, {"T": (DataType.BFLOAT16, DataType.FLOAT)}),
    KernelDef("AvgPoolGrad", avg_pool_grad, {"T": FLOAT_TYPES}),
)
