"""Static shapes of convolutions and pooling.

The images are `[batch, height, width, channels]`, or `[batch, channels, height, width]` if
`data_format` is NCHW.

TF: tensorflow/core/framework/common_shape_fns.cc (Conv2DShape, MaxPoolShape)
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.client.framework.operation import Operation
from runtime.client.framework.static_values import MisfitError, Shape


def _windows(kernel: Sequence[int], operation: Operation) -> Shape:
    """Return how many windows of size `kernel` fit: `(height, width)`, or None if unknown."""
    sizes = operation.inputs[0].shape.sizes
    padding = operation.get_attr("padding")
    if sizes is None or len(sizes) != 4 or padding not in (b"SAME", b"VALID"):
        return None
    first = 2 if operation.get_attr("data_format") == b"NCHW" else 1
    strides = operation.get_attr("strides")[first : first + 2]
    found = []
    for size, window, stride in zip(sizes[first : first + 2], kernel, strides, strict=True):
        if size < 0 or (window < 0 and padding == b"VALID"):
            found.append(-1)
        elif padding == b"SAME":
            found.append(-(-size // stride))
        elif size < window:
            raise MisfitError(f"Negative dimension size caused by subtracting {window} from {size}")
        else:
            found.append(-(-(size - window + 1) // stride))
    return tuple(found)


def _image(operation: Operation, windows: Shape, channels: int) -> Shape:
    sizes = operation.inputs[0].shape.sizes
    if windows is None or sizes is None:
        return None
    is_first = operation.get_attr("data_format") == b"NCHW"
    return (sizes[0], channels, *windows) if is_first else (sizes[0], *windows, channels)


def _channels(operation: Operation) -> int:
    sizes = operation.inputs[0].shape.sizes
    if sizes is None or len(sizes) != 4:
        return -1
    return sizes[1] if operation.get_attr("data_format") == b"NCHW" else sizes[3]


def _conv2d(operation: Operation) -> Shape:
    filters = operation.inputs[1].shape.sizes
    if filters is None or len(filters) != 4:
        return None
    channels = _channels(operation)
    if min(channels, filters[2]) > 0 and channels % filters[2]:
        raise MisfitError(
            f"Depth of input ({channels}) is not a multiple of input depth of filter ({filters[2]})"
        )
    is_first = operation.get_attr("data_format") == b"NCHW"
    dilations = operation.get_attr("dilations")[2 if is_first else 1 :]
    kernel = [
        size if size < 0 else (size - 1) * rate + 1
        for size, rate in zip(filters[:2], dilations[:2], strict=True)
    ]
    windows = _windows(kernel, operation)
    multiplied = filters[2] * filters[3] if min(filters[2:]) > 0 else -1
    is_depthwise = operation.type == "DepthwiseConv2dNative"
    return _image(operation, windows, multiplied if is_depthwise else filters[3])


def _pool(operation: Operation) -> Shape:
    first = 2 if operation.get_attr("data_format") == b"NCHW" else 1
    kernel = operation.get_attr("ksize")[first : first + 2]
    return _image(operation, _windows(kernel, operation), _channels(operation))


def _bias_add(operation: Operation) -> Shape:
    sizes, bias = operation.inputs[0].shape.sizes, operation.inputs[1].shape.sizes
    if sizes is None or bias is None or len(bias) != 1 or len(sizes) < 2:
        return sizes
    place = 1 if operation.get_attr("data_format") == b"NCHW" else len(sizes) - 1
    if sizes[place] != bias[0] and min(sizes[place], bias[0]) >= 0:
        raise MisfitError(f"Dimensions must be equal, but are {sizes[place]} and {bias[0]}")
    return (*sizes[:place], max(sizes[place], bias[0]), *sizes[place + 1 :])


IMAGE_SHAPE_FUNCTIONS = {
    **dict.fromkeys(("Conv2D", "DepthwiseConv2dNative"), _conv2d),
    **dict.fromkeys(("MaxPool", "AvgPool"), _pool),
    "BiasAdd": _bias_add,
}
