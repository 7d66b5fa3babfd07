"""XlaSort, XlaKeyValueSort and XlaVariadicSort. All are stable.

TF: tensorflow/compiler/tf2xla/kernels/sort_ops.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, UnimplementedError
from runtime.foundation.running_task import check_task
from runtime.framework.attr_value import NameAttrList
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.kernels.xla.attributes import TYPES
from runtime.kernels.xla.computations import Computation


def total_order(keys: np.ndarray) -> np.ndarray:
    """Return integers in the order that the compiler gives numbers.

    -NaN < -infinity < … < -0 < 0 < … < infinity < NaN. Raises UnimplementedError for complex
    numbers.
    """
    if keys.dtype.kind in "iub":
        return keys
    if keys.dtype.kind == "c":
        raise UnimplementedError("Complex numbers have no order to sort by")
    signed = np.dtype(f"i{keys.dtype.itemsize}")
    bits = np.ascontiguousarray(keys).view(signed)
    return np.where(bits < 0, np.iinfo(signed).max ^ bits, bits)


def _order(keys: np.ndarray) -> np.ndarray:
    if not keys.ndim:
        raise InvalidArgumentError("A scalar has no dimension to sort along")
    if keys.shape[-1] == 1:  # of any type
        return np.zeros(keys.shape, np.int64)
    return np.argsort(total_order(keys), axis=-1, kind="stable")


def xla_sort(array: np.ndarray) -> np.ndarray:
    """XlaSort: ascending along the last dimension."""
    array = np.asarray(array)
    return np.take_along_axis(array, _order(array), -1)


def xla_key_value_sort(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """XlaKeyValueSort: both tensors in the order of the keys, along the last dimension."""
    keys, values = np.asarray(keys), np.asarray(values)
    if keys.shape != values.shape:
        raise InvalidArgumentError(
            f"keys and values must have the same shape, got {list(keys.shape)} and "
            f"{list(values.shape)}"
        )
    order = _order(keys)
    return np.take_along_axis(keys, order, -1), np.take_along_axis(values, order, -1)


def xla_variadic_sort(
    context: OpKernelContext, *inputs_and_dimension: np.ndarray, comparator: NameAttrList
) -> list[np.ndarray]:
    """XlaVariadicSort: tensors of one shape, sorted together along a dimension.

    The comparator takes two values of each tensor in turn, and returns whether the first values
    come before the second ones.
    """
    *given, dimension = map(np.asarray, inputs_and_dimension)
    shape = given[0].shape
    axis = int(dimension) if not dimension.ndim else -1
    if any(each.shape != shape for each in given) or not 0 <= axis < len(shape):
        raise InvalidArgumentError(
            f"Inputs must have one shape, and dimension must be one of theirs, got "
            f"{[list(each.shape) for each in given]} and {dimension.tolist()}"
        )
    rows = [np.moveaxis(each, axis, -1) for each in given]
    order = _merge_order(rows, Computation(context, comparator))
    return [np.moveaxis(np.take_along_axis(each, order, -1), -1, axis) for each in rows]


def _merge_order(rows: list[np.ndarray], comparator: Computation) -> np.ndarray:
    """Return the stable order of each row: runs are merged, all pairs of runs at once.

    The place of an element of a run is its number there and the number of elements of the other
    run that come before it, which a binary search finds.
    """
    count = rows[0].shape[-1]
    order = np.broadcast_to(np.arange(count), rows[0].shape).copy()
    width = 1
    while width < count:
        check_task()
        sorted_rows = [np.take_along_axis(each, order, -1) for each in rows]
        numbers = np.arange(count)
        begin = numbers // (2 * width) * 2 * width
        middle, end = np.minimum(begin + width, count), np.minimum(begin + 2 * width, count)
        is_left = numbers < middle
        low, high = np.where(is_left, middle, begin), np.where(is_left, end, middle)
        found = _places(sorted_rows, low, high, is_left, comparator)
        new = np.where(is_left, numbers + found - middle, numbers - middle + found)
        merged = np.empty_like(order)
        np.put_along_axis(merged, new, order, -1)
        order, width = merged, 2 * width
    return order


def _places(
    rows: list[np.ndarray],
    low: np.ndarray,
    high: np.ndarray,
    is_left: np.ndarray,
    comparator: Computation,
) -> np.ndarray:
    """Return the first place in [low, high) that does not come before each element, or `high`."""
    shape = rows[0].shape
    low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
    while np.any(low < high):
        check_task()
        open_ = low < high
        middle = np.where(open_, (low + high) // 2, 0)
        there = [np.take_along_axis(each, middle, -1) for each in rows]
        # An element of the left run comes before its equals in the right run.
        before = _is_before(comparator, there, rows)
        not_after = ~_is_before(comparator, rows, there)
        goes_on = np.where(is_left, before, not_after) & open_
        low, high = np.where(goes_on, middle + 1, low), np.where(open_ & ~goes_on, middle, high)
    return low


def _is_before(
    comparator: Computation, first: list[np.ndarray], second: list[np.ndarray]
) -> np.ndarray:
    pairs = [each for pair in zip(first, second, strict=True) for each in pair]
    (result,) = comparator(*pairs)
    return np.asarray(result, bool)


KERNELS = (
    KernelDef("XlaSort", xla_sort, {"T": TYPES}),
    KernelDef("XlaKeyValueSort", xla_key_value_sort, {"K": TYPES, "V": TYPES}),
    KernelDef("XlaVariadicSort", xla_variadic_sort, expensive=True),
)
