"""Decoding JPEG, PNG, GIF, BMP and WebP images.

As in TensorFlow, each op but DecodeGif and DecodeBmp accepts other formats too, and a WebP image
gives frames to every op: `[frames, h, w, c]`. `image_files.py` reads the formats.

TF: tensorflow/core/kernels/image/decode_image_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.image.image_files import (
    bmp_pixels,
    format_of,
    gif_frames,
    open_image,
    still_pixels,
    webp_pixels,
)
from runtime.kernels.image.jpeg_pixels import (
    ACCURATE_TRANSFORM,
    FAST_TRANSFORM,
    JpegPixels,
    jpeg_pixels,
)

OP_OF_FORMAT = {"JPEG": "decode_jpeg", "PNG": "decode_png", "GIF": "decode_gif"}


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
        return webp_pixels(data, 3)
    if kind == "BMP":
        raise InvalidArgumentError(_wrong_op_message("BMP", "DecodeGif"))
    if kind == "GIF":
        return gif_frames(data)
    return still_pixels(data, kind, 3, DataType.UINT8)[None]


def decode_bmp(contents: np.ndarray, *, channels: int) -> np.ndarray:
    """DecodeBmp: return the pixels uint8 `[h, w, channels]`.

    As in TensorFlow, palettes are not looked up.
    """
    _check_channels(channels)
    if channels == 1:
        raise InvalidArgumentError("`channels` must be 0, 3 or 4 for BMP, but got 1")
    data, kind = _read(contents)
    if kind == "WebP":
        return webp_pixels(data, channels)
    if kind != "BMP":
        advice = OP_OF_FORMAT.get(kind, "decode_image")
        raise InvalidArgumentError(
            f"Trying to decode {kind} format using DecodeBmp op. Use `{advice}` or "
            "`decode_image` instead."
        )
    return bmp_pixels(data, channels)


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
        frames = gif_frames(data, None if expand_animations else 1)
        return _to_dtype(frames if expand_animations else frames[0], kind, dtype)
    if kind == "BMP":
        return _to_dtype(bmp_pixels(data, channels), kind, dtype)
    if kind == "WebP":
        _check_webp_type(dtype)
        frames = webp_pixels(data, channels, None if expand_animations else 1)
        return frames if expand_animations else frames[0]
    return _to_dtype(still_pixels(data, kind, channels, dtype), kind, dtype)


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
    return data, format_of(data)


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
        return webp_pixels(data, channels), kind, dtype
    if kind == "GIF":
        frames = gif_frames(data)
        if len(frames) > 1:
            raise InvalidArgumentError(
                f"Got {len(frames)} frames, but animated gifs can only be decoded by "
                "tf.io.decode_gif or tf.io.decode_image"
            )
        return frames[0], kind, dtype
    return still_pixels(data, kind, channels, dtype, pixels_of_jpeg), kind, dtype


def _check_webp_type(dtype: DataType) -> None:
    if dtype != DataType.UINT8:
        raise InvalidArgumentError("WebP only supports uint8 for dtype")


def _to_dtype(pixels: np.ndarray, kind: str, dtype: DataType) -> np.ndarray:
    """Return the pixels scaled to the range of `dtype`."""
    if pixels.dtype == dtype.numpy:
        return pixels
    if dtype == DataType.FLOAT:
        return pixels.astype(np.float32) * np.float32(1 / np.iinfo(pixels.dtype).max)
    factor = 257 if kind == "PNG" else 256  # libpng repeats the byte, other decoders shift it
    return pixels.astype(np.uint16) * np.uint16(factor)


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
