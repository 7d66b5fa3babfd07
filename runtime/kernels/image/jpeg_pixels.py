"""The pixels of a JPEG, as libjpeg-turbo gives them with TensorFlow's settings.

Guarantee: equal to TensorFlow's, bit for bit, for grey, colour and CMYK images, baseline and
progressive, for both transforms, with and without smooth upsampling, at every ratio. Exceptions: an
image of less than 8 x 8 pixels that is scaled down may differ by 2 levels; in an image that ends
early, TensorFlow reads the last bytes of the file twice, so that the blocks at its end differ,
which have no meaning in either (all blocks of an interrupted pass, if the image is progressive).

TF: tensorflow/core/lib/jpeg/jpeg_mem.cc
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError

FAST_TRANSFORM = "INTEGER_FAST"
ACCURATE_TRANSFORM = "INTEGER_ACCURATE"
# libjpeg-turbo's words for the warning that the data ends before the image does.
_ENDS_EARLY = "Premature end"
_END_MARKER = b"\xff\xd9"
_INVALID = "jpeg::Uncompress failed. Invalid JPEG data or crop window."

# Returns the pixels of (the data of a JPEG, the number of channels).
JpegPixels = Callable[[bytes, int], np.ndarray]


def jpeg_size(data: bytes) -> tuple[int, int]:
    """Return (height, width), read from the header; raise InvalidArgumentError if there is none."""
    # Imported at the first JPEG, so that servers without image ops never load it.
    from simplejpeg import decode_jpeg_header

    try:
        height, width, _, _ = decode_jpeg_header(data, strict=False)
    except (KeyError, ValueError):  # KeyError: colours or samples that have no name
        raise InvalidArgumentError(_INVALID) from None
    return height, width


def jpeg_pixels(
    data: bytes,
    channels: int,
    ratio: int = 1,
    *,
    fancy_upscaling: bool = True,
    dct_method: str = "",
    recover: bool = False,
) -> np.ndarray:
    """Return the pixels uint8 `[h, w, channels]`; 0 channels means 1 if the image is grey, else 3.

    Height and width are divided by `ratio` and rounded up. If `recover` is true, what is missing at
    the end is grey. Raises InvalidArgumentError if the data is damaged, if it ends early and
    `recover` is false, or if a CMYK image is to be grey.
    """
    from simplejpeg import decode_jpeg, decode_jpeg_header

    try:
        height, width, space, _ = decode_jpeg_header(data, strict=False)
        is_cmyk = space in ("CMYK", "YCCK")
        if is_cmyk and channels == 1:
            raise ValueError("an image of four inks has no luminance")
        is_grey = channels == 1 or (channels == 0 and space == "Gray")
        settings = {
            "colorspace": "CMYK" if is_cmyk else "GRAY" if is_grey else "RGB",
            "fastdct": dct_method != ACCURATE_TRANSFORM,  # the default is the fast one
            "fastupsample": not fancy_upscaling,
            "min_height": -(-height // ratio),
            "min_width": -(-width // ratio),
            "min_factor": ratio,
        }
        try:
            pixels = decode_jpeg(data, strict=not recover, **settings)
        except ValueError as error:
            if recover or _ENDS_EARLY in str(error) or _END_MARKER not in data:
                raise
            pixels = decode_jpeg(data, strict=False, **settings)  # faults that TensorFlow ignores
    except (KeyError, ValueError):  # KeyError: colours or samples that have no name
        raise InvalidArgumentError(_INVALID) from None
    return _inks_to_colours(pixels) if is_cmyk else pixels


def _inks_to_colours(inks: np.ndarray) -> np.ndarray:
    """Return RGB `[h, w, 3]` of four inks `[h, w, 4]`, inverted, as Adobe's programs store them."""
    levels = inks.astype(np.uint16)
    return (levels[..., :3] * levels[..., 3:] // 255).astype(np.uint8)
