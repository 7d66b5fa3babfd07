"""The pixels in the bytes of JPEG, PNG, GIF, BMP and WebP files.

If the frames of an image have more than MAX_PIXELS pixels in total, ResourceExhaustedError is
raised before the excess is decompressed.

TF: tensorflow/core/kernels/image/decode_image_op.cc
"""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, ResourceExhaustedError
from runtime.framework.dtypes import DataType
from runtime.kernels.image.jpeg_pixels import JpegPixels, jpeg_pixels, jpeg_size
from runtime.kernels.image.png_wide_colours import wide_colours
from runtime.kernels.image.webp_frames import webp_frames

if TYPE_CHECKING:  # only then, because servers without image ops never load Pillow
    from PIL import Image, ImageFile

MAX_PIXELS = 1 << 26
MAGIC = {b"\xff\xd8\xff": "JPEG", b"\x89PNG\r\n\x1a\n": "PNG", b"GIF8": "GIF", b"BM": "BMP"}
# The weights 0.299, 0.587 and 0.114 of red, green and blue, times 32768.
GREY_WEIGHTS = np.array([9797, 19234, 3737], np.uint32)
INVALID = {
    "PNG": "Invalid PNG data, size {size}",
    "GIF": "Invalid GIF data (size {size}), only a partial file or an unsupported one",
}


def format_of(data: bytes) -> str:
    """Return the name of an image format; raise InvalidArgumentError if it is unknown."""
    for magic, kind in MAGIC.items():
        if data.startswith(magic):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WebP"
    raise InvalidArgumentError(
        "Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required."
    )


def open_image(data: bytes) -> ImageFile.ImageFile:
    """Open an image with Pillow, without decoding its pixels.

    Raises InvalidArgumentError if `data` is not an image, ResourceExhaustedError if it has too many
    pixels.
    """
    # Imported at the first image, so that servers without image ops never load Pillow.
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(data))
    except Image.DecompressionBombError as error:
        raise ResourceExhaustedError(str(error)) from None
    except Exception:  # Pillow's plugins raise any class of exception
        raise InvalidArgumentError(f"Invalid image data, size {len(data)}") from None
    check_size(image.height, image.width)
    return image


def check_size(height: int, width: int) -> None:
    """Raise ResourceExhaustedError if an image has too many pixels."""
    if width * height > MAX_PIXELS:
        raise ResourceExhaustedError(
            f"Image of {width} x {height} pixels exceeds the limit of {MAX_PIXELS}"
        )


def still_pixels(
    data: bytes,
    kind: str,
    channels: int,
    dtype: DataType,
    pixels_of_jpeg: JpegPixels = jpeg_pixels,
) -> np.ndarray:
    """Return the pixels of a JPEG or PNG with `channels` channels; 0 means as many as in the file.

    Raises InvalidArgumentError if the data is damaged.
    """
    if kind == "JPEG" and channels == 4:
        raise InvalidArgumentError("JPEG does not support 4 channels")
    if kind == "JPEG":
        check_size(*jpeg_size(data))
        return pixels_of_jpeg(data, channels)
    try:
        pixels = _with_channels(_file_pixels(open_image(data), data), channels)
        is_narrowed = pixels.dtype == np.uint16 and dtype == DataType.UINT8
        return (pixels >> 8).astype(np.uint8) if is_narrowed else pixels
    except ResourceExhaustedError:
        raise
    except Exception:  # Pillow's plugins raise any class of exception
        raise InvalidArgumentError(INVALID[kind].format(size=len(data))) from None


def _file_pixels(image: ImageFile.ImageFile, data: bytes) -> np.ndarray:
    """Return the pixels `[h, w, c]` with the file's channels; palettes are looked up."""
    if image.format == "PNG" and data[24] == 16 and data[25] != 0:
        return wide_colours(image, data)
    if image.mode.startswith("I"):  # the image is grey with 16 bits
        return np.asarray(image).astype(np.uint16)[..., None]
    shown: Image.Image = image
    if image.mode == "P" or "transparency" in image.info:
        shown = image.convert("RGBA" if "transparency" in image.info else "RGB")
    if shown.mode == "1":
        shown = shown.convert("L")
    pixels = np.asarray(shown)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _with_channels(pixels: np.ndarray, channels: int) -> np.ndarray:
    depth = pixels.shape[-1]
    if channels in (0, depth):
        return pixels
    has_alpha = depth in (2, 4)
    colours = pixels[..., : depth - 1] if has_alpha else pixels
    if channels == 1:
        return colours if colours.shape[-1] == 1 else _grey(colours)
    if colours.shape[-1] == 1:
        colours = np.repeat(colours, 3, axis=-1)
    if channels == 3:
        return np.ascontiguousarray(colours)
    opaque = np.full((*pixels.shape[:-1], 1), np.iinfo(pixels.dtype).max, pixels.dtype)
    return np.concatenate([colours, pixels[..., -1:] if has_alpha else opaque], axis=-1)


