"""Conv2D fused with the ops before it: mirror padding and bilinear resizing.

TF: tensorflow/core/kernels/conv_ops_fused_image_transform.cc
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import FLOAT_TYPES
from runtime.kernels.array.padding import mirror_pad
from runtime.kernels.image.image_resize import resize_bilinear
from runtime.kernels.image.resampling import resize_samplings
from runtime.kernels.nn.convolution import conv2d


def fused_pad_conv2d(
    x: np.ndarray,
    paddings: np.ndarray,
    filter: np.ndarray,
    *,
    mode: str,
    strides: Sequence[int],
    padding: str,
) -> np.ndarray:
    """FusedPadConv2D: compute MirrorPad, then Conv2D."""
    # This is checked here because Conv2D would raise UnimplementedError.
    if len(strides) == 4 and (strides[0], strides[3]) != (1, 1):
        raise InvalidArgumentError(
            "Current implementation does not yet support strides in the batch and depth dimensions."
        )
    if x.ndim < 4:
        raise InvalidArgumentError(f"input must be 4-dimensional, got {x.ndim} dimensions")
    if not x.size:
        raise InvalidArgumentError("Input tensor can't be empty")
    if x.ndim > 4:  # TensorFlow reads the buffer as a tensor of the first four dimensions
        x = x.reshape(-1)[: math.prod(x.shape[:4])].reshape(x.shape[:4])
    if paddings.shape == (4, 2):
        for name, margins in (("batches", paddings[0]), ("channels", paddings[3])):
            if margins.any():
                raise InvalidArgumentError(
                    f"Fused mirror padding only support spatial padding, not {name}: "
                    f"{margins.tolist()}"
                )
    if filter.ndim == 4 and x.shape[3] != filter.shape[2]:  # there are no channel groups
        raise InvalidArgumentError(
            f"input and filter must have the same depth: {x.shape[3]} vs {filter.shape[2]}"
        )
    return conv2d(
        mirror_pad(x, paddings, mode=mode),
        filter,
        strides=strides,
        padding=padding,
        explicit_paddings=(),
        data_format="NHWC",
        dilations=(1, 1, 1, 1),
    )


def fused_resize_and_pad_conv2d(
    x: np.ndarray,
    size: np.ndarray,
    paddings: np.ndarray,
    filter: np.ndarray,
    *,
    resize_align_corners: bool,
    mode: str,
    strides: Sequence[int],
    padding: str,
) -> np.ndarray:
    """FusedResizeAndPadConv2D: compute ResizeBilinear, MirrorPad, then Conv2D."""
    if x.dtype == np.float64:
        resized = _resized(x, size, resize_align_corners)
    else:
        resized = resize_bilinear(
            x, size, align_corners=resize_align_corners, half_pixel_centers=False
        ).astype(x.dtype, copy=False)
    return fused_pad_conv2d(resized, paddings, filter, mode=mode, strides=strides, padding=padding)


def _resized(x: np.ndarray, size: np.ndarray, align_corners: bool) -> np.ndarray:
    """Compute ResizeBilinear in float64, with weights computed in float32."""
    for axis, each in enumerate(resize_samplings(x, size, align_corners, False), 1):
        taps = each.linear_taps()
        x = dataclasses.replace(taps, weights=taps.weights.astype(np.float64)).apply(x, axis)
    return x


KERNELS = (
    KernelDef("FusedPadConv2D", fused_pad_conv2d, {"T": FLOAT_TYPES}, expensive=True),
    KernelDef(
        "FusedResizeAndPadConv2D", fused_resize_and_pad_conv2d, {"T": FLOAT_TYPES}, expensive=True
    ),
)
