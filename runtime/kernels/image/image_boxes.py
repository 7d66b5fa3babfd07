"""Boxes in images: CropAndResize and its gradients, and DrawBoundingBoxes.

Box coordinates are (y1, x1, y2, x2). The first row or column of the image is 0, the last is 1.

TF: tensorflow/core/kernels/image/crop_and_resize_op.cc, draw_bounding_box_op.cc
"""

from __future__ import annotations

import dataclasses
import functools
import operator

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, OutOfRangeError
from runtime.foundation.intra_op_pool import shard
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import REAL_NUMBER_TYPES
from runtime.framework.shapes import shape_text

CROP_BYTES = 1 << 18  # bytes of crops computed at once, so that they stay in a core's cache


@dataclasses.dataclass(frozen=True, slots=True)
class _CropAxis:
    """Image positions of each crop's rows (or columns); every field is `[boxes, crop]`."""

    positions: np.ndarray  # float32
    is_inside: np.ndarray  # bool
    lower: np.ndarray  # int64
    upper: np.ndarray
    fraction: np.ndarray  # float32; 0 is at lower, 1 at upper

    @classmethod
    def place(cls, low: np.ndarray, high: np.ndarray, image: int, crop: int) -> _CropAxis:
        """Return the positions of `crop` rows in an image of `image` rows.

        For each box, they go from `low` to `high` `[boxes]`, where 1 is the last row of the image.
        """
        last = np.float32(image - 1)
        if crop > 1:
            step = (high - low) * last / np.float32(crop - 1)
            positions = (low * last)[:, None] + np.arange(crop, dtype=np.float32) * step[:, None]
        else:
            positions = (np.float32(0.5) * (low + high) * last)[:, None]
        is_inside = (positions >= 0) & (positions <= last)
        safe = np.where(is_inside, positions, np.float32(0))
        lower = np.floor(safe)
        return cls(
            positions,
            is_inside,
            lower.astype(np.int64),
            np.ceil(safe).astype(np.int64),
            safe - lower,
        )

    def of(self, boxes: slice) -> _CropAxis:
        """Return the positions of the boxes in the slice `boxes`."""
        fields = (self.positions, self.is_inside, self.lower, self.upper, self.fraction)
        return _CropAxis(*(each[boxes] for each in fields))

    def nearest(self) -> np.ndarray:
        """Return the image row nearest to each position, int64; halves are rounded up."""
        safe = np.where(self.is_inside, self.positions, np.float32(0))
        return np.floor(safe + np.float32(0.5)).astype(np.int64)


