"""What the kernels of this room allocate.

`MEMORY_NEEDS` has the bound of each op that may need more than a small multiple of its inputs (see
`KernelDef.memory`); for all others `INPUT_MULTIPLES` has that multiple.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import MemoryNeed
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.image.image_files import MAX_PIXELS, open_image
from runtime.kernels.image.image_transform import KERNEL_FUNCTIONS
from runtime.kernels.memory_sizes import (
    elements,
    itemsize,
    number,
    numbers_in,
    shape_of,
    size_of,
    volume,
)

V = TensorValue
FLOAT, DOUBLE = 4, 8  # bytes
# Bytes of a pixel while it is decoded: Pillow's image and its conversion with 4 channels each,
# then arrays of 3 or 4 channels of 8 or 16 bits, with and without the channels that are asked for.
PIXEL = 48


def _decoded(contents: V, channel_bytes: int = 2) -> int:
    data = contents.item() if isinstance(contents, np.ndarray) and contents.size == 1 else contents
    if not isinstance(data, bytes) or not data:
        return 0
    if data.startswith(b"BM"):
        return 12 * len(data) + 4 * channel_bytes * len(data)
    image = open_image(data)
    frames = 1
    if image.format in ("GIF", "WEBP"):
        frames = min(getattr(image, "n_frames", 1), MAX_PIXELS // (image.width * image.height) + 1)
    pixels = image.width * image.height
    return pixels * (PIXEL + 8 * frames) + frames * pixels * 8 * channel_bytes + 4 * len(data)


def _decode(contents: V) -> int:
    return _decoded(contents)


def _decode_with_dtype(contents: V, *, dtype: DataType) -> int:
    return _decoded(contents, dtype.numpy.itemsize)


def _decode_crop(contents: V, crop_window: V) -> int:
    return _decoded(contents)


def _taps(outputs: int, taps: int, channels: int = 1) -> int:
    """Return the indices and weights of a resampling, and what computes them."""
    return outputs * (taps * 10 * DOUBLE + 12 * DOUBLE) + outputs * taps * channels * 4 * DOUBLE


def _resampled(images: V, sizes: Sequence[int], taps: Sequence[int]) -> int:
    """Return what resampling along two axes allocates: float32 between the axes and after."""
    batch, height, width, channels = shape_of(images)
    rows, columns = sizes
    if min(sizes) <= 0:
        return 0
    result = volume((batch, rows, columns, channels)) * FLOAT
    between = (rows * width + height * width + rows * columns) * channels * 4 * FLOAT
    every = _taps(rows, taps[0]) + _taps(columns, taps[1], channels)
    return 2 * result + 2 * batch * between + every + 2 * elements(images) * FLOAT


def _resize_linear(images: V, size: V) -> int:
    return _resampled(images, numbers_in(size), (2, 2))


def _resize_cubic(images: V, size: V) -> int:
    return _resampled(images, numbers_in(size), (4, 4))


def _resize_area(images: V, size: V) -> int:
    rows, columns = numbers_in(size)
    _, height, width, _ = shape_of(images)
    taps = (height // max(rows, 1) + 3, width // max(columns, 1) + 3)
    return _resampled(images, (rows, columns), taps)


def _resize_nearest(images: V, size: V) -> int:
    batch, _height, width, channels = shape_of(images)
    rows, columns = numbers_in(size)
    volume((batch, rows, columns, channels))  # which the kernel refuses beyond int64
    taken = batch * rows * (width + columns) * channels * itemsize(images)
    return max(taken, 0) + max(rows + columns, 0) * 6 * DOUBLE


def _resize_gradient(grads: V, original_image: V) -> int:
    batch, height, width, channels = shape_of(grads)
    _, rows, columns, _ = shape_of(original_image)
    between = batch * rows * width * channels
    work = max(itemsize(original_image), FLOAT)
    every = elements(grads, original_image) + between
    return 6 * every * work + _taps(height, 4) + _taps(width, 4) + 4 * DOUBLE * (rows + columns)


def _nearest_gradient(grads: V, size: V) -> int:
    batch, height, width, channels = shape_of(grads)
    rows, columns = numbers_in(size)
    if min(rows, columns) <= 0:
        return 0
    every = elements(grads) + batch * rows * channels * (width + 2 * columns)
    return 5 * every * max(itemsize(grads), FLOAT) + (height + width + rows + columns) * 64


def _crop(image: V, boxes: V, box_ind: V, crop_size: V) -> int:
    rows, columns = numbers_in(crop_size)
    count, depth = shape_of(boxes)[0], shape_of(image)[3]
    if min(rows, columns) <= 0:
        return 0
    crops = volume((count, rows, columns, depth)) * FLOAT
    # a block of crops is worked on at once: at least one crop, at most 256 KB of crops
    block = min(max(1 << 18, rows * columns * depth * FLOAT), crops)
    places = max(rows * columns, block // max(depth * FLOAT, 1)) * 3 * DOUBLE
    return crops + 2 * (8 * block + places) + count * (rows + columns) * 10 * DOUBLE


def _crop_gradient_image(grads: V, boxes: V, box_ind: V, image_size: V) -> int:
    total = volume(numbers_in(image_size))
    pixels = elements(grads) // max(shape_of(grads)[3], 1)
    return 2 * total * DOUBLE + elements(grads) * 8 * DOUBLE + pixels * 16 * DOUBLE


def _crop_gradient_boxes(grads: V, image: V, boxes: V, box_ind: V) -> int:
    _, rows, columns, depth = shape_of(grads)
    sampled = shape_of(boxes)[0] * rows * columns
    return sampled * (depth * 12 * DOUBLE + 12 * DOUBLE)


def _projected(images: V, transforms: V, output_shape: V, fill_value: V = None) -> int:
    batch, _, _, channels = shape_of(images)
    rows, columns = numbers_in(output_shape)
    if min(rows, columns) <= 0:
        return 0
    work = max(itemsize(images), FLOAT)
    volume((batch, rows, columns, channels))  # which the kernel refuses beyond int64
    count = max(batch, shape_of(transforms)[0]) * rows * columns
    return count * channels * work * 8 + count * 24 * DOUBLE


def _spans(outputs: int, inputs: int, scale: float, kernel_type: str, antialias: bool) -> int:
    inverse = 1 / scale if scale > 0 else 1.0
    radius = KERNEL_FUNCTIONS[kernel_type][0] * (max(inverse, 1.0) if antialias else 1.0)
    return int(min(2 * radius + 3, inputs + 1))


def _scales(scale: V) -> list[float]:
    return [float(each) for each in np.ravel(np.asarray(scale))[:2]]


def _scaled(
    images: V, size: V, scale: V, translation: V, *, kernel_type: str, antialias: bool
) -> int:
    rows, columns = numbers_in(size)
    shape = shape_of(images)
    taps = [
        _spans(outputs, inputs, factor, kernel_type, antialias)
        for outputs, inputs, factor in zip((rows, columns), shape[1:3], _scales(scale), strict=True)
    ]
    return _resampled(images, (rows, columns), taps)


def _scaled_gradient(
    grads: V, original_image: V, scale: V, translation: V, *, kernel_type: str, antialias: bool
) -> int:
    _, height, width, _ = shape_of(grads)
    inputs = shape_of(original_image)[1:3]
    taps = [
        _taps(outputs, _spans(outputs, each, factor, kernel_type, antialias))
        for outputs, each, factor in zip((height, width), inputs, _scales(scale), strict=True)
    ]
    batch, channels = shape_of(grads)[0], shape_of(grads)[3]
    grown = batch * channels * (inputs[0] * max(width, inputs[1]))
    return sum(taps) + 6 * FLOAT * (elements(grads) + 2 * grown) + 4 * DOUBLE * sum(inputs)


def _glimpses(input: V, size: V, offsets: V) -> int:
    batch, _, _, depth = shape_of(input)
    window = volume(numbers_in(size)) * depth
    return window * FLOAT * (batch + 8) + size_of(input) // max(batch, 1)


def _suppressed(boxes: V, scores: V) -> int:
    count = elements(scores)
    # 128 candidates at a time are compared with those that are selected
    return min(count, 128) * count * 6 * FLOAT + count * 60 * DOUBLE + 8 * size_of(boxes)


def _non_max(boxes: V, scores: V, *others: V) -> int:
    return _suppressed(boxes, scores)


def _non_max_padded(
    boxes: V, scores: V, max_output_size: V, *others: V, pad_to_max_output_size: bool
) -> int:
    padded = max(number(max_output_size), 0) * 4 * DOUBLE if pad_to_max_output_size else 0
    return padded + _suppressed(boxes, scores)


def _combined(
    boxes: V, scores: V, max_output_size_per_class: V, max_total_size: V, *others: V,
    pad_per_class: bool,
) -> int:  # fmt: skip
    batch, rows, classes = shape_of(scores)
    total = max(number(max_total_size), 0)
    if pad_per_class:
        total = min(total, max(number(max_output_size_per_class), 0) * classes)
    per_class = min(rows, 128) * rows * 6 * FLOAT + rows * 60 * DOUBLE
    found = rows * classes * 12 * DOUBLE
    return batch * total * 8 * FLOAT + per_class + found + 4 * size_of(boxes) // max(batch, 1)


def _encoded(image: V) -> int:
    compressor = 1 << 19
    return compressor + 16 * size_of(image)


def _encoded_with_quality(images: V, quality: V) -> int:
    return _encoded(images)


def _drawn(images: V, boxes: V, colors: V = None) -> int:
    return size_of(images) + 4 * size_of(boxes)


def _distorted(image_size: V, bounding_boxes: V) -> int:
    return elements(bounding_boxes) * 30 * DOUBLE


def _distorted_v2(image_size: V, bounding_boxes: V, min_object_covered: V, seed: V = None) -> int:
    return _distorted(image_size, bounding_boxes)


MEMORY_NEEDS: dict[str, MemoryNeed] = {
    **dict.fromkeys(("DecodeBmp", "DecodeGif", "DecodeJpeg"), _decode),
    **dict.fromkeys(("DecodeImage", "DecodePng", "DecodeWebP"), _decode_with_dtype),
    "DecodeAndCropJpeg": _decode_crop,
    "ResizeArea": _resize_area,
    "ResizeBicubic": _resize_cubic,
    "ResizeBilinear": _resize_linear,
    "ResizeNearestNeighbor": _resize_nearest,
    "ResizeBicubicGrad": _resize_gradient,
    "ResizeBilinearGrad": _resize_gradient,
    "ResizeNearestNeighborGrad": _nearest_gradient,
    "CropAndResize": _crop,
    "CropAndResizeGradBoxes": _crop_gradient_boxes,
    "CropAndResizeGradImage": _crop_gradient_image,
    "ImageProjectiveTransformV2": _projected,
    "ImageProjectiveTransformV3": _projected,
    "ScaleAndTranslate": _scaled,
    "ScaleAndTranslateGrad": _scaled_gradient,
    "ExtractGlimpse": _glimpses,
    "ExtractGlimpseV2": _glimpses,
    **dict.fromkeys(
        (
            "NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3",
            "NonMaxSuppressionWithOverlaps",
        ),
        _non_max,
    ),
    "NonMaxSuppressionV4": _non_max_padded,
    "NonMaxSuppressionV5": _non_max_padded,
    "CombinedNonMaxSuppression": _combined,
    **dict.fromkeys(("EncodeJpeg", "EncodePng"), _encoded),
    "EncodeJpegVariableQuality": _encoded_with_quality,
    "DrawBoundingBoxes": _drawn,
    "DrawBoundingBoxesV2": _drawn,
    "SampleDistortedBoundingBox": _distorted,
    "SampleDistortedBoundingBoxV2": _distorted_v2,
    "StatelessSampleDistortedBoundingBox": _distorted_v2,
}  # fmt: skip

INPUT_MULTIPLES: dict[str, int] = {
    "ExtractJpegShape": 2,
    **dict.fromkeys(("AdjustHue", "AdjustSaturation", "AdjustContrastv2"), 32),
    **dict.fromkeys(("AdjustContrast", "HSVToRGB", "RGBToHSV"), 32),
}
