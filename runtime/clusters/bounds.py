"""Bounds on what a model may hold and make, because graphs come from strangers.

Numpy kernels check each allocation. An engine does not, and counts elements in 32 bits in places.
So tensors of a model are bounded where they are written, and with the sizes of each new shape of
inputs before a run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from runtime.clusters.dimensions import Dimension, SymbolicSize, product
from runtime.framework.allocation import tensor_limit
from runtime.framework.dtypes import DataType

MAX_ELEMENTS = (1 << 31) - 1  # of a tensor
MAX_SIZE = (1 << 31) - 1  # of windows, strides, dilations and paddings
# Elements that emission may make of nothing, such as the classes of a one-hot vector. They are in
# memory as long as the model.
MAX_MADE = 1 << 20
MAX_NODES = 20_000  # of a cluster; the time and memory of compiling grow with it
MAX_SPLITS = 4  # a cluster of which nodes were refused is divided this often, one inside another


def fault_of(shape: Iterable[Dimension], dtype: DataType) -> str:
    """Return why a model must not have a tensor, whatever the run; nothing if it may.

    An engine has ended the process when it ran LSTM on empty tensors, so no model has any.
    """
    factor, _ = _parts(product(shape))
    if factor == 0:
        return "an empty tensor"
    if not is_within(factor, dtype.numpy.itemsize):
        return f"a tensor of at least {factor} elements"
    return ""


def is_within(count: int, item_bytes: int) -> bool:
    """Return whether a tensor of `count` elements may be made."""
    return 0 <= count <= MAX_ELEMENTS and count * item_bytes <= tensor_limit()


class TensorSizes:
    """The largest tensors of a model with open sizes: element counts as functions of symbols."""

    __slots__ = ("_largest",)

    def __init__(self, tensors: Iterable[tuple[Iterable[Dimension], DataType]]) -> None:
        # The largest of those that grow alike is enough: symbols → (elements, bytes an element).
        self._largest: dict[tuple[str, ...], tuple[int, int]] = {}
        for shape, dtype in tensors:
            factor, symbols = _parts(product(shape))
            count, item_bytes = self._largest.get(symbols, (0, 0))
            self._largest[symbols] = max(count, factor), max(item_bytes, dtype.numpy.itemsize)

    def are_within(self, sizes: Mapping[Dimension, int]) -> bool:
        """Return whether all tensors may be made where the symbols stand for `sizes`."""
        return all(is_within(count, item_bytes) for count, item_bytes in self._counts(sizes))

    def largest_bytes(self, sizes: Mapping[Dimension, int]) -> int:
        """Return a bound on the bytes of the largest tensor where the symbols stand for `sizes`."""
        return max((count * item_bytes for count, item_bytes in self._counts(sizes)), default=0)

    def _counts(self, sizes: Mapping[Dimension, int]) -> Iterator[tuple[int, int]]:
        named = {str(size): number for size, number in sizes.items()}
        for symbols, (count, item_bytes) in self._largest.items():
            yield count * math.prod(named[each] for each in symbols), item_bytes


def _parts(size: Dimension) -> tuple[int, tuple[str, ...]]:
    if isinstance(size, SymbolicSize):
        return size.factor, size.symbols
    return size, ()
