"""Sliding windows: output sizes, padding and data formats of convolution and pooling.

Kernels compute with channels last; `to_channels_last` and `from_channels_last` convert
channels-first formats. TensorFlow's CPU kernels reject channels-first input in most of these ops.
These kernels accept it, so that graphs exported for another device run.

TF: tensorflow/core/util/tensor_format.h, tensorflow/core/framework/kernel_shape_util.cc
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, OpError, UnimplementedError

Value = TypeVar("Value")


@dataclasses.dataclass(frozen=True, slots=True)
class WindowedDimension:
    """The placement of windows along one spatial dimension; every size is in elements."""

    input: int
    window: int
    stride: int
    dilation: int
    pad_before: int
    pad_after: int
    output: int

    @property
    def padded(self) -> int:
        """The input size including padding."""
        return self.input + self.pad_before + self.pad_after

    def taps(self) -> range:
        """Return the positions in the window that are over an input element for some output.

        Positions that are only over padding are omitted, so that the cost of a window far larger
        than the input is bounded by the size of the input.
        """
        reach = max(self.output - 1, 0) * self.stride
        first = max(0, -(-(self.pad_before - reach) // self.dilation))
        last = min(self.window, (self.pad_before + self.input - 1) // self.dilation + 1)
        return range(first, max(first, last))

    def overlap(self, tap: int) -> tuple[slice, slice]:
        """Return the outputs and the unpadded inputs that meet at position `tap` of the window.

        Both are slices of the same length.
        """
        offset = tap * self.dilation - self.pad_before
        first = max(0, -(offset // self.stride))
        end = min(self.output, (self.input - 1 - offset) // self.stride + 1)
        if end <= first:
            return slice(0, 0), slice(0, 0)
        start = first * self.stride + offset
        return slice(first, end), slice(
            start, start + (end - first - 1) * self.stride + 1, self.stride
        )

    def counts(self) -> np.ndarray:
        """Return the number of input elements of each output, without padding: int64 [output]."""
        result = np.zeros(self.output, np.int64)
        for tap in self.taps():
            result[self.overlap(tap)[0]] += 1
        return result


def windowed_dimension(
    input_size: int,
    window: int,
    stride: int,
    padding: str,
    dilation: int = 1,
    explicit: tuple[int, int] = (0, 0),
) -> WindowedDimension:
    """Place windows over a dimension of `input_size` elements.

    Raises InvalidArgumentError if `stride` or `dilation` is less than 1, or if the output size
    would be negative.

    TF: GetWindowedOutputSizeVerbose
    """
    if stride <= 0:
        raise InvalidArgumentError(f"Stride must be > 0, but got {stride}")
    if dilation < 1:
        raise InvalidArgumentError(f"Dilation rate must be >= 1, but got {dilation}")
    effective = (window - 1) * dilation + 1
    before, after = explicit if padding == "EXPLICIT" else (0, 0)
    if padding == "SAME":
        output = -(-input_size // stride)
        needed = max(0, (output - 1) * stride + effective - input_size)
        before, after = needed // 2, needed - needed // 2
    else:
        reach = input_size + before + after - effective + stride
        output = -(-reach // stride) if reach < 0 else reach // stride  # C++ rounds toward zero
    if output < 0:
        raise InvalidArgumentError(
            f"Computed output size would be negative: {output} [input_size: {input_size}, "
            f"effective_filter_size: {effective}, stride: {stride}]"
        )
    return WindowedDimension(input_size, window, stride, dilation, before, after, output)


def is_channels_first(data_format: str) -> bool:
    """Return whether the channels come directly after the batch in `data_format`."""
    return data_format.startswith("NC")


def channel_axis(data_format: str) -> int:
    """Return the index of the channel dimension in `data_format`."""
    return 1 if is_channels_first(data_format) else len(data_format) - 1


def spatial_values(values: Sequence[Value], data_format: str) -> tuple[Value, ...]:
    """Return the entries of `values` for the spatial dimensions.

    `values` must have one entry for each dimension of `data_format`.
    """
    return tuple(values[2:] if is_channels_first(data_format) else values[1:-1])


def to_channels_last(x: np.ndarray, data_format: str) -> np.ndarray:
    """Return a view of `x` whose last dimension is the channels."""
    return np.moveaxis(x, 1, -1) if is_channels_first(data_format) else x


def from_channels_last(x: np.ndarray, data_format: str) -> np.ndarray:
    """Return channels-last `x` in `data_format`; a channels-first result is contiguous."""
    return np.ascontiguousarray(np.moveaxis(x, -1, 1)) if is_channels_first(data_format) else x


@dataclasses.dataclass(frozen=True, slots=True)
class WindowAttrs:
    """The attributes that place windows, with one entry per dimension of `data_format`."""

    strides: Sequence[int]
    padding: str
    data_format: str
    dilations: Sequence[int] = ()
    explicit_paddings: Sequence[int] = ()

    def check(self, op: str, refusal: type[OpError] = UnimplementedError) -> None:
        """Check strides and dilations; `op` begins a message.

        Raises InvalidArgumentError if there are too few or too many values, or if one is less than
        1. Raises `refusal` if a stride or dilation over the batch or the channels is not 1.
        """
        rank = len(self.data_format)
        for name, values in (("stride", self.strides), ("dilation", self.dilations)):
            if not values and name == "dilation":
                continue
            if len(values) != rank:
                raise InvalidArgumentError(
                    f"{op} requires the {name} attribute to contain {rank} values, "
                    f"but got: {len(values)}"
                )
            if values[0] != 1 or values[channel_axis(self.data_format)] != 1:
                raise refusal(
                    f"Current implementation does not yet support {name}s in the batch and depth "
                    "dimensions."
                )
            for value in spatial_values(values, self.data_format):
                if value < 1:
                    raise InvalidArgumentError(f"{name} must be >= 1, but got {value}")

    def place(
        self, input_shape: Sequence[int], windows: Sequence[int]
    ) -> tuple[WindowedDimension, ...]:
        """Place windows over an input of shape `input_shape`.

        `windows` are the window sizes of the spatial dimensions.
        """
        return tuple(
            windowed_dimension(size, window, stride, self.padding, dilation, pair)
            for size, window, stride, dilation, pair in zip(
                spatial_values(input_shape, self.data_format),
                windows,
                spatial_values(self.strides, self.data_format),
                spatial_values(self.dilations or (1,) * len(input_shape), self.data_format),
                self.explicit_pairs(),
                strict=True,
            )
        )

    def explicit_pairs(self) -> tuple[tuple[int, int], ...]:
        """Return the explicit padding (before, after) of each spatial dimension.

        Raises InvalidArgumentError if the attribute `explicit_paddings` is invalid.

        TF: CheckValidPadding in tensorflow/core/util/padding.cc
        """
        rank = len(self.data_format)
        given = self.explicit_paddings
        if self.padding != "EXPLICIT":
            if given:
                raise InvalidArgumentError(
                    "explicit_paddings attribute must be empty if the padding attribute is not "
                    "EXPLICIT"
                )
            return ((0, 0),) * (rank - 2)
        if len(given) != 2 * rank:
            raise InvalidArgumentError(
                f"explicit_paddings attribute must contain {2 * rank} values, but got: {len(given)}"
            )
        if any(size < 0 for size in given):
            raise InvalidArgumentError("All elements of explicit_paddings must be nonnegative")
        pairs = list(zip(given[::2], given[1::2], strict=True))
        if any(pairs[0]) or any(pairs[channel_axis(self.data_format)]):
            raise InvalidArgumentError(
                "Nonzero explicit padding in the batch or depth dimensions is not supported"
            )
        return spatial_values(pairs, self.data_format)
