"""Decoding JPEG, PNG, GIF, BMP and WebP images.

As in TensorFlow, each op but DecodeGif and DecodeBmp accepts other formats too, and a WebP image
gives frames to every op: `[frames, h, w, c]`.
If the frames of an image have more than MAX_PIXELS pixels in total, ResourceExhaustedError is
raised before the excess is decompressed.

TF: tensorflow/core/kernels/image/decode_image_op.cc
"""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

import numpy as np

from runtime.foundation.errors import (
    InvalidArgumentError,
    ResourceExhaustedError,
)
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.image.jpeg_pixels import (
    ACCURATE_TRANSFORM,
    FAST_TRANSFORM,
    JpegPixels,
    jpeg_pixels,
    jpeg_size,
)
from runtime.kernels.image.png_wide_colours import wide_colours
from runtime.kernels.image.webp_frames import webp_frames

if TYPE_CHECKING:  # only then, because servers without image ops never load Pillow
    from PIL import Image, ImageFile

MAX_PIXELS = 1 << 26
MAGIC = {b"\xff\xd8\xff": "JPEG", b"\x89PNG\r\n\x1a\n": "PNG", b"GIF8": "GIF", b"BM": "BMP"}
OP_OF_FORMAT = {"JPEG": "decode_jpeg", "PNG": "decode_png", "GIF": "decode_gif"}
# The weights 0.299, 0.587 and 0.114 of red, green and blue, times 32768.
GREY_WEIGHTS = np.array([9797, 19234, 3737], np.uint32)


def decode_jpeg(
    contents: np.ndarray,
    *,
    channels: int,
    ratio: int,
    fancy_upscaling: bool,
    try_recover_truncated: bool,
    dct_method: str,
) -> np.ndarray:
    """DecodeJpeg: return the pixels uint8 `[h, w, channels]`, downscaled by `ratio`.

    Raises InvalidArgumentError if `ratio` is not 1, 2, 4 or 8, or `dct_method` is unknown.
    """
    if ratio not in (1, 2, 4, 8):
        raise InvalidArgumentError(f"ratio must be 1, 2, 4, or 8, got {ratio}")
    if dct_method not in ("", FAST_TRANSFORM, ACCURATE_TRANSFORM):
        raise InvalidArgumentError(
            "dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}"
        )

    def pixels(data: bytes, depth: int) -> np.ndarray:
        return jpeg_pixels(
            data,
            depth,
            ratio,
            fancy_upscaling=fancy_upscaling,
            dct_method=dct_method,
            recover=try_recover_truncated,
        )

    return _decode_still("DecodeJpeg", contents, channels, DataType.UINT8, pixels)[0]


def decode_png(contents: np.ndarray, *, channels: int, dtype: DataType) -> np.ndarray:
    """DecodePng: return the pixels `[h, w, channels]` as `dtype`, uint8 or uint16."""
    return _to_dtype(*_decode_still("DecodePng", contents, channels, dtype))


def decode_gif(contents: np.ndarray) -> np.ndarray:
    """DecodeGif: return the frames uint8 `[frames, h, w, 3]`; a still image has one frame."""
    data, kind = _read(contents)
    if kind == "WebP":
        return _webp(data, 3)
    if kind == "BMP":
        raise InvalidArgumentError(_wrong_op_message("BMP", "DecodeGif"))
    if kind == "GIF":
        return _gif_frames(data)
    return _decode(data, kind, 3, DataType.UINT8)[None]


def decode_bmp(contents: np.ndarray, *, channels: int) -> np.ndarray:
    """DecodeBmp: return the pixels uint8 `[h, w, channels]`.

    As in TensorFlow, palettes are not looked up.
    """
    _check_channels(channels)
    if channels == 1:
        raise InvalidArgumentError("`channels` must be 0, 3 or 4 for BMP, but got 1")
    data, kind = _read(contents)
    if kind == "WebP":
        return _webp(data, channels)
    if kind != "BMP":
        advice = OP_OF_FORMAT.get(kind, "decode_image")
        raise InvalidArgumentError(
            f"Trying to decode {kind} format using DecodeBmp op. Use `{advice}` or "
            "`decode_image` instead."
        )
    return _bmp_pixels(data, channels)


