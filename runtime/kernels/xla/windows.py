"""XlaPad, XlaReduceWindow and XlaSelectAndScatter: padding, and windows that move over a tensor.

TF: tensorflow/compiler/tf2xla/kernels/xla_pad_op.cc, xla_reduce_op.cc,
xla_select_and_scatter_op.cc
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.attr_value import NameAttrList
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.kernels.xla.attributes import TYPES, pairs_of, sizes_of
from runtime.kernels.xla.computations import Computation

Pairs = Sequence[tuple[int, int]]


def padded_size(size: int, low: int, high: int, interior: int) -> int:
    """Return the size of a padded dimension: negative if more is removed than there is."""
    return low + high + size + max(size - 1, 0) * interior


def padded_shape(shape: Sequence[int], edges: Pairs, interior: Sequence[int]) -> list[int]:
    """Return the shape of a padded tensor.

    Raises InvalidArgumentError if more is removed than there is.
    """
    sizes = [
        padded_size(size, low, high, between)
        for size, (low, high), between in zip(shape, edges, interior, strict=True)
    ]
    if min(sizes, default=0) < 0:
        place = next(number for number, size in enumerate(sizes) if size < 0)
        raise InvalidArgumentError(f"Padding result in negative size for dimension {place}")
    return sizes


def padded(
    array: np.ndarray, value: np.ndarray, edges: Pairs, interior: Sequence[int]
) -> np.ndarray:
    """Return the array with `value` around it and between its elements, or without its edges.

    Raises InvalidArgumentError if more is removed than there is.
    """
    sizes = padded_shape(array.shape, edges, interior)
    result = np.full(sizes, value, array.dtype)
    to, of = [], []
    for size, whole, (low, _), between in zip(array.shape, sizes, edges, interior, strict=True):
        step = between + 1
        first = max(-(low // step), 0)  # the first element at or after the start of the result
        last = min(-((low - whole) // step), size)  # the first one at or after its end
        count = max(last - first, 0)
        begin = low + first * step
        to.append(slice(begin, begin + count * step, step) if count else slice(0, 0))
        of.append(slice(first, first + count))
    result[tuple(to)] = array[tuple(of)]
    return result


def xla_pad(
    array: np.ndarray,
    padding_value: np.ndarray,
    padding_low: np.ndarray,
    padding_high: np.ndarray,
    padding_interior: np.ndarray,
) -> np.ndarray:
    """XlaPad: pad with a scalar; `padding_interior` elements go between two neighbours."""
    rank = np.ndim(array)
    if np.ndim(padding_value):
        raise InvalidArgumentError("padding_value must be a scalar")
    low = sizes_of("padding_low", padding_low, rank)
    high = sizes_of("padding_high", padding_high, rank)
    interior = sizes_of("padding_interior", padding_interior, rank, 0)
    return padded(np.asarray(array), padding_value, list(zip(low, high, strict=True)), interior)


@dataclasses.dataclass(frozen=True, slots=True)
class Windows:
    """Windows of one size over a tensor that is padded, and dilated, beforehand."""

    sizes: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    edges: Pairs
    base_dilations: Sequence[int]

    def interior(self) -> list[int]:
        """Return how many elements go between two neighbours of the tensor."""
        return [each - 1 for each in self.base_dilations]

    def padded_shape(self, shape: Sequence[int]) -> list[int]:
        """Return the shape of the padded tensor."""
        return padded_shape(shape, self.edges, self.interior())

    def counts(self, shape: Sequence[int]) -> list[int]:
        """Return how many windows there are in each dimension, for the tensor before padding."""
        result = []
        for whole, size, stride, dilation in zip(
            self.padded_shape(shape), self.sizes, self.strides, self.dilations, strict=True
        ):
            reach = (size - 1) * dilation + 1
            result.append((whole - reach) // stride + 1 if reach <= whole else 0)
        return result

    def places(self, counts: Sequence[int]) -> Iterator[tuple[slice, ...]]:
        """Yield, for each place in a window, where the padded tensor has it for all windows."""
        for offset in itertools.product(*map(range, self.sizes)):
            check_task()
            yield tuple(
                slice(start * dilation, start * dilation + (count - 1) * stride + 1, stride)
                for start, dilation, count, stride in zip(
                    offset, self.dilations, counts, self.strides, strict=True
                )
            )

    @property
    def is_padded(self) -> bool:
        """Whether a window may reach elements that the tensor does not have."""
        return any(low > 0 or high > 0 for low, high in self.edges) or max(
            self.base_dilations, default=1
        ) > 1  # fmt: skip


def windows_of(
    rank: int,
    sizes: np.ndarray,
    strides: np.ndarray,
    edges: np.ndarray,
    base_dilations: np.ndarray | None = None,
    dilations: np.ndarray | None = None,
) -> Windows:
    """Return the windows that the inputs of an op describe. Raises InvalidArgumentError."""
    ones = [1] * rank

    def positive(name: str, given: np.ndarray | None) -> list[int]:
        return ones if given is None else sizes_of(name, given, rank, 1)

    return Windows(
        positive("window_dimensions", sizes),
        positive("window_strides", strides),
        positive("window_dilations", dilations),
        pairs_of("padding", edges, rank),
        positive("base_dilations", base_dilations),
    )


def xla_reduce_window(
    context: OpKernelContext,
    array: np.ndarray,
    init_value: np.ndarray,
    window_dimensions: np.ndarray,
    window_strides: np.ndarray,
    base_dilations: np.ndarray,
    window_dilations: np.ndarray,
    padding: np.ndarray,
    *,
    computation: NameAttrList,
) -> np.ndarray:
    """XlaReduceWindow: reduce each window of a tensor to a scalar by a function of two scalars.

    Padding is not reduced: a window of nothing else gives `init_value`.
    """
    array, init = np.asarray(array), np.asarray(init_value)
    if init.ndim:
        raise InvalidArgumentError("init_value must be a scalar")
    windows = windows_of(
        array.ndim, window_dimensions, window_strides, padding, base_dilations, window_dilations
    )
    combine = Computation(context, computation)
    counts = windows.counts(array.shape)
    result = np.full(counts, init, array.dtype)
    if not result.size:
        return result
    whole, real = _with_mask(array, windows, init)
    for place in windows.places(counts):
        (found,) = combine(result, whole[place])
        result = found if real is None else np.where(real[place], found, result)
    return result


def _with_mask(
    array: np.ndarray, windows: Windows, value: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the padded tensor, and which of its elements are the tensor's own (None: all)."""
    interior = windows.interior()
    whole = padded(array, value, windows.edges, interior)
    if not windows.is_padded:
        return whole, None
    return whole, padded(np.ones(array.shape, bool), np.zeros((), bool), windows.edges, interior)


