"""Gradients of maximum pooling.

TF: tensorflow/core/kernels/maxpooling_op.cc, pooling_ops_3d.cc
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import REAL_NUMBER_TYPES
from runtime.framework.shapes import shape_text
from runtime.kernels.math.accumulation import accumulation_dtype
from runtime.kernels.nn.pooling import (
    check_batch,
    check_depth,
    check_strides,
    check_strides_and_depth,
    check_window,
    pooled_dimensions,
    vector_of_four,
)
from runtime.kernels.nn.pooling_argmax import largest_in_windows
from runtime.kernels.nn.window import (
    WindowedDimension,
    channel_axis,
    from_channels_last,
    to_channels_last,
)


def _check_gradient_shapes(
    names: Sequence[str], tensors: Sequence[np.ndarray], data_format: str
) -> None:
    rank = len(data_format)
    for name, tensor in zip(names, tensors, strict=True):
        if tensor.ndim != rank:
            raise InvalidArgumentError(f"{name} must be {rank}-dimensional")


def _expect_shape(name: str, tensor: np.ndarray, shape: Sequence[int]) -> None:
    if tensor.shape != tuple(shape):
        raise InvalidArgumentError(
            f"Expected {name} shape to be {shape_text(shape)}, but got {shape_text(tensor.shape)}"
        )


def _output_shape(
    shape: Sequence[int], dimensions: Sequence[WindowedDimension], data_format: str
) -> tuple[int, ...]:
    sizes = [shape[0], *(each.output for each in dimensions)]
    sizes.insert(channel_axis(data_format), shape[channel_axis(data_format)])
    return tuple(sizes)


def _check_windows(
    ksize: Sequence[int], strides: Sequence[int], data_format: str, what: str
) -> None:
    """Raise UnimplementedError if a window or stride over batch or channels is not 1.

    `what` names the op in the message.
    """
    check_batch(ksize, strides)
    check_depth(ksize, strides, data_format, what)


_INPUTS = ("tensor_in", "tensor_out", "out_backprop")
_SECOND_GRADIENT_INPUTS = ("tensor_in", "tensor_out", "out_grad_backprop")


def max_pool_grad(
    orig_input: np.ndarray,
    orig_output: np.ndarray,
    grad: np.ndarray,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
) -> np.ndarray:
    """MaxPoolGrad: return the gradient of MaxPool with respect to `orig_input`.

    Each element of `grad` is added at the first maximum of its window.
    """
    _check_windows(ksize, strides, data_format, "MaxPoolingGrad")
    _check_gradient_shapes(_INPUTS, (orig_input, orig_output, grad), data_format)
    dimensions = pooled_dimensions(
        orig_input.shape, ksize, strides, padding, explicit_paddings, data_format
    )
    expected = _output_shape(orig_input.shape, dimensions, data_format)
    _expect_shape("orig_output", orig_output, expected)
    _expect_shape("grad", grad, expected)
    x = to_channels_last(orig_input, data_format)
    index = _flat_index(x, dimensions)
    result = scatter_add(to_channels_last(grad, data_format), index, x.shape)
    return from_channels_last(result, data_format)


def _flat_index(x: np.ndarray, dimensions: Sequence[WindowedDimension]) -> np.ndarray:
    """Return the index of each window's maximum in the flattened channels-last `x`."""
    _, position = largest_in_windows(x, dimensions)
    first = np.arange(x.shape[0]).reshape(-1, *(1,) * (x.ndim - 1)) * math.prod(x.shape[1:])
    return first + position * x.shape[-1] + np.arange(x.shape[-1])


