"""Random crops of an image that cover a minimum part of at least one bounding box.

If a seed is given, the crops are equal to TensorFlow's: the random numbers are the same, and areas
are computed in float32 too.

TF: tensorflow/core/kernels/image/sample_distorted_bounding_box_op.cc
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.philox import Philox, WordSequence
from runtime.framework.shapes import shape_text
from runtime.kernels.random.random_stateful import reserve
from runtime.kernels.random.random_stateless import stream_of_seed

F32 = np.float32
INT32_MAX = (1 << 31) - 1
LARGEST_UNDER_HALF = 0.5 - float(F32(0.0000001))
SIZE_TYPES = (DataType.UINT8, DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64)


Crop = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle of pixels: columns `x` to `right` and rows `y` to `bottom`, ends excluded."""

    x: int
    y: int
    right: int
    bottom: int

    @property
    def area(self) -> int:
        """Return the number of pixels."""
        return max(self.right - self.x, 0) * max(self.bottom - self.y, 0)

    def common(self, other: Rectangle) -> Rectangle:
        """Return the intersection; its area is 0 if the rectangles do not overlap."""
        return Rectangle(
            max(self.x, other.x),
            max(self.y, other.y),
            min(self.right, other.right),
            min(self.bottom, other.bottom),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """The constraints on a crop. Raises InvalidArgumentError if one is invalid."""

    min_object_covered: float
    aspect_ratio_range: Sequence[float]
    area_range: Sequence[float]
    max_attempts: int
    use_image_if_no_bounding_boxes: bool

    def __post_init__(self) -> None:
        for name, pair in (("Aspect ratio", self.aspect_ratio_range), ("Area", self.area_range)):
            if len(pair) != 2:
                raise InvalidArgumentError(f"{name} range field must specify 2 dimensions")
            if not (pair[0] > 0 and pair[1] > 0):
                raise InvalidArgumentError(f"{name} range must be non-negative: {_pair(pair)}")
        if not (self.area_range[0] <= 1 and self.area_range[1] <= 1):
            raise InvalidArgumentError(
                f"Area range must be less then or equal to 1.0: {_pair(self.area_range)}"
            )
        if self.max_attempts <= 0:
            raise InvalidArgumentError(f"Max attempts must be non-negative: {self.max_attempts}")
        if not self.min_object_covered >= 0:  # the negation raises for NaN too
            raise InvalidArgumentError(
                f"Min object covered must be non-negative: {self.min_object_covered:g}"
            )


def _pair(values: Sequence[float]) -> str:
    return f"[{values[0]:g}, {values[1]:g}]"


def _image(size: np.ndarray) -> Rectangle:
    if size.ndim != 1:
        raise InvalidArgumentError(f"image_size must be 1-dimensional{shape_text(size.shape)}")
    if len(size) != 3:
        raise InvalidArgumentError(f"image_size must contain 3 elements{shape_text(size.shape)}")
    height, width = map(int, size[:2])
    for name, length in (("height", height), ("width", width)):
        if not 0 <= length < INT32_MAX:
            raise InvalidArgumentError(f"image {name} cannot be >= int32 max")
    return Rectangle(0, 0, width, height)


def _objects(boxes: np.ndarray, image: Rectangle, or_image: bool) -> list[Rectangle]:
    """Return `boxes` `[batch, n, 4]` as rectangles of pixels; a box is (y, x, bottom, right).

    Raises InvalidArgumentError if a coordinate is not in [0, 1]. If there are no boxes, returns
    `[image]` if `or_image` is true, and else raises InvalidArgumentError.
    """
    if boxes.ndim != 3:
        raise InvalidArgumentError(
            "input boxes must be 3-dimensional [batch, num_boxes, coords]: "
            f"{shape_text(boxes.shape)}"
        )
    if not boxes.shape[0] * boxes.shape[1]:
        if not or_image:
            raise InvalidArgumentError(
                "No bounding boxes provided as input. One must enable "
                "use_image_if_no_bounding_boxes if you wish to not provide any bounding boxes."
            )
        return [image]
    if boxes.shape[2] != 4:
        raise InvalidArgumentError(
            f"bounding boxes must have shape [4] or [*, 4], got {shape_text(boxes.shape)}"
        )
    outside = ~((boxes >= 0) & (boxes <= 1))
    if outside.any():
        raise InvalidArgumentError(
            f"All bounding box coordinates must be in [0.0, 1.0]: {boxes[outside][0]:g}"
        )
    lengths = np.array([image.bottom, image.right, image.bottom, image.right], F32)
    corners = (boxes.reshape(-1, 4) * lengths).astype(np.int32).tolist()
    return [Rectangle(x, y, right, bottom) for y, x, bottom, right in corners]


def _below(words: WordSequence, limit: int) -> int:
    """Return a uniform random integer in [0, limit).

    TF: exact_uniform_int.h
    """
    if limit & (limit - 1) == 0:
        return words.take() & (limit - 1)
    unfair = ((1 << 32) - 1) % limit + 1
    while (word := words.take()) < unfair:
        pass
    return word % limit


def _rounded(value: np.floating[Any]) -> int:
    return int(np.rint(value))


def _crop(image: Rectangle, limits: Limits, words: WordSequence) -> Rectangle | None:
    """Return a random crop, or None if it does not fit into the image or violates the limits."""
    low, high = map(F32, limits.aspect_ratio_range)
    # The upper 23 bits are a number in [1, 2). TF: random_distributions_utils.h (Uint32ToFloat)
    one_to_two = np.array(words.take() & 0x7FFFFF | 127 << 23, np.uint32).view(F32)
    aspect = F32((one_to_two - F32(1)) * (high - low) + low)
    full_height, full_width = image.bottom, image.right
    least, most = (F32(each) * F32(full_width) * F32(full_height) for each in limits.area_range)
    if not full_height or not full_width or least > most:
        return None
    height, tallest = (_rounded(np.sqrt(area / aspect)) for area in (least, most))
    if _rounded(F32(tallest) * aspect) > full_width:
        tallest = int((full_width + LARGEST_UNDER_HALF) / float(aspect))
        tallest -= _rounded(F32(tallest) * aspect) > full_width
    tallest = min(tallest, full_height)
    height = min(height, tallest)
    if height < tallest:
        height += _below(words, tallest - height + 1)
    width = _rounded(F32(height) * aspect)
    for is_off, step in ((F32(width * height) < least, 1), (F32(width * height) > most, -1)):
        if is_off:
            height += step
            width = _rounded(F32(height) * aspect)
    if not least <= F32(width * height) <= most or width > full_width or height > full_height:
        return None
    if width <= 0 or height <= 0:
        return None
    y = _below(words, full_height - height) if height < full_height else 0
    x = _below(words, full_width - width) if width < full_width else 0
    return Rectangle(x, y, x + width, y + height)


def _covers(crop: Rectangle, objects: Sequence[Rectangle], covered: np.floating[Any]) -> bool:
    return any(
        F32(crop.common(each).area) / F32(each.area) >= covered for each in objects if each.area
    )


def _sample(image_size: np.ndarray, boxes: np.ndarray, limits: Limits, stream: Philox) -> Crop:
    """Choose a crop; return its begin `[3]`, its size `[3]`, and the crop as a box `[1, 1, 4]`.

    If no attempt succeeds, the crop is the whole image.
    """
    image = _image(image_size)
    objects = _objects(boxes, image, limits.use_image_if_no_bounding_boxes)
    words, covered = WordSequence(stream), F32(limits.min_object_covered)
    for _ in range(limits.max_attempts):
        check_task()
        crop = _crop(image, limits, words)
        if crop is not None and _covers(crop, objects, covered):
            break
    else:
        crop = image
    whole = np.array([image.bottom, image.right] * 2, F32)
    with np.errstate(invalid="ignore"):  # 0 / 0 in an image without pixels
        corners = np.array([crop.y, crop.x, crop.bottom, crop.right], F32) / whole
    begin = np.array([crop.y, crop.x, 0], image_size.dtype)
    rest = np.array(-1).astype(image_size.dtype)  # −1, or 255 as uint8, means all channels
    size = np.array([crop.bottom - crop.y, crop.right - crop.x, rest], image_size.dtype)
    return begin, size, corners.reshape(1, 1, 4)


def _scalar(min_object_covered: np.ndarray) -> float:
    if np.ndim(min_object_covered):
        raise InvalidArgumentError(
            f"min_object_covered must be 0-D, got shape {shape_text(np.shape(min_object_covered))}"
        )
    return float(min_object_covered)


def _limits(context: OpKernelContext, min_object_covered: float) -> Limits:
    names = (
        "aspect_ratio_range",
        "area_range",
        "max_attempts",
        "use_image_if_no_bounding_boxes",
    )
    return Limits(min_object_covered, *(context.attr(name) for name in names))


def sample_distorted_bounding_box(
    context: OpKernelContext,
    image_size: np.ndarray,
    bounding_boxes: np.ndarray,
    *,
    min_object_covered: float,
) -> Crop:
    """SampleDistortedBoundingBox: return a crop chosen with the node's random sequence."""
    limits = _limits(context, min_object_covered)
    return _sample(image_size, bounding_boxes, limits, reserve(context, limits.max_attempts))


def sample_distorted_bounding_box_v2(
    context: OpKernelContext,
    image_size: np.ndarray,
    bounding_boxes: np.ndarray,
    min_object_covered: np.ndarray,
) -> Crop:
    """SampleDistortedBoundingBoxV2: return a crop; `min_object_covered` is a tensor, shape []."""
    covered = _scalar(min_object_covered)
    return sample_distorted_bounding_box(
        context, image_size, bounding_boxes, min_object_covered=covered
    )


def stateless_sample_distorted_bounding_box(
    context: OpKernelContext,
    image_size: np.ndarray,
    bounding_boxes: np.ndarray,
    min_object_covered: np.ndarray,
    seed: np.ndarray,
) -> Crop:
    """StatelessSampleDistortedBoundingBox: return the crop determined by `seed` `[2]`."""
    limits = _limits(context, _scalar(min_object_covered))
    return _sample(image_size, bounding_boxes, limits, stream_of_seed(seed))


KERNELS = (
    KernelDef("SampleDistortedBoundingBox", sample_distorted_bounding_box, {"T": SIZE_TYPES}),
    KernelDef("SampleDistortedBoundingBoxV2", sample_distorted_bounding_box_v2, {"T": SIZE_TYPES}),
    KernelDef(
        "StatelessSampleDistortedBoundingBox",
        stateless_sample_distorted_bounding_box,
        {"T": SIZE_TYPES},
    ),
)