def decode_webp(contents: np.ndarray, *, channels: int, dtype: DataType) -> np.ndarray:
    """DecodeWebP: return the frames of a WebP image, uint8 `[frames, h, w, c]`.

    Of a JPEG or PNG, returns the pixels `[h, w, channels]`.
    """
    if _read(contents)[1] == "GIF":
        raise InvalidArgumentError("Bad op type DecodeWebP")
    return _to_dtype(*_decode_still("DecodeWebP", contents, channels, dtype))


def decode_image(
    contents: np.ndarray, *, channels: int, dtype: DataType, expand_animations: bool
) -> np.ndarray:
    """DecodeImage: return the pixels `[h, w, channels]` of an image of any format, as `dtype`.

    For a GIF or WebP, returns every frame, `[frames, h, w, c]`, if `expand_animations` is true, and
    else the first frame. Pixels are scaled to the range of uint8 or uint16, or to [0, 1] as float.
    """
    _check_channels(channels)
    data, kind = _read(contents)
    if kind == "GIF":
        if channels not in (0, 3):
            raise InvalidArgumentError(f"channels must be 0 or 3 for GIF, got {channels}")
        frames = _gif_frames(data, None if expand_animations else 1)
        return _to_dtype(frames if expand_animations else frames[0], kind, dtype)
    if kind == "BMP":
        return _to_dtype(_bmp_pixels(data, channels), kind, dtype)
    if kind == "WebP":
        _check_webp_type(dtype)
        frames = _webp(data, channels, None if expand_animations else 1)
        return frames if expand_animations else frames[0]
    return _to_dtype(_decode(data, kind, channels, dtype), kind, dtype)


def extract_jpeg_shape(contents: np.ndarray, *, output_type: DataType) -> np.ndarray:
    """ExtractJpegShape: return (height, width, channels) of a JPEG, read from its header."""
    data = _scalar_bytes(contents)
    try:
        image = open_image(data)
    except InvalidArgumentError:
        image = None
    if image is None or image.format != "JPEG":
        raise InvalidArgumentError(f"Invalid JPEG data, size {len(data)}")
    depth = len(image.getbands())
    return np.array([image.height, image.width, depth], output_type.numpy)


def decode_and_crop_jpeg(
    contents: np.ndarray,
    crop_window: np.ndarray,
    *,
    channels: int,
    ratio: int,
    fancy_upscaling: bool,
    try_recover_truncated: bool,
    dct_method: str,
) -> np.ndarray:
    """DecodeAndCropJpeg: return the pixels of a part of a JPEG, uint8 `[height, width, channels]`.

    `crop_window` is (y, x, height, width). Pixels at the border of the part are smoothed with their
    neighbours outside of it; TensorFlow does not decode those, so that its borders differ where
    the file has fewer colour samples than pixels. Of a WebP image, returns every frame, whole.
    """
    kind = _read(contents)[1]
    if kind not in ("JPEG", "WebP"):
        raise InvalidArgumentError(
            f"DecodeAndCropJpeg operation can run on JPEG only, but detected {kind}."
        )
    if kind != "WebP" and np.shape(crop_window) != (4,):
        raise InvalidArgumentError(
            f"crop_size must have four elements {shape_text(np.shape(crop_window))}"
        )
    pixels = decode_jpeg(
        contents,
        channels=channels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        dct_method=dct_method,
    )
    if kind == "WebP":
        return pixels
    top, left, height, width = (int(each) for each in crop_window)
    fits = top >= 0 and left >= 0 and height > 0 and width > 0
    if not fits or top + height > pixels.shape[0] or left + width > pixels.shape[1]:
        raise InvalidArgumentError("jpeg::Uncompress failed. Invalid JPEG data or crop window.")
    return pixels[top : top + height, left : left + width]


