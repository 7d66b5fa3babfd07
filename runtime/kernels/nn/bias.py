"""BiasAdd, which adds a vector along the channels, and its gradient.

TF: tensorflow/core/kernels/bias_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.math.accumulation import accumulation_dtype
from runtime.kernels.math.element_blocks import on_threads
from runtime.kernels.nn.window import is_channels_first


def bias_add(value: np.ndarray, bias: np.ndarray, *, data_format: str) -> np.ndarray:
    """BiasAdd: add `bias` `[c]` to `value` along the channels.

    The channels are the last dimension, or the second if `data_format` is NCHW.
    """
    return on_threads(np.add, value, _along_channels(value, bias, data_format))


def bias_add_in_place(value: np.ndarray, bias: np.ndarray, *, data_format: str) -> np.ndarray:
    """BiasAdd: compute the same as `bias_add`, and write the result into `value`."""
    return on_threads(np.add, value, _along_channels(value, bias, data_format), value)


def _along_channels(value: np.ndarray, bias: np.ndarray, data_format: str) -> np.ndarray:
    """Return `bias` reshaped so that it broadcasts along the channels of `value`.

    Raises InvalidArgumentError if the shapes do not fit together.
    """
    if value.ndim < 2:
        raise InvalidArgumentError(f"Input tensor must be at least 2D: {shape_text(value.shape)}")
    if bias.ndim != 1:
        raise InvalidArgumentError(f"Biases must be 1D: {shape_text(bias.shape)}")
    channels_first = is_channels_first(data_format)
    if value.shape[1 if channels_first else -1] != bias.shape[0]:
        raise InvalidArgumentError(
            "Must provide as many biases as the last dimension of the input tensor: "
            f"{shape_text(bias.shape)} vs. {shape_text(value.shape)}"
        )
    if channels_first:
        bias = bias.reshape(-1, *(1,) * (value.ndim - 2))
    return bias


def bias_add_v1(value: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """BiasAddV1: add `bias` `[c]` to `value` along the last dimension."""
    return bias_add(value, bias, data_format="NHWC")


def bias_add_grad(out_backprop: np.ndarray, *, data_format: str) -> np.ndarray:
    """BiasAddGrad: return the sum of `out_backprop` over every dimension but the channels."""
    if out_backprop.ndim < 2:
        raise InvalidArgumentError(
            f"Input tensor must be at least 2D: {shape_text(out_backprop.shape)}"
        )
    channels = 1 if is_channels_first(data_format) else out_backprop.ndim - 1
    axes = tuple(axis for axis in range(out_backprop.ndim) if axis != channels)
    dtype = out_backprop.dtype
    total = out_backprop.sum(axis=axes, dtype=accumulation_dtype(dtype))
    return total.astype(dtype, copy=False)


KERNELS = (
    KernelDef("BiasAdd", bias_add, fresh=True, in_place=bias_add_in_place),
    KernelDef("BiasAddGrad", bias_add_grad),
    KernelDef("BiasAddV1", bias_add_v1),
)
