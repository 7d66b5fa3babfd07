"""The frames of a WebP image.

TF: tensorflow/core/kernels/image/decode_image_op.cc (DecodeWebPV2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, ResourceExhaustedError

if TYPE_CHECKING:  # only then, because servers without image ops never load Pillow
    from PIL import ImageFile


def webp_frames(
    image: ImageFile.ImageFile, channels: int, limit: int | None, max_pixels: int
) -> np.ndarray:
    """Return at most `limit` frames, uint8 `[frames, h, w, c]`; c is 4 if the image has alpha.

    Raises InvalidArgumentError if `channels` is neither 0 nor c, or if the data is damaged;
    ResourceExhaustedError if the frames have more than `max_pixels` pixels in total.
    """
    if channels not in (0, 3, 4):
        raise InvalidArgumentError("WebP only supports 3 or 4 channels")
    depth = 4 if image.mode == "RGBA" else 3
    if channels not in (0, depth):
        raise InvalidArgumentError("Number of channels requested does not match input")
    count = getattr(image, "n_frames", 1)
    count = count if limit is None else min(count, limit)
    if count * image.width * image.height > max_pixels:
        raise ResourceExhaustedError(
            f"WebP of {count} frames of {image.width} x {image.height} pixels exceeds the limit "
            f"of {max_pixels}"
        )
    frames = np.empty((count, image.height, image.width, depth), np.uint8)
    try:
        for number in range(count):
            image.seek(number)
            frames[number] = np.asarray(image.convert("RGBA" if depth == 4 else "RGB"))
    except Exception:  # Pillow's plugins raise any class of exception
        raise InvalidArgumentError("Failed to decode WebP image.") from None
    return frames