def _grey(colours: np.ndarray) -> np.ndarray:
    """Return the luminance of each pixel. As in libpng, uint8 is truncated and uint16 rounded."""
    total = colours.astype(np.uint32) @ GREY_WEIGHTS
    if colours.dtype == np.uint16:
        total += 1 << 14
    return (total >> 15).astype(colours.dtype)[..., None]


def gif_frames(data: bytes, limit: int | None = None) -> np.ndarray:
    """Return at most `limit` frames `[frames, h, w, 3]`, each drawn over the previous ones."""
    image = open_image(data)
    frames: list[np.ndarray] = []
    try:
        while limit is None or len(frames) < limit:
            image.seek(len(frames))
            frames.append(np.asarray(image.convert("RGB")))
            if (len(frames) + 1) * image.width * image.height > MAX_PIXELS:
                raise ResourceExhaustedError(
                    f"GIF of {len(frames) + 1} or more frames of {image.width} x {image.height} "
                    f"pixels exceeds the limit of {MAX_PIXELS}"
                )
    except EOFError:
        pass  # Pillow raises EOFError after the last frame
    except ResourceExhaustedError:
        raise
    except Exception:  # Pillow's plugins raise any class of exception
        raise InvalidArgumentError(INVALID["GIF"].format(size=len(data))) from None
    return np.stack(frames)


def bmp_pixels(data: bytes, channels: int) -> np.ndarray:
    """Return the pixels uint8 `[h, w, c]` of a BMP; 0 channels means as many as in the file.

    As in TensorFlow, palettes are not looked up. Raises InvalidArgumentError if the data is damaged
    or incomplete.
    """
    if len(data) < 32:
        raise InvalidArgumentError(
            "Incomplete bmp content, requires at least 32 bytes to find the header size, width, "
            f"height, and bpp, got {len(data)} bytes"
        )
    (header_size,) = struct.unpack_from("<i", data, 10)
    width, height = struct.unpack_from("<ii", data, 18)
    (bits,) = struct.unpack_from("<H", data, 28)
    depth = bits // 8
    if depth not in (1, 3, 4):
        raise InvalidArgumentError(
            f"Number of channels inherent in the image must be 1, 3 or 4, was {depth}"
        )
    if width <= 0 or height == 0 or header_size < 0:
        raise InvalidArgumentError(f"Invalid BMP size {width} x {height}, header {header_size}")
    rows = abs(height)
    row_size = (depth * width * 8 + 31) // 32 * 4
    excess = len(data) - header_size - row_size * rows
    if excess < 0:
        raise InvalidArgumentError(
            "Input size should match (header_size + row_size * abs_height) but they differ by "
            f"{excess}"
        )
    stored = np.frombuffer(data, np.uint8, row_size * rows, header_size).reshape(rows, row_size)
    pixels = stored[:, : width * depth].reshape(rows, width, depth)
    if height > 0:  # rows are stored from the bottom up
        pixels = pixels[::-1]
    if depth >= 3:  # channels are stored as blue, green, red
        pixels = pixels[..., [2, 1, 0, 3][:depth]]
    return np.ascontiguousarray(_with_channels(pixels, channels))


def webp_pixels(data: bytes, channels: int, limit: int | None = None) -> np.ndarray:
    """Return at most `limit` frames of a WebP image, uint8 `[frames, h, w, c]`.

    Raises InvalidArgumentError if the data is damaged, and what `webp_frames` raises.
    """
    try:
        image = open_image(data)
    except InvalidArgumentError:
        raise InvalidArgumentError("Failed to decode WebP image.") from None
    return webp_frames(image, channels, limit, MAX_PIXELS)
