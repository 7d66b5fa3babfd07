"""The pixels of image summaries, which no golden file can hold: PNG encoders differ."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

import protos as pb
from runtime.kernels.io.image_summaries import image_summary

BAD = np.array([255, 0, 0, 255], np.uint8)


def pictures(tensor: np.ndarray, max_images: int = 3) -> dict[str, np.ndarray]:
    tag = np.array(b"tag", object)
    text = image_summary(tag, tensor, max_images=max_images, bad_color=BAD)
    return {
        value.tag: np.asarray(Image.open(io.BytesIO(value.image.encoded_image_string)))
        for value in pb.Summary.FromString(text.item()).value
    }


def test_bytes_are_taken_as_they_are() -> None:
    tensor = np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3)
    found = pictures(tensor)
    assert list(found) == ["tag/image/0", "tag/image/1"]
    np.testing.assert_array_equal(found["tag/image/1"], tensor[1])


def test_one_image_has_no_number() -> None:
    assert list(pictures(np.zeros((2, 1, 1, 1), np.uint8), max_images=1)) == ["tag/image"]


def test_the_largest_value_becomes_white() -> None:
    tensor = np.array([0.0, 1.0, 2.0, 4.0], np.float32).reshape(1, 2, 2, 1)
    assert pictures(tensor)["tag/image/0"].ravel().tolist() == [0, 63, 127, 255]


def test_zero_becomes_the_middle_beside_negative_values() -> None:
    tensor = np.array([-2.0, 0.0, 1.0, 2.0], np.float32).reshape(1, 2, 2, 1)
    assert pictures(tensor)["tag/image/0"].ravel().tolist() == [1, 128, 191, 255]


def test_a_pixel_that_is_not_finite_gets_the_bad_color() -> None:
    tensor = np.array([[1, 1, 1], [np.nan, 0, 0]], np.float32).reshape(1, 1, 2, 3)
    assert pictures(tensor)["tag/image/0"].tolist() == [[[255, 255, 255], [255, 0, 0]]]
