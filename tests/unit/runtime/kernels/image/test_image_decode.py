"""Limits of decoded images."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from runtime.foundation.errors import ResourceExhaustedError
from runtime.framework.dtypes import DataType
from runtime.kernels.image.image_decode import decode_gif, decode_png


def png_header(width: int, height: int) -> bytes:
    """A PNG file that claims a size and holds no pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = b""
    for body in (b"IHDR" + header, b"IDAT", b"IEND"):
        chunks += struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return b"\x89PNG\r\n\x1a\n" + chunks


@pytest.mark.parametrize("side", [9_000, 20_000])
def test_image_beyond_the_pixel_limit_is_refused_unread(side: int) -> None:
    contents = np.array(png_header(side, side), object)
    with pytest.raises(ResourceExhaustedError, match="exceeds"):
        decode_png(contents, channels=3, dtype=DataType.UINT8)


def test_frames_of_an_animation_count_towards_the_pixel_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frames = [Image.new("RGB", (4, 4), (shade, 0, 0)) for shade in range(0, 250, 50)]
    target = io.BytesIO()
    frames[0].save(target, "GIF", save_all=True, append_images=frames[1:])
    contents = np.array(target.getvalue(), object)
    assert decode_gif(contents).shape == (5, 4, 4, 3)
    monkeypatch.setattr("runtime.kernels.image.image_files.MAX_PIXELS", 3 * 16)
    with pytest.raises(ResourceExhaustedError, match="GIF of 4 or more frames"):
        decode_gif(contents)
