"""Average and maximum pooling over two and three spatial dimensions.

Windows are separable: each spatial dimension is pooled by itself, with one pass over the data for
each position in the window. A window of k x k elements therefore costs 2 k passes, not k * k.

TF: tensorflow/core/kernels/avgpooling_op.cc, maxpooling_op.cc, pooling_ops_3d.cc,
pooling_ops_common.cc
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np

from runtime.foundation.errors import InvalidArgumentError, UnimplementedError
from runtime.foundation.intra_op_pool import shard
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import FLOAT_TYPES, REAL_NUMBER_TYPES
from runtime.kernels.math.accumulation import widen
from runtime.kernels.nn.convolution import tiles
from runtime.kernels.nn.window import (
    WindowAttrs,
    WindowedDimension,
    channel_axis,
    from_channels_last,
    spatial_values,
    to_channels_last,
)

TILE_BYTES = 1 << 20  # bytes of input rows reduced at once, so that they stay in a core's cache
TAP_NANOSECONDS = 0.2  # estimated time to reduce one element at one position of the window


def avg_pool(
    value: np.ndarray,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str,
) -> np.ndarray:
    """AvgPool: return the mean of each window, `[n, *outputs, c]`; padding does not count.

    `value` is `[n, *spatial, c]`.
    """
    check_strides(strides, data_format)
    check_volume(value, ksize, strides, data_format)
    check_batch(ksize, strides)
    for size in ksize:
        if size <= 0:
            raise InvalidArgumentError(f"ksize must be a positive int32 value, got:{size}")
    dimensions = pooled_dimensions(value.shape, ksize, strides, padding, (), data_format)
    if ksize[channel_axis(data_format)] != 1:
        raise UnimplementedError("Non-spatial pooling is not yet supported. Volunteers? :)")
    x = to_channels_last(value, data_format)
    result = _reduce_windows(widen(x), dimensions, np.add)
    result /= window_counts(dimensions).astype(result.dtype)
    return from_channels_last(result.astype(value.dtype, copy=False), data_format)


def max_pool(
    value: np.ndarray,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
) -> np.ndarray:
    """MaxPool: return the maximum of each window, `[n, oh, ow, c]`; `value` is `[n, h, w, c]`.

    As in TensorFlow, NaN is ignored, and a window of −inf gives the lowest finite number.
    """
    check_strides_and_depth(strides)
    return _max_pool(value, ksize, strides, padding, explicit_paddings, data_format)


def max_pool_v2(
    value: np.ndarray,
    ksize: np.ndarray,
    strides: np.ndarray,
    *,
    padding: str,
    data_format: str,
) -> np.ndarray:
    """MaxPoolV2: compute MaxPool; `ksize` and `strides` are int32 tensors of 4 elements."""
    sizes, steps = vector_of_four("ksize", ksize), vector_of_four("stride", strides)
    if min(sizes) <= 0:
        raise InvalidArgumentError("Sliding window ksize must be positive.")
    return _max_pool(value, sizes, steps, padding, (), data_format)


def vector_of_four(name: str, vector: np.ndarray) -> list[int]:
    """Return the window sizes or strides in `vector`, which must have 4 elements.

    Raises InvalidArgumentError if it does not; `name` is in the message.
    """
    if np.size(vector) != 4:
        raise InvalidArgumentError(f"Sliding window {name} field must specify 4 dimensions")
    return [int(size) for size in np.ravel(vector)]


def max_pool_3d(
    value: np.ndarray,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str,
) -> np.ndarray:
    """MaxPool3D: return the maximum of each window, `[n, od, oh, ow, c]`.

    `value` is `[n, d, h, w, c]`.
    """
    check_strides(strides, data_format)
    check_volume(value, ksize, strides, data_format)
    dimensions = _max_pool_dimensions(value, ksize, strides, padding, (), data_format)
    x = to_channels_last(value, data_format)
    return from_channels_last(_reduce_windows(x, dimensions, np.maximum), data_format)


def check_volume(
    value: np.ndarray, ksize: Sequence[int], strides: Sequence[int], data_format: str
) -> None:
    """Check the arguments of a 3-D pooling op, in the same order as TensorFlow.

    Does nothing for a 2-D op, that is, if `data_format` has four letters.

    TF: Pooling3DOp
    """
    if len(data_format) != 5:
        return
    if min(ksize) <= 0:
        raise InvalidArgumentError("Sliding window ksize field must have non-negative dimensions")
    check_batch(ksize, strides)
    check_depth(ksize, strides, data_format, "Pooling")
    if value.ndim != 5:
        raise InvalidArgumentError("tensor_in must be 5-dimensional")


def check_strides(strides: Sequence[int], data_format: str) -> None:
    """Raise InvalidArgumentError if a spatial stride is ≤ 0.

    Kernels call this first, because TensorFlow's shape functions check stride attributes before
    anything else.
    """
    _check_positive(spatial_values(strides, data_format))


def check_strides_and_depth(strides: Sequence[int]) -> None:
    """Raise InvalidArgumentError if a stride over rows, columns or channels is ≤ 0.

    TensorFlow checks the stride over channels for MaxPool and similar ops only.
    """
    _check_positive(strides[1:])


def _check_positive(strides: Sequence[int]) -> None:
    for stride in strides:
        if stride <= 0:
            raise InvalidArgumentError(f"Stride must be > 0, but got {stride}")


def check_batch(ksize: Sequence[int], strides: Sequence[int]) -> None:
    """Raise UnimplementedError if a window or stride over the batch dimension is not 1."""
    if ksize[0] != 1 or strides[0] != 1:
        raise UnimplementedError("Pooling is not yet supported on the batch dimension.")


def check_depth(ksize: Sequence[int], strides: Sequence[int], data_format: str, what: str) -> None:
    """Raise UnimplementedError if the window or stride over channels is not 1.

    `what` names the op in the message.
    """
    axis = channel_axis(data_format)
    if ksize[axis] != 1 or strides[axis] != 1:
        raise UnimplementedError(f"{what} is not yet supported on the depth dimension.")


def _max_pool(
    value: np.ndarray,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
) -> np.ndarray:
    dimensions = _max_pool_dimensions(
        value, ksize, strides, padding, explicit_paddings, data_format
    )
    x = to_channels_last(value, data_format)
    depth_window = ksize[channel_axis(data_format)]
    if depth_window > 1:
        blocks = x.reshape(*x.shape[:-1], x.shape[-1] // depth_window, depth_window)
        return from_channels_last(blocks.max(axis=-1), data_format)
    return from_channels_last(_reduce_windows(x, dimensions, np.fmax), data_format)


def check_window(ksize: Sequence[int]) -> None:
    """Raise InvalidArgumentError unless all sizes of the window are positive."""
    if any(size <= 0 for size in ksize):
        raise InvalidArgumentError(
            "Sliding window ksize must be positive. The specified or inferred ksize is: "
            + ",".join(map(str, ksize))
        )


def _max_pool_dimensions(
    value: np.ndarray,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
) -> tuple[WindowedDimension, ...]:
    check_window(ksize)
    if data_format == "NCHW_VECT_C":
        raise InvalidArgumentError("Default MaxPoolingOp only supports NHWC on device type CPU")
    return pooled_dimensions(value.shape, ksize, strides, padding, explicit_paddings, data_format)


def pooled_dimensions(
    shape: Sequence[int],
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
) -> tuple[WindowedDimension, ...]:
    """Return the windows of a pooling op over an input of `shape`.

    Raises InvalidArgumentError or UnimplementedError if an attribute is invalid.

    TF: PoolParameters
    """
    rank = len(data_format)
    for name, values in (("ksize", ksize), ("strides", strides)):
        if len(values) != rank:
            raise InvalidArgumentError(
                f"Sliding window {name} field must specify {rank} dimensions"
            )
    check_batch(ksize, strides)
    attrs = WindowAttrs(strides, padding, data_format, (), explicit_paddings)
    pairs = attrs.explicit_pairs()
    if len(shape) != rank:
        raise InvalidArgumentError(
            f"tensor_in_shape must have {rank - 2} spatial dimensions. {len(shape)} 0"
        )
    windows = spatial_values(ksize, data_format)
    _check_explicit(pairs, windows)
    _check_depth_window(shape, ksize, strides, data_format, windows)
    dimensions = attrs.place(shape, windows)
    check_allocation((shape[0], *(d.output for d in dimensions), shape[-1]), np.float64)
    return dimensions


def _check_explicit(pairs: Sequence[tuple[int, int]], windows: Sequence[int]) -> None:
    sides = (("Top", "Bottom"), ("Left", "Right"))
    for names, pair, window in zip(sides, pairs, windows, strict=False):
        for name, size in zip(names, pair, strict=True):
            if size and size >= window:
                raise InvalidArgumentError(
                    f"{name} padding {size} needs to be smaller than the window size {window}"
                )


def _check_depth_window(
    shape: Sequence[int],
    ksize: Sequence[int],
    strides: Sequence[int],
    data_format: str,
    windows: Sequence[int],
) -> None:
    axis = channel_axis(data_format)
    if ksize[axis] == 1:
        return
    if any(window != 1 for window in windows):
        raise UnimplementedError(
            "MaxPooling supports exactly one of pooling across depth or pooling across "
            "width/height."
        )
    if ksize[axis] <= 0:
        raise InvalidArgumentError(f"Sliding window ksize must be positive, got {ksize}")
    if shape[axis] % ksize[axis]:
        raise UnimplementedError(
            "Depthwise max pooling requires the depth window to evenly divide the input depth"
        )
    if strides[axis] != ksize[axis]:
        raise UnimplementedError(
            "Depthwise max pooling requires the depth window to equal the depth stride"
        )


def _reduce_windows(
    x: np.ndarray, dimensions: Sequence[WindowedDimension], reduce: np.ufunc
) -> np.ndarray:
    """Reduce one spatial dimension of a channels-last `x` after the other; return a new array."""
    result = np.empty((x.shape[0], *(each.output for each in dimensions), x.shape[-1]), x.dtype)
    if not result.size:
        return result
    lines = dimensions[0]
    line_size = math.prod(x.shape[2:])
    at_once = max(1, TILE_BYTES // max(line_size * x.dtype.itemsize, 1))

    def work(start: int, limit: int) -> None:
        for image, first, last in tiles(start, limit, lines.output, at_once):
            part = _reduce_axis(x[image], 0, lines, reduce, first, last)
            for axis, each in enumerate(dimensions[1:], start=1):
                part = _reduce_axis(part, axis, each, reduce, 0, each.output)
            result[image, first:last] = part

    shard(len(x) * lines.output, line_size * lines.window * TAP_NANOSECONDS, work)
    return result


def _reduce_axis(
    x: np.ndarray, axis: int, dimension: WindowedDimension, reduce: np.ufunc, first: int, last: int
) -> np.ndarray:
    """Reduce the windows of `x` along `axis`; return the outputs [first, last)."""
    start = x.dtype.type(_INITIAL_VALUE[reduce](x.dtype))
    before = (slice(None),) * axis
    result: np.ndarray | None = None
    rest: list[tuple[slice, slice]] = []
    for tap in dimension.taps():
        outputs, inputs = dimension.overlap(tap)
        low, high = max(outputs.start, first), min(outputs.stop, last)
        if high <= low:
            continue
        begin = inputs.start + (low - outputs.start) * dimension.stride
        end = begin + (high - low - 1) * dimension.stride + 1
        seen = slice(begin, end, dimension.stride)
        if result is None and high - low == last - first:
            result = reduce(x[(*before, seen)], start)
        else:
            rest.append((slice(low - first, high - first), seen))
    if result is None:
        result = np.full((*x.shape[:axis], last - first, *x.shape[axis + 1 :]), start, x.dtype)
    for outputs, inputs in rest:
        part = result[(*before, outputs)]
        reduce(part, x[(*before, inputs)], out=part)
    return result


def lowest_number(dtype: np.dtype) -> float | int:
    """Return the lowest finite number of `dtype`, with which TensorFlow's 2-D maximum starts."""
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).min)
    return float(ml_dtypes.finfo(dtype).min)  # type: ignore[no-untyped-call]


