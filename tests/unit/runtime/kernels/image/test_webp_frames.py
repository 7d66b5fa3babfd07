"""Frames of animated WebP images, for which TensorFlow 2.21 has no answer: it ends."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from runtime.foundation.errors import InvalidArgumentError, ResourceExhaustedError
from runtime.framework.dtypes import DataType
from runtime.kernels.image.image_decode import decode_image, decode_webp
from runtime.kernels.image.image_files import open_image
from runtime.kernels.image.webp_frames import webp_frames

FRAMES = np.random.default_rng(5).integers(0, 256, (3, 4, 6, 4), dtype=np.uint8)
FRAMES[..., 3] = 255


def animation(mode: str) -> bytes:
    images = [Image.fromarray(each).convert(mode) for each in FRAMES]
    data = io.BytesIO()
    images[0].save(data, "WEBP", save_all=True, append_images=images[1:], lossless=True)
    return data.getvalue()


def test_an_animation_gives_all_its_frames() -> None:
    contents = np.array(animation("RGB"), object)
    got = decode_webp(contents, channels=3, dtype=DataType.UINT8)
    assert np.array_equal(got, FRAMES[..., :3])
    still = decode_image(contents, channels=0, dtype=DataType.UINT8, expand_animations=False)
    assert np.array_equal(still, FRAMES[0, ..., :3])


def test_the_frames_of_an_animation_count_together() -> None:
    image = open_image(animation("RGB"))
    with pytest.raises(ResourceExhaustedError, match="WebP of 3 frames of 6 x 4 pixels exceeds"):
        webp_frames(image, 0, None, 71)
    assert webp_frames(image, 0, 2, 71).shape == (2, 4, 6, 3)


def test_a_damaged_animation_is_refused() -> None:
    data = animation("RGB")
    contents = np.array(data[: len(data) // 2], object)
    with pytest.raises(InvalidArgumentError, match=r"^Failed to decode WebP image\.$"):
        decode_webp(contents, channels=0, dtype=DataType.UINT8)