def crop_and_resize(
    image: np.ndarray,
    boxes: np.ndarray,
    box_ind: np.ndarray,
    crop_size: np.ndarray,
    *,
    method: str,
    extrapolation_value: float,
) -> np.ndarray:
    """CropAndResize: crop each box out of its image, and resize the crop to `crop_size`.

    `boxes` is `[n, 4]`; box i is in image `box_ind[i]` of `image`. Returns float32
    `[n, *crop_size, c]`; pixels outside the image are `extrapolation_value`.
    """
    _check_image(image)
    _check_boxes(boxes, box_ind)
    if np.ndim(crop_size) != 1 or np.size(crop_size) != 2:
        raise InvalidArgumentError(
            f"crop_size must have two elements{shape_text(np.shape(crop_size))}"
        )
    height, width = (int(size) for size in crop_size)
    if height <= 0 or width <= 0:
        raise InvalidArgumentError("crop dimensions must be positive")
    check_allocation((boxes.shape[0], height, width, image.shape[3]), np.float32)
    _check_indices(box_ind, image.shape[0])
    if not np.isfinite(boxes).all():
        raise InvalidArgumentError("Boxes contains at least one element that is not finite")
    rows = _CropAxis.place(boxes[:, 0], boxes[:, 2], image.shape[1], height)
    columns = _CropAxis.place(boxes[:, 1], boxes[:, 3], image.shape[2], width)
    crops = np.empty((len(boxes), height, width, image.shape[3]), np.float32)
    pixels = image.reshape(-1, image.shape[3])
    first_row = box_ind.astype(np.int64) * image.shape[1]
    at_once = max(1, CROP_BYTES // max(crops[:1].nbytes, 1))

    def work(start: int, limit: int) -> None:
        for first in range(start, limit, at_once):
            part = slice(first, min(first + at_once, limit))
            crop = _Crops(pixels, first_row[part], image.shape[2], rows.of(part), columns.of(part))
            crops[part] = crop.nearest() if method == "nearest" else crop.bilinear()
            inside = crop.rows.is_inside[:, :, None] & crop.columns.is_inside[:, None]
            if not inside.all():
                crops[part][~inside] = extrapolation_value

    shard(len(boxes), crops[:1].size * 4, work)
    return crops


@dataclasses.dataclass(frozen=True, slots=True)
class _Crops:
    """The crops of a slice of the boxes.

    `pixels` `[rows · width, c]` are the pixels of all images. `first_row` `[boxes]` is the index of
    the first row of each box's image.
    """

    pixels: np.ndarray
    first_row: np.ndarray
    width: int
    rows: _CropAxis
    columns: _CropAxis

    def nearest(self) -> np.ndarray:
        return self._at(self.rows.nearest(), self.columns.nearest())

    def bilinear(self) -> np.ndarray:
        lower, upper = self.columns.lower, self.columns.upper
        across = self.columns.fraction[:, None, :, None]
        top, bottom = (
            _interpolated(self._at(row, lower), self._at(row, upper), across)
            for row in (self.rows.lower, self.rows.upper)
        )
        return _interpolated(top, bottom, self.rows.fraction[:, :, None, None])

    def _at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        lines = (rows + self.first_row[:, None]) * self.width
        places = lines[:, :, None] + columns[:, None]
        return self.pixels.take(places, axis=0).astype(np.float32, copy=False)


def _interpolated(low: np.ndarray, high: np.ndarray, fraction: np.ndarray) -> np.ndarray:
    return low + (high - low) * fraction


def _check_image(image: np.ndarray) -> None:
    if image.ndim != 4:
        raise InvalidArgumentError(f"input image must be 4-D{shape_text(image.shape)}")
    if image.shape[1] <= 0 or image.shape[2] <= 0:
        raise InvalidArgumentError("image dimensions must be positive")


def _check_vector(box_ind: np.ndarray) -> None:
    if box_ind.ndim != 1:
        raise InvalidArgumentError(
            f"box_indices must be rank 1 but is shape {shape_text(box_ind.shape)}"
        )


def _check_boxes(boxes: np.ndarray, box_ind: np.ndarray) -> None:
    if boxes.size == 0 and box_ind.size == 0 and boxes.ndim == 2:
        _check_vector(box_ind)
        return
    if boxes.ndim != 2:
        raise InvalidArgumentError(f"boxes must be 2-D, got: {shape_text(boxes.shape)}")
    if boxes.shape[1] != 4:
        raise InvalidArgumentError("boxes must have 4 columns")
    _check_vector(box_ind)
    if box_ind.shape[0] != boxes.shape[0]:
        raise InvalidArgumentError("box_index has incompatible shape")


def _check_indices(box_ind: np.ndarray, batch: int) -> None:
    if ((box_ind < 0) | (box_ind >= batch)).any():
        raise OutOfRangeError("box_index has values outside [0, batch_size)")


def _check_grads(grads: np.ndarray) -> None:
    if grads.ndim != 4:
        raise InvalidArgumentError(f"grads image must be 4-D{shape_text(grads.shape)}")
    if grads.shape[1] <= 0 or grads.shape[2] <= 0:
        raise InvalidArgumentError("grads dimensions must be positive")


def crop_and_resize_grad_image(
    grads: np.ndarray,
    boxes: np.ndarray,
    box_ind: np.ndarray,
    image_size: np.ndarray,
    *,
    T: DataType,  # noqa: N803 # the attribute's name
    method: str,
) -> np.ndarray:
    """CropAndResizeGradImage: return the gradient of CropAndResize with respect to `image`.

    `image_size` is the shape of `image`, (n, h, w, c); the gradient has that shape.
    """
    _check_grads(grads)
    _check_boxes(boxes, box_ind)
    if np.shape(image_size) != (4,):
        raise InvalidArgumentError(
            f"image_size must have 4 elements{shape_text(np.shape(image_size))}"
        )
    shape = tuple(int(size) for size in image_size)
    if shape[1] <= 0 or shape[2] <= 0:
        raise InvalidArgumentError("image dimensions must be positive")
    if shape[3] != grads.shape[3] or grads.shape[0] != boxes.shape[0]:
        raise InvalidArgumentError("image_size and grads are incompatible")
    check_allocation(shape, np.float64)
    _check_indices(box_ind, shape[0])
    rows = _CropAxis.place(boxes[:, 0], boxes[:, 2], shape[1], grads.shape[1])
    columns = _CropAxis.place(boxes[:, 1], boxes[:, 3], shape[2], grads.shape[2])
    is_inside = rows.is_inside[:, :, None] & columns.is_inside[:, None]
    total = np.zeros((shape[0] * shape[1] * shape[2], shape[3]), np.float64)

    def spread(y: np.ndarray, x: np.ndarray, *weights: np.ndarray) -> None:
        """Add the gradients, multiplied by each of `weights`, to `total` at rows `y`, columns `x`.

        The order of the multiplications is TensorFlow's, so that rounding is the same.
        """
        target = (box_ind[:, None, None] * shape[1] + y[:, :, None]) * shape[2] + x[:, None]
        np.add.at(
            total, target[is_inside], functools.reduce(operator.mul, weights, grads)[is_inside]
        )

    if method == "nearest":
        spread(rows.nearest(), columns.nearest())
    else:
        down, across = rows.fraction[:, :, None, None], columns.fraction[:, None, :, None]
        spread(rows.lower, columns.lower, 1 - down, 1 - across)
        spread(rows.lower, columns.upper, 1 - down, across)
        spread(rows.upper, columns.lower, down, 1 - across)
        spread(rows.upper, columns.upper, down, across)
    return total.reshape(shape).astype(T.numpy)


def crop_and_resize_grad_boxes(
    grads: np.ndarray, image: np.ndarray, boxes: np.ndarray, box_ind: np.ndarray
) -> np.ndarray:
    """CropAndResizeGradBoxes: return the gradient of the bilinear CropAndResize for `boxes`.

    The gradient is float32 `[n, 4]`.
    """
    _check_grads(grads)
    _check_image(image)
    _check_boxes(boxes, box_ind)
    if image.shape[3] != grads.shape[3] or grads.shape[0] != boxes.shape[0]:
        raise InvalidArgumentError("image, grads depth differ")
    _check_indices(box_ind, image.shape[0])
    (_, height, width, _), (_, crop_height, crop_width, _) = image.shape, grads.shape
    rows = _CropAxis.place(boxes[:, 0], boxes[:, 2], height, crop_height)
    columns = _CropAxis.place(boxes[:, 1], boxes[:, 3], width, crop_width)
    is_inside = rows.is_inside[:, :, None] & columns.is_inside[:, None]
    batch = box_ind[:, None, None]

    def pixels(y: np.ndarray, x: np.ndarray) -> np.ndarray:
        return image[batch, y[:, :, None], x[:, None]].astype(np.float32, copy=False)

    top_left, top_right = pixels(rows.lower, columns.lower), pixels(rows.lower, columns.upper)
    bottom_left, bottom_right = (
        pixels(rows.upper, columns.lower),
        pixels(rows.upper, columns.upper),
    )
    down, across = rows.fraction[:, :, None, None], columns.fraction[:, None, :, None]
    along_y = _interpolated(bottom_left - top_left, bottom_right - top_right, across)
    along_x = _interpolated(top_right - top_left, bottom_right - bottom_left, down)
    # Gradients with respect to the positions of crop rows and columns. The edge weights below turn
    # them into gradients with respect to the edges of the box.
    by_row = np.where(is_inside, (along_y * grads).sum(axis=3), 0).sum(axis=2)
    by_column = np.where(is_inside, (along_x * grads).sum(axis=3), 0).sum(axis=1)
    low_y, high_y = _edge_weights(height, crop_height)
    low_x, high_x = _edge_weights(width, crop_width)
    parts = (by_row @ low_y, by_column @ low_x, by_row @ high_y, by_column @ high_x)
    return np.stack(parts, axis=1).astype(np.float32)


def _edge_weights(image: int, crop: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives of each crop position by the low edge and by the high edge.

    Each is `[crop]`.
    """
    if crop == 1:
        half = np.array([0.5 * (image - 1)])
        return half, half
    high = np.arange(crop) * (image - 1) / (crop - 1)
    return (image - 1) - high, high


# Colours of the outlines: yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia
BOX_COLOURS = np.array(
    [
        [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1], [0.5, 0, 0, 1], [0, 0, 0.5, 1], [0, 1, 1, 1], [1, 0, 1, 1],
    ],
    np.float32,
)  # fmt: skip


OUT_OF_INT64 = np.float32(1 << 63)  # a float of at least this magnitude becomes the lowest int64


def draw_bounding_boxes(images: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """DrawBoundingBoxes: return `images` with the outlines of `boxes`, in ten colours by turns.

    `images` is `[n, h, w, c]`, `boxes` is `[n, k, 4]`.
    """
    return draw_bounding_boxes_v2(images, boxes, np.zeros((0, 0), np.float32))


def draw_bounding_boxes_v2(images: np.ndarray, boxes: np.ndarray, colors: np.ndarray) -> np.ndarray:
    """DrawBoundingBoxesV2: return `images` with the outlines of `boxes`, in `colors` by turns.

    `colors` is `[m, at least c]`. If m is 0, the colours of DrawBoundingBoxes are used.
    """
    _check_drawing(images, boxes)
    depth = images.shape[3]
    if colors.ndim != 2:
        raise InvalidArgumentError(f"colors must be a 2-D matrix{shape_text(colors.shape)}")
    if colors.shape[0] == 0:
        colors = BOX_COLOURS if depth > 1 else np.ones((1, 1), np.float32)
    elif colors.shape[1] < depth:
        raise InvalidArgumentError(
            "colors must have equal or more channels than the image provided: "
            f"{shape_text(colors.shape)}"
        )
    result = images.copy()
    for image, own_boxes in zip(result, boxes, strict=True):
        for number, box in enumerate(own_boxes):
            _outline(image, box, colors[number % len(colors), :depth])
    return result


def _outline(image: np.ndarray, box: np.ndarray, color: np.ndarray) -> None:
    """Write the edges of `box` that are within `image` `[h, w, c]` into `image`."""
    height, width, _ = image.shape
    scaled = box.astype(np.float32) * np.array([height - 1, width - 1] * 2, np.float32)
    fits = np.abs(scaled) < OUT_OF_INT64  # the comparison is false for NaN
    top, left, bottom, right = (int(edge) for edge in np.where(fits, scaled, -OUT_OF_INT64))
    is_empty = top > bottom or left > right
    if is_empty or top >= height or bottom < 0 or left >= width or right < 0:
        return
    for name, size in (("row", height), ("col", width)):
        if not size:
            raise InvalidArgumentError(f"Max box {name} clamp is less than 0.")
    rows = slice(max(top, 0), min(bottom, height - 1) + 1)
    columns = slice(max(left, 0), min(right, width - 1) + 1)
    if top >= 0:
        image[top, columns] = color
    if bottom < height:
        image[bottom, columns] = color
    if left >= 0:
        image[rows, left] = color
    if right < width:
        image[rows, right] = color


def _check_drawing(images: np.ndarray, boxes: np.ndarray) -> None:
    if images.ndim != 4:
        raise InvalidArgumentError("The rank of the images should be 4")
    if boxes.ndim != 3:
        raise InvalidArgumentError("The rank of the boxes tensor should be 3")
    if images.shape[0] != boxes.shape[0]:
        raise InvalidArgumentError("The batch sizes should be the same")
    if images.shape[3] not in (1, 3, 4):
        raise InvalidArgumentError("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)")
    if boxes.shape[2] != 4:
        raise InvalidArgumentError(
            f"The size of the third dimension of the box must be 4. Received: {boxes.shape[2]}"
        )


_REAL = {"T": REAL_NUMBER_TYPES}
_SMALL = {"T": (DataType.HALF, DataType.FLOAT)}

KERNELS = (
    KernelDef("CropAndResize", crop_and_resize, _REAL),
    KernelDef("CropAndResizeGradBoxes", crop_and_resize_grad_boxes, _REAL),
    KernelDef(
        "CropAndResizeGradImage",
        crop_and_resize_grad_image,
        {"T": (DataType.HALF, DataType.FLOAT, DataType.DOUBLE)},
    ),
    KernelDef("DrawBoundingBoxes", draw_bounding_boxes, _SMALL),
    KernelDef("DrawBoundingBoxesV2", draw_bounding_boxes_v2, _SMALL),
)
