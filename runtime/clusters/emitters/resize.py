"""Emitters of image resizing: bilinear and nearest, in all three ways to map positions.

The engine computes positions of pixels in another order of operations than TensorFlow. So the
engine's positions are computed at emission too: nearest pixels must be the same ones, and bilinear
positions close.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.clusters.bounds import MAX_MADE
from runtime.clusters.dimensions import (
    Dimension,
    InexpressibleError,
    Shape,
    SymbolicSize,
    quotient,
    static,
)
from runtime.clusters.emission import ONNX_TYPES, DeclinedError, Emission
from runtime.clusters.emitters.windows import Image, image
from runtime.clusters.op_emitter import OpEmitter
from runtime.clusters.values import Layout, Value
from runtime.framework.dtypes import DataType
from runtime.graph.node import Node
from runtime.kernels.image.resampling import Sampling

# Largest difference of positions, in pixels, that counts as the same: single precision resolves no
# less in images of 256 pixels.
MAX_DIFFERENCE = 2e-5


def _bilinear(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    """Write ResizeBilinear: `[n, h, w, c]` to (height, width); the result is float32."""
    source, sizes = _arguments(emission, node, inputs)
    value = source.value
    if value.dtype is not DataType.FLOAT:
        to = ONNX_TYPES[DataType.FLOAT]
        value = emission.op(
            "Cast", [value], DataType.FLOAT, value.shape, layout=value.layout, to=to
        )
    if sizes == source.spatial:
        return value
    for given, wanted in zip(source.spatial, sizes, strict=True):
        _check_positions(node, given, wanted)
    if inputs[0].dtype is DataType.FLOAT:
        emission.require_finite(source.value)  # where a weight is 0, infinities give NaN
    return _resized(
        emission, source, value, sizes, "linear", coordinate_transformation_mode=_mode(node)
    )


def _nearest(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    """Write ResizeNearestNeighbor: `[n, h, w, c]` to (height, width)."""
    source, sizes = _arguments(emission, node, inputs)
    if sizes == source.spatial:
        return source.value
    # A half pixel before and rounding half up together are TensorFlow's floor of the middle.
    rounds = node.attr("align_corners") or node.attr("half_pixel_centers")
    modes = {
        "coordinate_transformation_mode": _mode(node),
        "nearest_mode": "round_prefer_ceil" if rounds else "floor",
    }
    for given, wanted in zip(source.spatial, sizes, strict=True):
        _check_nearest(node, given, wanted)
    return _resized(emission, source, source.value, sizes, "nearest", **modes)


def _arguments(emission: Emission, node: Node, inputs: Sequence[Value]) -> tuple[Image, Shape]:
    """Return the images and the wanted sizes of rows and columns."""
    images, size = inputs
    if node.attr("align_corners") and node.attr("half_pixel_centers"):
        raise DeclinedError("both align_corners and half_pixel_centers")
    source = image(emission, images, "NHWC")
    if size.shape != (2,):
        raise DeclinedError(f"sizes of shape {size.shape}")
    if size.sizes is not None:
        sizes = size.sizes
    elif size.constant is not None:
        sizes = tuple(int(each) for each in size.constant)
    else:
        raise DeclinedError("sizes that only a run knows")
    if any(each in (0, -1) for each in source.spatial) or any(
        isinstance(each, int) and each < 1 for each in sizes
    ):
        raise DeclinedError(f"{source.spatial} pixels to {sizes}")
    if any(isinstance(each, int) and each > MAX_MADE for each in sizes):
        raise DeclinedError(f"{sizes} pixels")
    return source, sizes


def _mode(node: Node) -> str:
    if node.attr("align_corners"):
        return "align_corners"
    return "half_pixel" if node.attr("half_pixel_centers") else "asymmetric"


def _resized(
    emission: Emission, source: Image, value: Value, sizes: Shape, mode: str, **modes: str
) -> Value:
    # The engine is faster with constant factors. Its optimiser fails if there is the attribute
    # `axes`, so all four sizes are given.
    try:
        factors = [1, 1, *(_factor(*each) for each in zip(source.spatial, sizes, strict=True))]
        operands = [value, None, emission.constant(np.array(factors, np.float32))]
    except InexpressibleError:
        operands = [value, None, None, emission.sizes((source.batch, source.channels, *sizes))]
    return emission.op(
        "Resize",
        operands,
        value.dtype,
        source.shape(sizes),
        layout=Layout.CHANNELS_FIRST,
        mode=mode,
        **modes,
    )


def _factor(given: Dimension, wanted: Dimension) -> int:
    """Return by which integer a size is multiplied; raise InexpressibleError if by none."""
    return static(quotient(wanted, given))


def _engine_positions(node: Node, given: int, wanted: int) -> np.ndarray:
    """Return positions in the input as the engine computes them: float32 [wanted]."""
    steps = np.arange(wanted, dtype=np.float32)
    half, scale = np.float32(0.5), np.float32(wanted) / np.float32(given)
    if node.attr("align_corners"):
        if wanted == 1:
            return np.zeros(1, np.float32)
        return steps * np.float32(given - 1) / np.float32(wanted - 1)
    if node.attr("half_pixel_centers"):
        return (steps + half) / scale - half
    return steps / scale


def _check_positions(node: Node, given: Dimension, wanted: Dimension) -> None:
    if _is_symbolic(node, given, wanted):
        return
    difference = (
        _engine_positions(node, static(given), static(wanted))
        - _sampling(node, given, wanted).positions()
    )
    if np.abs(difference).max() > MAX_DIFFERENCE:
        raise DeclinedError(f"{given} pixels to {wanted} at other positions")


def _check_nearest(node: Node, given: Dimension, wanted: Dimension) -> None:
    if _is_symbolic(node, given, wanted):
        return
    positions = _engine_positions(node, static(given), static(wanted))
    if node.attr("align_corners") or node.attr("half_pixel_centers"):
        positions = positions + np.float32(0.5)
    pixels = np.clip(np.floor(positions), 0, static(given) - 1)
    if not np.array_equal(pixels, _sampling(node, given, wanted).nearest()):
        raise DeclinedError(f"{given} pixels to {wanted} at other positions")


def _is_symbolic(node: Node, given: Dimension, wanted: Dimension) -> bool:
    """Return whether a size is unknown.

    Then positions must be the same for all sizes, which powers of 2 ensure; raises
    InexpressibleError for others.
    """
    if not isinstance(given, SymbolicSize) and not isinstance(wanted, SymbolicSize):
        return False
    if node.attr("align_corners"):
        raise InexpressibleError(f"corners of {given} and {wanted} pixels")
    factor = _factor(given, wanted)
    if factor & (factor - 1):
        raise InexpressibleError(f"{given} pixels to {wanted}")
    return True


def _sampling(node: Node, given: Dimension, wanted: Dimension) -> Sampling:
    flags = bool(node.attr("align_corners")), bool(node.attr("half_pixel_centers"))
    return Sampling(static(given), static(wanted), *flags)


_TYPES = {"T": frozenset((DataType.FLOAT, DataType.UINT8, DataType.INT32))}

EMITTERS = (
    OpEmitter("ResizeBilinear", _bilinear, _TYPES, constants=(1,)),
    OpEmitter("ResizeNearestNeighbor", _nearest, _TYPES, constants=(1,)),
)