def _scalar_bytes(contents: np.ndarray) -> bytes:
    if np.ndim(contents):
        raise InvalidArgumentError(
            f"`contents` must be scalar but got shape{shape_text(np.shape(contents))}"
        )
    data = np.asarray(contents, object).item()
    if not data:
        raise InvalidArgumentError("Input is empty.")
    return bytes(data)


def _read(contents: np.ndarray) -> tuple[bytes, str]:
    """Return the bytes in the scalar `contents`, and the name of the image format.

    Raises InvalidArgumentError if the format is unknown.
    """
    data = _scalar_bytes(contents)
    for magic, kind in MAGIC.items():
        if data.startswith(magic):
            return data, kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return data, "WebP"
    raise InvalidArgumentError(
        "Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required."
    )


def _wrong_op_message(kind: str, op: str) -> str:
    return (
        f"Trying to decode {kind} format using a wrong op. Use `decode_bmp` or `decode_image` "
        f"instead. Op used: {op}"
    )


def _check_channels(channels: int) -> None:
    if channels not in (0, 1, 3, 4):
        raise InvalidArgumentError(f"`channels` must be 0, 1, 3 or 4 but got {channels}")


def _decode_still(
    op: str,
    contents: np.ndarray,
    channels: int,
    dtype: DataType,
    pixels_of_jpeg: JpegPixels = jpeg_pixels,
) -> tuple[np.ndarray, str, DataType]:
    """Return (pixels, format, `dtype`) for DecodeJpeg, DecodePng and DecodeWebP.

    These ops accept every format except BMP, and a GIF only if it has a single frame.
    """
    _check_channels(channels)
    data, kind = _read(contents)
    if kind == "BMP":
        raise InvalidArgumentError(_wrong_op_message("BMP", op))
    if kind == "WebP":
        _check_webp_type(dtype)
        return _webp(data, channels), kind, dtype
    if kind == "GIF":
        frames = _gif_frames(data)
        if len(frames) > 1:
            raise InvalidArgumentError(
                f"Got {len(frames)} frames, but animated gifs can only be decoded by "
                "tf.io.decode_gif or tf.io.decode_image"
            )
        return frames[0], kind, dtype
    return _decode(data, kind, channels, dtype, pixels_of_jpeg), kind, dtype


def _check_webp_type(dtype: DataType) -> None:
    if dtype != DataType.UINT8:
        raise InvalidArgumentError("WebP only supports uint8 for dtype")


def _webp(data: bytes, channels: int, limit: int | None = None) -> np.ndarray:
    try:
        image = open_image(data)
    except InvalidArgumentError:
        raise InvalidArgumentError("Failed to decode WebP image.") from None
    return webp_frames(image, channels, limit, MAX_PIXELS)


def _to_dtype(pixels: np.ndarray, kind: str, dtype: DataType) -> np.ndarray:
    """Return the pixels scaled to the range of `dtype`."""
    if pixels.dtype == dtype.numpy:
        return pixels
    if dtype == DataType.FLOAT:
        return pixels.astype(np.float32) * np.float32(1 / np.iinfo(pixels.dtype).max)
    factor = 257 if kind == "PNG" else 256  # libpng repeats the byte, other decoders shift it
    return pixels.astype(np.uint16) * np.uint16(factor)


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


INVALID = {
    "PNG": "Invalid PNG data, size {size}",
    "GIF": "Invalid GIF data (size {size}), only a partial file or an unsupported one",
}


def _decode(
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


def _gif_frames(data: bytes, limit: int | None = None) -> np.ndarray:
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


def _bmp_pixels(data: bytes, channels: int) -> np.ndarray:
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


KERNELS = (
    KernelDef("DecodeAndCropJpeg", decode_and_crop_jpeg, expensive=True),
    KernelDef("DecodeBmp", decode_bmp),
    KernelDef("DecodeGif", decode_gif, expensive=True),
    KernelDef("DecodeImage", decode_image, expensive=True),
    KernelDef("DecodeJpeg", decode_jpeg, expensive=True),
    KernelDef("DecodePng", decode_png, expensive=True),
    KernelDef("DecodeWebP", decode_webp, expensive=True),
    KernelDef("ExtractJpegShape", extract_jpeg_shape),
)