def scatter_add(values: np.ndarray, index: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Return a tensor of `shape`: zeros, to which `values` are added at flat positions `index`."""
    total = np.zeros(math.prod(shape), accumulation_dtype(values.dtype))
    np.add.at(total, index.ravel(), values.ravel().astype(total.dtype, copy=False))
    return total.astype(values.dtype, copy=False).reshape(shape)


def max_pool_grad_v2(
    orig_input: np.ndarray,
    orig_output: np.ndarray,
    grad: np.ndarray,
    ksize: np.ndarray,
    strides: np.ndarray,
    *,
    padding: str,
    data_format: str,
) -> np.ndarray:
    """MaxPoolGradV2: compute MaxPoolGrad; `ksize` and `strides` are int32 tensors of 4 elements."""
    _check_gradient_shapes(_INPUTS, (orig_input, orig_output, grad), data_format)
    return max_pool_grad(
        orig_input,
        orig_output,
        grad,
        ksize=vector_of_four("ksize", ksize),
        strides=vector_of_four("strides", strides),
        padding=padding,
        explicit_paddings=(),
        data_format=data_format,
    )


def max_pool_grad_with_argmax(
    x: np.ndarray,
    grad: np.ndarray,
    argmax: np.ndarray,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    include_batch_in_index: bool,
) -> np.ndarray:
    """MaxPoolGradWithArgmax: return the gradient of MaxPoolWithArgmax with respect to `x`.

    Each element of `grad` is added at its position in `argmax`. Raises InvalidArgumentError if a
    position is outside of its image.
    """
    check_window(ksize)
    dimensions = pooled_dimensions(x.shape, ksize, strides, padding, (), "NHWC")
    expected = _output_shape(x.shape, dimensions, "NHWC")
    _expect_shape("grad", grad, expected)
    _expect_shape("argmax", argmax, expected)
    per_image = math.prod(x.shape[1:])
    images = np.arange(x.shape[0]).reshape(-1, 1, 1, 1) * per_image
    index = argmax.astype(np.int64) + (0 if include_batch_in_index else images)
    inside = (index >= images) & (index < images + per_image)
    if not inside.all():
        raise InvalidArgumentError(
            f"argmax holds {argmax[~inside][0]}, which is outside of its image of "
            f"{per_image} elements"
        )
    return scatter_add(grad, index, x.shape)


def max_pool_grad_grad(
    orig_input: np.ndarray,
    orig_output: np.ndarray,
    grad: np.ndarray,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str,
) -> np.ndarray:
    """MaxPoolGradGrad: return the gradient of MaxPoolGrad with respect to its `grad`.

    For each window, that is the element of this op's `grad` at the first maximum of the window.
    """
    check_strides_and_depth(strides)
    _check_windows(ksize, strides, data_format, "MaxPoolingGradGrad")
    return _second_gradient(orig_input, orig_output, grad, ksize, strides, padding, data_format)


def max_pool_3d_grad_grad(
    orig_input: np.ndarray,
    orig_output: np.ndarray,
    grad: np.ndarray,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str,
) -> np.ndarray:
    """MaxPool3DGradGrad: compute MaxPoolGradGrad over three spatial dimensions."""
    check_strides(strides, data_format)
    _check_windows(ksize, strides, data_format, "MaxPooling3dGradGrad")
    return _second_gradient(orig_input, orig_output, grad, ksize, strides, padding, data_format)


def _second_gradient(
    orig_input: np.ndarray,
    orig_output: np.ndarray,
    grad: np.ndarray,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str,
) -> np.ndarray:
    _check_gradient_shapes(_SECOND_GRADIENT_INPUTS, (orig_input, orig_output, grad), data_format)
    dimensions = pooled_dimensions(orig_input.shape, ksize, strides, padding, (), data_format)
    _expect_shape(
        "orig_output", orig_output, _output_shape(orig_input.shape, dimensions, data_format)
    )
    _expect_shape("grad", grad, orig_input.shape)
    x, largest, gradient = (
        to_channels_last(each, data_format) for each in (orig_input, orig_output, grad)
    )
    chosen = np.zeros(largest.shape, grad.dtype)
    for taps in reversed(list(itertools.product(*(each.taps() for each in dimensions)))):
        overlaps = [each.overlap(tap) for each, tap in zip(dimensions, taps, strict=True)]
        outputs = (slice(None), *(pair[0] for pair in overlaps))
        inputs = (slice(None), *(pair[1] for pair in overlaps))
        np.copyto(chosen[outputs], gradient[inputs], where=x[inputs] == largest[outputs])
    return from_channels_last(chosen, data_format)


def max_pool_grad_grad_v2(
    orig_input: np.ndarray,
    orig_output: np.ndarray,
    grad: np.ndarray,
    ksize: np.ndarray,
    strides: np.ndarray,
    *,
    padding: str,
    data_format: str,
) -> np.ndarray:
    """MaxPoolGradGradV2: compute MaxPoolGradGrad.

    `ksize` and `strides` are int32 tensors of 4 elements.
    """
    _check_gradient_shapes(_SECOND_GRADIENT_INPUTS, (orig_input, orig_output, grad), data_format)
    sizes, steps = vector_of_four("ksize", ksize), vector_of_four("strides", strides)
    _check_windows(sizes, steps, data_format, "MaxPoolingGrad")
    return _second_gradient(orig_input, orig_output, grad, sizes, steps, padding, data_format)


def max_pool_3d_grad(
    orig_input: np.ndarray,
    orig_output: np.ndarray,
    grad: np.ndarray,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str,
) -> np.ndarray:
    """MaxPool3DGrad: return the gradient of MaxPool3D with respect to `orig_input`.

    Each element of `grad` is added at every element that is equal to the maximum of its window.
    """
    _check_windows(ksize, strides, data_format, "Pooling")
    _check_gradient_shapes(_INPUTS, (orig_input, orig_output, grad), data_format)
    dimensions = pooled_dimensions(orig_input.shape, ksize, strides, padding, (), data_format)
    expected = _output_shape(orig_input.shape, dimensions, data_format)
    _expect_shape("orig_output", orig_output, expected)
    _expect_shape("grad", grad, expected)
    x, largest, gradient = (
        to_channels_last(each, data_format) for each in (orig_input, orig_output, grad)
    )
    total = np.zeros(x.shape, accumulation_dtype(grad.dtype))
    for taps in itertools.product(*(each.taps() for each in dimensions)):
        overlaps = [each.overlap(tap) for each, tap in zip(dimensions, taps, strict=True)]
        outputs = (slice(None), *(pair[0] for pair in overlaps))
        inputs = (slice(None), *(pair[1] for pair in overlaps))
        is_largest = x[inputs] == largest[outputs]
        np.add(total[inputs], gradient[outputs], out=total[inputs], where=is_largest)
    return from_channels_last(total.astype(grad.dtype, copy=False), data_format)


_BFLOAT16_AND_FLOAT = (DataType.BFLOAT16, DataType.FLOAT)
_REAL = {"T": REAL_NUMBER_TYPES}

KERNELS = (
    KernelDef("MaxPool3DGrad", max_pool_3d_grad, {"T": _BFLOAT16_AND_FLOAT}),
    KernelDef("MaxPool3DGradGrad", max_pool_3d_grad_grad, {"T": _BFLOAT16_AND_FLOAT}),
    KernelDef("MaxPoolGrad", max_pool_grad, _REAL),
    KernelDef("MaxPoolGradGrad", max_pool_grad_grad, _REAL),
    KernelDef("MaxPoolGradGradV2", max_pool_grad_grad_v2, _REAL),
    KernelDef("MaxPoolGradV2", max_pool_grad_v2, _REAL),
    KernelDef("MaxPoolGradWithArgmax", max_pool_grad_with_argmax, _REAL),
)
