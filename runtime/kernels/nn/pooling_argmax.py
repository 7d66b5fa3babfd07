"""The position of each pooling window's maximum: MaxPoolWithArgmax.

TF: tensorflow/core/kernels/maxpooling_op.cc (SpatialMaxPoolWithArgMaxHelper)
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
from runtime.kernels.nn.pooling import check_batch, check_strides_and_depth, pooled_dimensions
from runtime.kernels.nn.window import WindowedDimension


def max_pool_with_argmax(
    x: np.ndarray,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    Targmax: DataType,  # noqa: N803 # the attribute's name
    include_batch_in_index: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """MaxPoolWithArgmax: return the maximum of each window, and its index, both `[n, oh, ow, c]`.

    The index is `(y * w + x) * c + channel`; if `include_batch_in_index` is true, the index counts
    from the first image.
    """
    check_strides_and_depth(strides)
    check_batch(ksize, strides)
    if x.ndim != 4:
        raise InvalidArgumentError("tensor_in must be 4-dimensional (2)")
    if not x.size:
        raise InvalidArgumentError("tensor_in must not be empty (2)")
    dimensions = pooled_dimensions(x.shape, ksize, strides, padding, (), "NHWC")
    # TensorFlow checks the window over channels, but then pools each channel by itself.
    best, position = largest_in_windows(x, dimensions)
    index = position * x.shape[3] + np.arange(x.shape[3])
    if include_batch_in_index:
        per_image = math.prod(x.shape[1:])
        index += np.arange(x.shape[0]).reshape(-1, 1, 1, 1) * per_image
    return best, index.astype(Targmax.numpy)


def largest_in_windows(
    x: np.ndarray, dimensions: Sequence[WindowedDimension]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the maximum of each window, and the flat spatial position of its first occurrence.

    `x` and both results are channels-last.
    """
    shape = (x.shape[0], *(each.output for each in dimensions), x.shape[-1])
    best = np.zeros(shape, x.dtype)
    position = np.full(shape, -1, np.int64)
    grid = np.arange(math.prod(x.shape[1:-1])).reshape(*x.shape[1:-1], 1)
    for taps in itertools.product(*(each.taps() for each in dimensions)):
        overlaps = [each.overlap(tap) for each, tap in zip(dimensions, taps, strict=True)]
        outputs = (slice(None), *(pair[0] for pair in overlaps))
        inputs = tuple(pair[1] for pair in overlaps)
        seen = x[(slice(None), *inputs)]
        better = (seen > best[outputs]) | (position[outputs] < 0)
        np.copyto(best[outputs], seen, where=better)
        np.copyto(position[outputs], grid[inputs], where=better)
    return best, position


KERNELS = (KernelDef("MaxPoolWithArgmax", max_pool_with_argmax, {"T": REAL_NUMBER_TYPES}),)
