"""What pooling and its gradients allocate: results by window, positions, and tiles of lines."""

from __future__ import annotations

import math
from collections.abc import Sequence

from runtime.foundation.intra_op_pool import thread_width
from runtime.framework.op_kernel import MemoryNeed
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import elements, itemsize, numbers_in, shape_of, volume
from runtime.kernels.nn.pooling import TILE_BYTES
from runtime.kernels.nn.window import WindowAttrs, channel_axis, spatial_values

V = TensorValue
Ints = Sequence[int]
INDEX = 8


def _outputs(shape: Ints, ksize: Ints, attrs: WindowAttrs) -> list[int]:
    windows = spatial_values(ksize, attrs.data_format)
    return [each.output for each in attrs.place(shape, windows)]


def _pooled(x: V, ksize: Ints, attrs: WindowAttrs) -> int:
    """Return what `pooling._reduce_windows` and its callers allocate."""
    shape, width = shape_of(x), max(itemsize(x), 4)
    outputs = _outputs(shape, ksize, attrs)
    depth = shape[channel_axis(attrs.data_format)]
    inner = spatial_values(shape, attrs.data_format)
    result = shape[0] * math.prod(outputs) * depth * width
    line = math.prod(inner[1:]) * depth * width
    whole = shape[0] * outputs[0] * line
    tiles = min(thread_width() * 3 * max(TILE_BYTES, line), 3 * whole)
    return 4 * result + tiles + 2 * math.prod(outputs) * INDEX + 2 * elements(x) * width


def _avg_pool(value: V, *, ksize: Ints, strides: Ints, padding: str, data_format: str) -> int:
    return _pooled(value, ksize, WindowAttrs(strides, padding, data_format))


def _max_pool(
    value: V, *, ksize: Ints, strides: Ints, padding: str, explicit_paddings: Ints,
    data_format: str,
) -> int:  # fmt: skip
    attrs = WindowAttrs(strides, padding, data_format, (), explicit_paddings)
    return _pooled(value, ksize, attrs)


def _max_pool_v2(value: V, ksize: V, strides: V, *, padding: str, data_format: str) -> int:
    attrs = WindowAttrs(numbers_in(strides), padding, data_format)
    return _pooled(value, numbers_in(ksize), attrs)


def _positions(x: V, results: int) -> int:
    """Return what it takes to find the largest element of each window, and to scatter to them."""
    grid = math.prod(shape_of(x)[1:]) * INDEX
    width = max(itemsize(x), 4)
    return results * (6 * INDEX + 6 * width) + 2 * grid + 4 * elements(x) * width


def _with_argmax(x: V, *, ksize: Ints, strides: Ints, padding: str) -> int:
    outputs = _outputs(shape_of(x), ksize, WindowAttrs(strides, padding, "NHWC"))
    return _positions(x, shape_of(x)[0] * math.prod(outputs) * shape_of(x)[3])


def _gradient(orig_input: V, orig_output: V, *others: V) -> int:
    return _positions(orig_input, elements(orig_output))


def _gradient_with_argmax(x: V, grad: V, argmax: V) -> int:
    return _positions(x, elements(grad))


def _avg_gradient(orig_input_shape: V, grad: V) -> int:
    sizes, width = numbers_in(orig_input_shape), max(itemsize(grad), 4)
    # one spatial axis after the other grows to the input's size
    largest = [max(one, two) for one, two in zip(sizes, shape_of(grad), strict=True)]
    return 5 * volume(largest) * width + 4 * elements(grad) * width + 6 * INDEX * max(largest)


POOLINGS: dict[str, MemoryNeed] = {
    "AvgPool": _avg_pool,
    "AvgPool3D": _avg_pool,
    "AvgPoolGrad": _avg_gradient,
    "AvgPool3DGrad": _avg_gradient,
    "MaxPool": _max_pool,
    "MaxPool3D": _avg_pool,
    "MaxPoolV2": _max_pool_v2,
    "MaxPoolWithArgmax": _with_argmax,
    **dict.fromkeys(
        (
            "MaxPool3DGrad", "MaxPool3DGradGrad", "MaxPoolGrad", "MaxPoolGradGrad",
            "MaxPoolGradGradV2", "MaxPoolGradV2",
        ),
        _gradient,
    ),
    "MaxPoolGradWithArgmax": _gradient_with_argmax,
}  # fmt: skip
