"""The kernel of ImageSummary, which puts images as PNG files into a Summary message.

TF: tensorflow/core/kernels/summary_image_op.cc
"""

from __future__ import annotations

import numpy as np

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import as_strings
from runtime.kernels.image.image_encode import encode_png
from runtime.kernels.io.summaries import serialized_summary

_CHANNELS = (1, 3, 4)
# an image with only smaller magnitudes becomes black, or grey if it has negative values
_NEARLY_ZERO = 1e-6


def image_summary(
    tag: np.ndarray, tensor: np.ndarray, *, max_images: int, bad_color: np.ndarray
) -> np.ndarray:
    """ImageSummary: encode the first `max_images` images of `tensor` [batch, height, width,
    channels].

    Images that are not uint8 are scaled to 0 … 255.
    """
    name, images = as_strings(tag), np.asarray(tensor)
    if name.ndim:
        raise InvalidArgumentError("Tags must be a scalar")
    if images.ndim != 4 or images.shape[3] not in _CHANNELS:
        raise InvalidArgumentError(
            f"Tensor must be 4-D with last dim 1, 3, or 4, not {shape_text(images.shape)}"
        )
    _, height, width, channels = images.shape
    if not height * width:
        raise InvalidArgumentError(
            f"input tensor must have non-zero dims. Found: [{', '.join(map(str, images.shape))}]."
        )
    if bad_color.dtype != np.uint8 or bad_color.size < channels:
        raise InvalidArgumentError(
            f"expected depth <= bad_color.size, got depth = {channels}, "
            f"bad_color.size = {bad_color.size}"
        )
    values = []
    for index, image in enumerate(images[:max_images]):
        pixels = image if image.dtype == np.uint8 else _scaled(image, bad_color[:channels])
        suffix = b"/image" if max_images == 1 else f"/image/{index}".encode()
        picture = pb.Summary.Image(
            height=height,
            width=width,
            colorspace=channels,
            encoded_image_string=encode_png(pixels, compression=-1).item(),
        )
        values.append((name.item() + suffix, pb.Summary.Value(image=picture)))
    return serialized_summary(values)


def _scaled(image: np.ndarray, bad_color: np.ndarray) -> np.ndarray:
    """Scale `image` so that its largest value is 255, and convert it to uint8.

    If there are negative values, 0 becomes 128, and the value of the largest magnitude becomes 1 or
    255. A pixel with a value that is not finite becomes `bad_color`.
    """
    # TensorFlow multiplies in the type of the image, by a factor of single precision at most.
    values, of_type = image, np.float16 if image.dtype == np.float16 else np.float32
    is_good = np.isfinite(values).all(axis=-1)
    good = values[is_good]
    lowest, highest = float(good.min(initial=0.0)), float(good.max(initial=0.0))
    top, offset = (max(-lowest, highest), 128.0) if lowest < 0 else (highest, 0.0)
    span = 255.0 - offset
    scale = 0.0 if top < _NEARLY_ZERO else span / top
    pixels = np.empty(values.shape, np.uint8)
    pixels[...] = bad_color
    pixels[is_good] = (good * of_type(scale) + of_type(offset)).astype(np.uint8)
    return pixels


KERNELS = (KernelDef("ImageSummary", image_summary),)
