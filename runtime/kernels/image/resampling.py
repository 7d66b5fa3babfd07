"""Resampling along one axis as weighted sums of a few inputs, the basis of all resize methods.

TF: tensorflow/core/util/image_resizer_state.h
"""

from __future__ import annotations

import dataclasses

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import check_allocation
from runtime.framework.shapes import shape_text
from runtime.kernels.math.row_runs import combine_runs, run_starts, stable_order


@dataclasses.dataclass(frozen=True, slots=True)
class Taps:
    """The inputs of each output along an axis, and their weights."""

    indices: np.ndarray  # int64 [outputs, taps]
    weights: np.ndarray  # float32 [outputs, taps]

    def apply(self, x: np.ndarray, axis: int) -> np.ndarray:
        """Return the outputs: weighted sums of `x` (float32 or float64) along `axis`."""
        total = self._part(x, axis, 0)
        for tap in range(1, self.indices.shape[1]):
            check_task()
            total += self._part(x, axis, tap)
        return total

    def _part(self, x: np.ndarray, axis: int, tap: int) -> np.ndarray:
        """Return the input at index `tap` of each output, multiplied by its weight."""
        part = np.take(x, self.indices[:, tap], axis)
        part *= self.weights[:, tap].reshape(-1, *(1,) * (x.ndim - 1 - axis))
        return part

    def of_numbers(self, channels: int) -> Taps:
        """Return the same taps for an axis on which a pixel is `channels` consecutive numbers."""
        indices = self.indices[:, None] * channels + np.arange(channels)[:, None]
        taps = self.indices.shape[1]
        return dataclasses.replace(
            self,
            indices=indices.reshape(-1, taps),
            weights=np.repeat(self.weights, channels, axis=0),
        )

    def apply_transposed(self, gradient: np.ndarray, axis: int, size: int) -> np.ndarray:
        """Return the gradient of `apply` for its input `x`, whose length along `axis` is `size`."""
        moved = np.ascontiguousarray(np.moveaxis(gradient, axis, 0))
        lines = moved.reshape(len(moved), -1)
        result = np.zeros((size, *moved.shape[1:]), gradient.dtype)
        weights = self.weights.astype(gradient.dtype)
        for tap in range(self.indices.shape[1]):
            check_task()
            rows = self.indices[:, tap]
            order = stable_order(rows, size)
            starts = run_starts(rows[order])
            part = lines * weights[:, tap, None]
            sums = combine_runs(np.add, part, order, starts, gradient.dtype)
            result.reshape(size, -1)[rows[order][starts]] += sums
        return np.moveaxis(result, 0, axis)


@dataclasses.dataclass(frozen=True, slots=True)
class LinearTaps(Taps):
    """Linear interpolation between two inputs."""

    def apply(self, x: np.ndarray, axis: int) -> np.ndarray:
        """Return `first + (second − first) · weight` for the two inputs of each output.

        As in TensorFlow, an output is NaN if `first` is infinite.
        """
        total = np.take(x, self.indices[:, 0], axis)
        way = np.take(x, self.indices[:, 1], axis)
        way -= total
        way *= self.weights[:, 1].reshape(-1, *(1,) * (x.ndim - 1 - axis))
        total += way
        return total


@dataclasses.dataclass(frozen=True, slots=True)
class AreaTaps(Taps):
    """Sums over runs of inputs of different lengths; shorter runs are filled with weight 0."""

    def _part(self, x: np.ndarray, axis: int, tap: int) -> np.ndarray:
        """Return the weighted input; as in TensorFlow, it is 0 if the weight is 0."""
        part = Taps._part(self, x, axis, tap)
        beyond = self.weights[:, tap] == 0
        if beyond.any():
            part[(slice(None),) * axis + (beyond,)] = 0
        return part


