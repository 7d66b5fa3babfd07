"""Encoding images as JPEG and PNG.

TF: tensorflow/core/kernels/image/encode_jpeg_op.cc, encode_png_op.cc
"""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import string_tensor

PNG_COLOUR_TYPE = {1: 0, 2: 4, 3: 2, 4: 6}  # for each number of channels
JPEG_CHANNELS = {"grayscale": 1, "rgb": 3}
CENTIMETRES_PER_INCH = 2.54
ROWS_AT_ONCE = 64  # rows filtered at once; bounds the memory for the results of all five filters


def encode_png(image: np.ndarray, *, compression: int) -> np.ndarray:
    """EncodePng: encode images `[…, h, w, c]`, uint8 or uint16, as PNG files, strings `[…]`."""
    if image.ndim < 3:
        raise InvalidArgumentError(f"images must be at least rank 3{shape_text(image.shape)}")
    if not -1 <= compression <= 9:
        raise InvalidArgumentError(f"compression should be in [-1,9], got {compression}")
    channels = image.shape[-1]
    if channels not in PNG_COLOUR_TYPE:
        raise InvalidArgumentError(f"image must have 1, 2, 3, or 4 channels, got {channels}")
    batch = image.shape[:-3]
    flat = image.reshape(-1, *image.shape[-3:]) if image.size else np.zeros((0, 1, 1, 1))
    if image.size == 0 and 0 not in batch:
        raise InternalError("PNG encoding failed at the following flattened batch indices: 0")
    return string_tensor([_png(each, compression) for each in flat], batch)


def _png(pixels: np.ndarray, compression: int) -> bytes:
    height, width, channels = pixels.shape
    big_endian = np.ascontiguousarray(pixels).astype(pixels.dtype.newbyteorder(">"))
    rows = big_endian.view(np.uint8).reshape(height, -1)
    header = struct.pack(
        ">IIBBBBB", width, height, 8 * pixels.dtype.itemsize, PNG_COLOUR_TYPE[channels], 0, 0, 0
    )
    packer = zlib.compressobj(compression, strategy=zlib.Z_FILTERED)
    step = channels * pixels.dtype.itemsize
    body = b"".join(
        packer.compress(_filtered(rows, first, step).tobytes())
        for first in range(0, height, ROWS_AT_ONCE)
    )
    body += packer.flush()
    chunks = ((b"IHDR", header), (b"IDAT", body), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _filtered(rows: np.ndarray, first: int, step: int) -> np.ndarray:
    """Return up to ROWS_AT_ONCE filtered rows of bytes, from row `first` on.

    Each row is filtered by the PNG filter of least cost, and begins with the number of that filter.
    The cost is the sum of the absolute values of the bytes as int8. Adjacent pixels are `step`
    bytes apart.
    """
    row = rows[first : first + ROWS_AT_ONCE]
    above = np.zeros_like(row)
    above[first == 0 :] = rows[max(first - 1, 0) : first - 1 + len(row)]
    left, corner = np.zeros_like(row), np.zeros_like(row)
    left[:, step:], corner[:, step:] = row[:, :-step], above[:, :-step]
    mean = ((left.astype(np.uint16) + above) >> 1).astype(np.uint8)
    candidates = (row, row - left, row - above, row - mean, row - _paeth(left, above, corner))
    costs = [np.abs(each.view(np.int8).astype(np.int16)).sum(axis=1) for each in candidates]
    best = np.argmin(costs, axis=0)
    result = np.empty((len(row), 1 + row.shape[1]), np.uint8)
    result[:, 0] = best
    for number, each in enumerate(candidates):
        result[best == number, 1:] = each[best == number]
    return result


def _paeth(left: np.ndarray, above: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """Return, for each byte, the argument nearest to left + above - corner (Paeth's predictor)."""
    wide_left, wide_above, wide_corner = (each.astype(np.int16) for each in (left, above, corner))
    from_left = np.abs(wide_above - wide_corner)
    from_above = np.abs(wide_left - wide_corner)
    from_corner = np.abs(wide_left + wide_above - 2 * wide_corner)
    upper = np.where(from_above <= from_corner, above, corner)
    return np.where((from_left <= from_above) & (from_left <= from_corner), left, upper)


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


def encode_jpeg(
    image: np.ndarray,
    *,
    format: str,
    quality: int,
    progressive: bool,
    optimize_size: bool,
    chroma_downsampling: bool,
    density_unit: str,
    x_density: int,
    y_density: int,
    xmp_metadata: str,
) -> np.ndarray:
    """EncodeJpeg: encode pixels uint8 `[h, w, 1 or 3]` as a JPEG file, a string of shape []."""
    _check_quality(quality)
    _check_image(image)
    expected = JPEG_CHANNELS.get(format, image.shape[2])
    if image.shape[2] != expected:
        raise InvalidArgumentError(
            f"format {format} expects {expected} channels, got {shape_text(image.shape)}"
        )
    scale = CENTIMETRES_PER_INCH if density_unit == "cm" else 1
    options: dict[str, object] = {
        "quality": quality,
        "progressive": progressive,
        "optimize": optimize_size,
        "subsampling": "4:2:0" if chroma_downsampling else "4:4:4",
        "dpi": (x_density * scale, y_density * scale),
    }
    if xmp_metadata:
        options["xmp"] = xmp_metadata.encode("utf-8", "surrogateescape")
    return _jpeg(image, options)


def encode_jpeg_variable_quality(images: np.ndarray, quality: np.ndarray) -> np.ndarray:
    """EncodeJpegVariableQuality: encode pixels uint8 `[h, w, 1 or 3]` as a JPEG file.

    `quality` is an int32 tensor of shape [].
    """
    if np.ndim(quality):
        raise InvalidArgumentError(f"quality must be scalar: {shape_text(np.shape(quality))}")
    _check_image(images)
    _check_quality(int(quality))
    return _jpeg(images, {"quality": int(quality), "subsampling": "4:2:0"})


def _check_quality(quality: int) -> None:
    if not 0 <= quality <= 100:
        raise InvalidArgumentError(f"quality must be in [0,100], got {quality}")


def _check_image(image: np.ndarray) -> None:
    if image.ndim != 3:
        raise InvalidArgumentError(f"image must be 3-dimensional{shape_text(image.shape)}")
    if image.shape[2] not in (1, 3):
        raise InvalidArgumentError(
            f"image must have 1 or 3 channels, got {shape_text(image.shape)}"
        )


def _jpeg(pixels: np.ndarray, options: dict[str, object]) -> np.ndarray:
    if pixels.size == 0:
        raise InternalError("JPEG encoding failed")
    # Imported at the first image, so that servers without image ops never load Pillow.
    from PIL import Image

    image = Image.fromarray(
        np.ascontiguousarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    )
    target = io.BytesIO()
    try:
        image.save(target, "JPEG", **options)
    except (OSError, ValueError) as error:
        raise InternalError(f"JPEG encoding failed: {error}") from None
    return string_tensor([target.getvalue()], ())


KERNELS = (
    KernelDef("EncodeJpeg", encode_jpeg, expensive=True),
    KernelDef("EncodeJpegVariableQuality", encode_jpeg_variable_quality, expensive=True),
    KernelDef("EncodePng", encode_png, expensive=True),
)
