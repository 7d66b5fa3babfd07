"""Grey-scale morphological dilation of images and its gradients.

TF: tensorflow/core/kernels/dilation_ops.cc
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, UnimplementedError
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import REAL_NUMBER_TYPES
from runtime.framework.shapes import shape_text
from runtime.kernels.nn.pooling import lowest_number
from runtime.kernels.nn.window import WindowedDimension, windowed_dimension

Overlap = tuple[tuple[int, int], tuple[slice, ...], tuple[slice, ...]]


def dilation2d(
    x: np.ndarray,
    filter: np.ndarray,
    *,
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> np.ndarray:
    """Dilation2D: return the maximum of `x + filter` in each window.

    `x` is `[n, h, w, c]`, `filter` is `[kh, kw, c]`.
    """
    dimensions = _dimensions(x, filter, strides, rates, padding)
    shape = (x.shape[0], *(each.output for each in dimensions), x.shape[3])
    check_allocation(shape, x.dtype)
    best = np.full(shape, lowest_number(x.dtype), x.dtype)
    for image in range(len(x)):  # one image at a time fits in the cache
        check_task()
        for tap, outputs, inputs in _overlaps(dimensions):
            part = best[image : image + 1][outputs]
            np.fmax(part, x[image : image + 1][inputs] + filter[tap], out=part)
    return best


def _dilate(
    x: np.ndarray, filter: np.ndarray, dimensions: Sequence[WindowedDimension]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the maximum of `x + filter` in each window, and its first position.

    The position is a flat index into the window.
    """
    shape = (x.shape[0], *(each.output for each in dimensions), x.shape[3])
    check_allocation(shape, np.int64)
    best = np.full(shape, lowest_number(x.dtype), x.dtype)
    position = np.zeros(shape, np.int64)
    for tap, outputs, inputs in _overlaps(dimensions):
        total = x[inputs] + filter[tap]
        better = total > best[outputs]
        np.copyto(best[outputs], total, where=better)
        np.copyto(position[outputs], tap[0] * filter.shape[1] + tap[1], where=better)
    return best, position


def _overlaps(dimensions: Sequence[WindowedDimension]) -> Iterator[Overlap]:
    """Yield the positions in the window that touch the input.

    With each position come the slices of the outputs and of the inputs that meet there.
    """
    rows, columns = dimensions
    for row in rows.taps():
        out_rows, in_rows = rows.overlap(row)
        for column in columns.taps():
            out_columns, in_columns = columns.overlap(column)
            yield (
                (row, column),
                (slice(None), out_rows, out_columns),
                (slice(None), in_rows, in_columns),
            )


def dilation2d_backprop_input(
    x: np.ndarray,
    filter: np.ndarray,
    out_backprop: np.ndarray,
    *,
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> np.ndarray:
    """Dilation2DBackpropInput: return the gradient of Dilation2D with respect to `x`.

    Each element of `out_backprop` is added at the element of `x` that gave the maximum.
    """
    dimensions, position = _backprop(x, filter, out_backprop, strides, rates, padding)
    result = np.zeros_like(x)
    for tap, outputs, inputs in _overlaps(dimensions):
        chosen = position[outputs] == tap[0] * filter.shape[1] + tap[1]
        np.add(result[inputs], out_backprop[outputs], out=result[inputs], where=chosen)
    return result


def dilation2d_backprop_filter(
    x: np.ndarray,
    filter: np.ndarray,
    out_backprop: np.ndarray,
    *,
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> np.ndarray:
    """Dilation2DBackpropFilter: return the gradient of Dilation2D with respect to `filter`.

    Each element of `out_backprop` is added at the element of `filter` that gave the maximum.
    """
    dimensions, position = _backprop(x, filter, out_backprop, strides, rates, padding)
    result = np.zeros_like(filter)
    for tap, outputs, _ in _overlaps(dimensions):
        chosen = position[outputs] == tap[0] * filter.shape[1] + tap[1]
        kept = np.where(chosen, out_backprop[outputs], out_backprop.dtype.type(0))
        result[tap] = kept.sum(axis=(0, 1, 2), dtype=kept.dtype)
    return result


def _backprop(
    x: np.ndarray,
    filter: np.ndarray,
    out_backprop: np.ndarray,
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> tuple[tuple[WindowedDimension, ...], np.ndarray]:
    """Return the windows, and the flat position in the window of each output's maximum.

    Raises InvalidArgumentError if `out_backprop` does not have the shape of the output.
    """
    dimensions = _dimensions(x, filter, strides, rates, padding)
    if out_backprop.ndim != 4:
        raise InvalidArgumentError(
            f"out_backprop must be 4-dimensional{shape_text(out_backprop.shape)}"
        )
    if out_backprop.shape != (x.shape[0], *(d.output for d in dimensions), x.shape[3]):
        raise InvalidArgumentError("out_backprop has incompatible size.")
    return dimensions, _dilate(x, filter, dimensions)[1]


def _dimensions(
    x: np.ndarray,
    filter: np.ndarray,
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> tuple[WindowedDimension, ...]:
    given = (("Stride", strides), ("Rate", rates))
    for name, values in given:
        if len(values) != 4:
            raise InvalidArgumentError(
                f"Sliding window {name.lower()} field must specify 4 dimensions"
            )
        if values[0] != 1 or values[3] != 1:
            raise UnimplementedError(f"{name} is only supported across spatial dimensions.")
    for name, values in given:
        if values[1] <= 0 or values[2] <= 0:
            raise InvalidArgumentError(f"{name} must be positive, got {list(values)}")
    if x.ndim != 4:
        raise InvalidArgumentError(f"input must be 4-dimensional{shape_text(x.shape)}")
    if filter.ndim != 3:
        raise InvalidArgumentError(f"filter must be 3-dimensional: {shape_text(filter.shape)}")
    if x.shape[3] != filter.shape[2]:
        raise InvalidArgumentError(
            f"input and filter must have the same depth: {x.shape[3]} vs {filter.shape[2]}"
        )
    sizes = zip(x.shape[1:3], filter.shape[:2], strides[1:3], rates[1:3], strict=True)
    return tuple(
        windowed_dimension(size, window, stride, padding, rate)
        for size, window, stride, rate in sizes
    )


_REAL = {"T": REAL_NUMBER_TYPES}

KERNELS = (
    KernelDef("Dilation2D", dilation2d, _REAL),
    KernelDef("Dilation2DBackpropFilter", dilation2d_backprop_filter, _REAL),
    KernelDef("Dilation2DBackpropInput", dilation2d_backprop_input, _REAL),
)