@dataclasses.dataclass(frozen=True, slots=True)
class Sampling:
    """The mapping from output positions along one axis to input positions."""

    inputs: int
    outputs: int
    align_corners: bool = False
    half_pixel_centers: bool = False

    @property
    def scale(self) -> np.float32:
        """The distance of two adjacent outputs, in input positions.

        `align_corners` has an effect only if there are at least two inputs and two outputs.
        """
        if self.align_corners and self.outputs > 1 and self.inputs > 1:
            return np.float32(self.inputs - 1) / np.float32(self.outputs - 1)
        return np.float32(self.inputs) / np.float32(self.outputs)

    def positions(self) -> np.ndarray:
        """Return the input position of each output: float32 [outputs]."""
        steps = np.arange(self.outputs, dtype=np.float32)
        if self.half_pixel_centers:
            return (steps + np.float32(0.5)) * self.scale - np.float32(0.5)
        return steps * self.scale

    def linear_taps(self) -> LinearTaps:
        """Return the taps of linear interpolation between the two inputs around each position."""
        positions = self.positions()
        floor = np.floor(positions)
        lower = np.maximum(floor, 0).astype(np.int64)
        upper = np.minimum(np.ceil(positions), self.inputs - 1).astype(np.int64)
        fraction = positions - floor
        indices = np.stack([np.minimum(lower, self.inputs - 1), np.maximum(upper, 0)], axis=1)
        return LinearTaps(indices, np.stack([1 - fraction, fraction], axis=1))

    def nearest(self) -> np.ndarray:
        """Return the index of the input nearest to each output: int64 [outputs]."""
        steps = np.arange(self.outputs, dtype=np.float32)
        if self.half_pixel_centers:
            steps = steps + np.float32(0.5)
        positions = steps * self.scale
        # As in C's roundf, halves are rounded away from zero.
        rounded = np.floor(positions + np.float32(0.5)) if self.align_corners else positions
        return np.clip(np.floor(rounded), 0, self.inputs - 1).astype(np.int64)


def resize_samplings(
    images: np.ndarray, size: np.ndarray, align_corners: bool, half_pixel_centers: bool
) -> tuple[Sampling, Sampling]:
    """Check a resize of `images` `[n, h, w, c]` to `size`, (height, width).

    Returns the sampling of rows and the sampling of columns.

    TF: ImageResizerState::ValidateAndCalculateOutputSize
    """
    if half_pixel_centers and align_corners:
        raise InvalidArgumentError("If half_pixel_centers is True, align_corners must be False.")
    if images.ndim != 4:
        raise InvalidArgumentError(f"input must be 4-dimensional{shape_text(images.shape)}")
    height, width = check_size(size, "shape_t")
    if images.shape[1] <= 0 or images.shape[2] <= 0:
        raise InvalidArgumentError("input image must be of non-zero size")
    if images.shape[3] <= 0:
        raise InvalidArgumentError("image must have at least one channel")
    check_allocation((images.shape[0], height, width, images.shape[3]), np.float32)
    return (
        Sampling(images.shape[1], height, align_corners, half_pixel_centers),
        Sampling(images.shape[2], width, align_corners, half_pixel_centers),
    )


def check_size(size: np.ndarray, name: str) -> tuple[int, int]:
    """Return `size` as (height, width); `name` is its name in messages.

    Raises InvalidArgumentError unless `size` is a vector of two positive integers.
    """
    if np.ndim(size) != 1:
        raise InvalidArgumentError(f"{name} must be 1-dimensional{shape_text(np.shape(size))}")
    if np.size(size) != 2:
        raise InvalidArgumentError(f"{name} must have two elements{shape_text(np.shape(size))}")
    height, width = (int(each) for each in size)
    if height <= 0 or width <= 0:
        raise InvalidArgumentError("output dimensions must be positive")
    return height, width


def gradient_samplings(
    gradient: np.ndarray,
    original: np.ndarray,
    align_corners: bool,
    half_pixel_centers: bool,
) -> tuple[Sampling, Sampling]:
    """Check the gradient of a resize against the original image.

    Returns the sampling of rows and the sampling of columns.

    TF: ImageResizerGradientState::ValidateAndCreateOutput
    """
    if half_pixel_centers and align_corners:
        raise InvalidArgumentError("If half_pixel_centers is True, align_corners must be False.")
    for name, tensor in (("input_grad", gradient), ("original_image", original)):
        if tensor.ndim != 4:
            raise InvalidArgumentError(f"{name} must be 4-dimensional{shape_text(tensor.shape)}")
    if 0 in original.shape[1:3]:
        raise InvalidArgumentError("original dimensions must be positive")
    if 0 in gradient.shape[1:3]:
        raise InvalidArgumentError("resized dimensions must be positive")
    return (
        Sampling(original.shape[1], gradient.shape[1], align_corners, half_pixel_centers),
        Sampling(original.shape[2], gradient.shape[2], align_corners, half_pixel_centers),
    )
