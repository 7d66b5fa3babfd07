"""Conv: convolution over two or three spatial dimensions, with any number of batch dimensions.

TF: tensorflow/core/kernels/conv_ops.cc (ConvOp)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, UnimplementedError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import FLOAT_TYPES
from runtime.kernels.nn.convolution import convolve
from runtime.kernels.nn.window import (
    WindowAttrs,
    channel_axis,
    from_channels_last,
    to_channels_last,
)

# For each format of Conv and number of spatial dimensions: the format of Conv2D or Conv3D.
DATA_FORMATS = {
    "CHANNELS_LAST": {2: "NHWC", 3: "NDHWC"},
    "CHANNELS_FIRST": {2: "NCHW", 3: "NCDHW"},
}


def _check_depths(x: np.ndarray, filter: np.ndarray, data_format: str) -> None:
    if filter.ndim != x.ndim:
        raise InvalidArgumentError(
            f"The filter must have {x.ndim} dimensions but got {filter.ndim}"
        )
    depth = x.shape[channel_axis(data_format)]
    if not all(filter.shape):
        raise InvalidArgumentError(
            "filter must not have zero elements (i.e. all dimensions must be non-zero)"
        )
    if depth != filter.shape[-2]:
        raise InvalidArgumentError(
            f"Input depth must be equal to filter depth: {depth} vs {filter.shape[-2]}"
        )


def conv(
    x: np.ndarray,
    filter: np.ndarray,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
    dilations: Sequence[int],
    batch_dims: int,
    groups: int,
) -> np.ndarray:
    """Conv: convolve `x` with `filter`; the first `batch_dims` dimensions of `x` are batches.

    The other dimensions are as in Conv2D or Conv3D. Raises UnimplementedError if `groups` is not 1.
    """
    if groups != 1:
        raise UnimplementedError("Grouped/Depthwise Convolutions are not supported yet.")
    spatial = x.ndim - 1 - batch_dims
    if spatial not in (2, 3):
        raise InvalidArgumentError(
            f"The input must have 2 or 3 spatial dimensions but got {spatial}"
        )
    if batch_dims < 0:
        raise InvalidArgumentError(f"batch_dims must be non-negative, got {batch_dims}")
    layout = DATA_FORMATS[data_format][spatial]
    batch = x.shape[:batch_dims]
    flat = x.reshape(math.prod(batch), *x.shape[batch_dims:])
    attrs = WindowAttrs(strides, padding, layout, dilations or (1,) * flat.ndim, explicit_paddings)
    attrs.check("Conv", refusal=InvalidArgumentError)
    _check_depths(flat, filter, layout)
    dimensions = attrs.place(flat.shape, filter.shape[:-2])
    y = from_channels_last(convolve(to_channels_last(flat, layout), filter, dimensions), layout)
    return y.reshape(*batch, *y.shape[1:])


KERNELS = (KernelDef("Conv", conv, {"T": (*FLOAT_TYPES, DataType.INT32)}, expensive=True),)