def xla_select_and_scatter(
    context: OpKernelContext,
    operand: np.ndarray,
    window_dimensions: np.ndarray,
    window_strides: np.ndarray,
    padding: np.ndarray,
    source: np.ndarray,
    init_value: np.ndarray,
    *,
    select: NameAttrList,
    scatter: NameAttrList,
) -> np.ndarray:
    """XlaSelectAndScatter: give each window's element of `source` to the element it selects.

    `select` returns whether its first argument is kept; `scatter` joins what one element is given,
    beginning with `init_value`.
    """
    operand, source, init = np.asarray(operand), np.asarray(source), np.asarray(init_value)
    windows = windows_of(operand.ndim, window_dimensions, window_strides, padding)
    counts = windows.counts(operand.shape)
    if list(source.shape) != counts or init.ndim:
        raise InvalidArgumentError(
            f"source must have shape {counts} and init_value none, got {list(source.shape)} and "
            f"{list(init.shape)}"
        )
    keeps, join = Computation(context, select), Computation(context, scatter)
    whole, real = _with_mask(operand, windows, np.zeros((), operand.dtype))
    chosen = np.full(counts, -1, np.int64)  # the place in its window that each window selects
    best = np.zeros(counts, operand.dtype)
    if source.size:
        for number, place in enumerate(windows.places(counts)):
            (kept,) = keeps(best, whole[place])
            better = (chosen < 0) | ~np.asarray(kept, bool)
            if real is not None:
                better &= real[place]
            best = np.where(better, whole[place], best)
            chosen[better] = number
    result = np.full(whole.shape, init, operand.dtype)
    if source.size:
        for number, place in enumerate(windows.places(counts)):
            (joined,) = join(result[place], source)
            result[place] = np.where(chosen == number, joined, result[place])
    return _unpadded(result, operand.shape, windows.edges, init)


def _unpadded(
    array: np.ndarray, shape: Sequence[int], edges: Pairs, value: np.ndarray
) -> np.ndarray:
    back = [(-low, -high) for low, high in edges]
    result = padded(array, value, back, [0] * len(shape))
    assert math.prod(result.shape) == math.prod(shape)
    return result


KERNELS = (
    KernelDef("XlaPad", xla_pad, {"T": TYPES}),
    KernelDef("XlaReduceWindow", xla_reduce_window, expensive=True),
    KernelDef("XlaSelectAndScatter", xla_select_and_scatter, expensive=True),
)
