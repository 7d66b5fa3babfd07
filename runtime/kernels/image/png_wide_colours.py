"""PNG images with colours of 16 bits, of which Pillow keeps only the high bytes.

To obtain the low bytes, the file is decoded again with another of Pillow's unpackers. If the image
is grey with alpha, the unpacker reads four plain bytes per pixel. Else it is the unpacker for
little-endian numbers, which takes the second byte of each number for the high byte.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # only then, because servers without image ops never load Pillow
    from PIL import ImageFile

_GREY_AND_ALPHA = "LA;16B"


def wide_colours(image: ImageFile.ImageFile, data: bytes) -> np.ndarray:
    """Return the uint16 pixels `[h, w, c]` of a 16-bit PNG; `data` is the content of the file.

    If the file names a transparent colour, an alpha channel is added: 0 for that colour, opaque
    for every other colour.
    """
    unpacker = str(image.tile[0].args)
    if unpacker == _GREY_AND_ALPHA:
        pixels = _unpacked(data, "RGBA", "RGBA").view(">u2").astype(np.uint16)
    else:
        high = np.asarray(image)
        low = _unpacked(data, unpacker.removesuffix("B") + "L", image.mode)
        pixels = high.astype(np.uint16) << 8 | low
    transparent = image.info.get("transparency")
    if transparent is None:
        return pixels
    alpha = np.where((pixels == np.array(transparent)).all(axis=-1), 0, 0xFFFF)
    return np.concatenate([pixels, alpha[..., None].astype(np.uint16)], axis=-1)


def _unpacked(data: bytes, unpacker: str, mode: str) -> np.ndarray:
    from PIL import Image  # imported here because servers without image ops never load Pillow

    image = Image.open(io.BytesIO(data))
    image.tile = [part._replace(args=unpacker) for part in image.tile]
    image._mode = mode
    return np.asarray(image)