_INITIAL_VALUE: dict[np.ufunc, Callable[[np.dtype], float | int]] = {
    np.add: lambda dtype: 0,
    np.fmax: lowest_number,
    np.maximum: lambda dtype: -np.inf,
}


def window_counts(dimensions: Sequence[WindowedDimension]) -> np.ndarray:
    """Return the number of elements in each window, at least 1: `[*outputs, 1]`.

    Padding does not count.
    """
    counts = np.ones((1,), np.int64)
    for each in reversed(dimensions):
        counts = each.counts().reshape(-1, *(1,) * counts.ndim) * counts
    return np.maximum(counts, 1)


_MAX_POOL_TYPES = tuple(
    each for each in REAL_NUMBER_TYPES if each not in (DataType.UINT32, DataType.UINT64)
)

KERNELS = (
    KernelDef("AvgPool", avg_pool, {"T": FLOAT_TYPES}),
    KernelDef("AvgPool3D", avg_pool, {"T": (DataType.BFLOAT16, DataType.FLOAT)}),
    KernelDef("MaxPool", max_pool, {"T": _MAX_POOL_TYPES}),
    KernelDef("MaxPool3D", max_pool_3d, {"T": (DataType.BFLOAT16, DataType.FLOAT)}),
    KernelDef("MaxPoolV2", max_pool_v2, {"T": _MAX_POOL_TYPES}),
)
