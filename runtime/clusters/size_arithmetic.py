"""Arithmetic on shapes while a cluster is emitted.

Graphs compute the shapes of their tensors with ordinary operations (Shape, StridedSlice, Prod,
Pack, …). On sizes and on integers of the graph these are done here, so that the model has no such
operations and later emitters know the shapes. What can't be done (the sum of a symbol and 1) is
left to an ordinary operation, whose result is known at a run only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime.clusters.dimensions import (
    Dimension,
    InexpressibleError,
    SymbolicSize,
    product,
    quotient,
    static,
    symbol,
)
from runtime.clusters.emission import DeclinedError, Emission
from runtime.clusters.op_emitter import Emitter
from runtime.clusters.values import Value
from runtime.foundation.errors import OpError
from runtime.framework.dtypes import DataType
from runtime.graph.node import Node

# Integer constants with more elements are data and not shapes.
_MAX_ELEMENTS = 1024

# A function of a node and of the elements of its inputs, arrays of Dimensions (dtype object).
SizeFunction = Callable[..., Any]


def elements(value: Value) -> np.ndarray | None:
    """Return the elements of sizes or of a small constant of integers or booleans, None of others.

    The array has the shape of `value` and the dtype object; its elements are Dimensions.
    """
    if value.sizes is not None:
        found = np.empty(len(value.sizes), object)
        found[:] = value.sizes
        return found.reshape(()) if value.rank == 0 else found
    array = value.constant
    if array is None or array.dtype.kind not in "iub" or array.size > _MAX_ELEMENTS:
        return None
    return array.astype(object)


def known(value: Value, what: str, rank: int | None = None) -> list[Dimension]:
    """Return the elements of an operand that must be known at emission, flattened.

    Raises DeclinedError, which calls the operand `what`, if they are not, or if the operand has
    another rank than `rank`.
    """
    if rank is not None and value.rank != rank:
        raise DeclinedError(f"{what} has rank {value.rank}, which is an error")
    found = elements(value)
    if found is None:
        raise DeclinedError(f"{what} is known at a run only")
    return found.ravel().tolist()


def known_integers(value: Value, what: str, rank: int | None = None) -> list[int]:
    """Return the elements like `known`; raise InexpressibleError if one has symbols."""
    return [static(each) for each in known(value, what, rank)]


def known_integer(value: Value, what: str, rank: int | None = 0) -> int:
    """Return the element of a scalar operand; raise like `known_integers`.

    With None as `rank` the operand may be a vector or matrix of one element as well.
    """
    found = known_integers(value, what, rank)
    if len(found) != 1:
        raise DeclinedError(f"{what} has {len(found)} elements, which is an error")
    return found[0]


def total(sizes: Sequence[Dimension]) -> Dimension:
    """Return the sum of sizes, all integers or all multiples of the same symbols."""
    result: Dimension = 0
    for size in sizes:
        result = _plus(result, size)
    return result


def on_sizes(function: SizeFunction, emit: Emitter) -> Emitter:
    """Return an emitter that calls `function(node, *elements)` if all inputs are known.

    `function` returns the elements of the output, or a list of these for several outputs. If it
    raises InexpressibleError or an error of the operation, or an input is not known, `emit` writes
    the node, or declines it.
    """

    @functools.wraps(emit)
    def emit_known(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value | list[Value]:
        arrays = [elements(each) for each in inputs]
        if all(array is not None for array in arrays):
            try:
                found = function(node, *arrays)
                types = node.output_types
                if isinstance(found, list):
                    return [_value(emission, *each) for each in zip(found, types, strict=True)]
                return _value(emission, found, types[0])
            except (InexpressibleError, OpError, IndexError, OverflowError, ValueError):
                pass
        return emit(emission, node, inputs)

    return emit_known


def _value(emission: Emission, found: Any, dtype: DataType) -> Value:
    array = np.asarray(found, object)
    flat = array.ravel().tolist()
    if not any(isinstance(each, SymbolicSize) for each in flat):
        return emission.constant(np.array(flat, dtype.numpy).reshape(array.shape))
    if array.ndim == 0:
        return emission.size(flat[0], dtype)
    if array.ndim > 1 or dtype not in (DataType.INT32, DataType.INT64):
        raise InexpressibleError(f"sizes of rank {array.ndim} and type {dtype}")
    return emission.sizes(flat, dtype)


# Functions of two sizes


def _plus(x: Dimension, y: Dimension) -> Dimension:
    if isinstance(x, SymbolicSize) and isinstance(y, SymbolicSize) and x.symbols == y.symbols:
        return product([x.factor + y.factor, *map(symbol, x.symbols)])
    if 0 in (x, y):
        return y if x == 0 else x
    return static(x) + static(y)


def _minus(x: Dimension, y: Dimension) -> Dimension:
    return _plus(x, product([-1, y]))


def _times(x: Dimension, y: Dimension) -> Dimension:
    return product([x, y])


def _floor_quotient(x: Dimension, y: Dimension) -> Dimension:
    if isinstance(x, int) and isinstance(y, int) and y != 0:
        return x // y
    return quotient(x, y)


def _larger(x: Dimension, y: Dimension) -> Dimension:
    return x if x == y else max(static(x), static(y))


def _smaller(x: Dimension, y: Dimension) -> Dimension:
    return x if x == y else min(static(x), static(y))


def _equal(x: Dimension, y: Dimension) -> bool:
    return x == y or static(x) == static(y)


def _elementwise(function: Callable[..., Any], operands: int) -> SizeFunction:
    on_arrays = np.frompyfunc(function, operands, 1)
    return lambda node, *arrays: on_arrays(*arrays)


ADD = _elementwise(_plus, 2)
SUB = _elementwise(_minus, 2)
MUL = _elementwise(_times, 2)
FLOOR_DIV = _elementwise(_floor_quotient, 2)
MAXIMUM = _elementwise(_larger, 2)
MINIMUM = _elementwise(_smaller, 2)
NEG = _elementwise(lambda x: product([-1, x]), 1)
EQUAL = _elementwise(_equal, 2)
NOT_EQUAL = _elementwise(lambda x, y: not _equal(x, y), 2)
LESS = _elementwise(lambda x, y: static(x) < static(y), 2)
LESS_EQUAL = _elementwise(lambda x, y: static(x) <= static(y), 2)
GREATER = _elementwise(lambda x, y: static(x) > static(y), 2)
GREATER_EQUAL = _elementwise(lambda x, y: static(x) >= static(y), 2)
AND = _elementwise(lambda x, y: bool(x and y), 2)
OR = _elementwise(lambda x, y: bool(x or y), 2)
NOT = _elementwise(lambda x: not x, 1)
SELECT = _elementwise(lambda condition, x, y: x if condition else y, 3)


def reduction(function: Callable[[list[Dimension]], Dimension]) -> SizeFunction:
    """Return the function of a reduction of a vector over its axis, or over no axes."""

    def reduce(node: Node, array: np.ndarray, axes: np.ndarray) -> np.ndarray:
        wanted = axes.ravel().tolist()
        if array.ndim != 1 or wanted not in ([0], [-1], []):
            raise InexpressibleError(f"a reduction of rank {array.ndim} over {wanted}")
        if not wanted:
            return array
        result = np.empty((), object)
        result[()] = function(array.tolist())
        return result.reshape(1) if node.attr("keep_dims") else result

    return reduce


SUM = reduction(total)
PROD = reduction(product)
MAX = reduction(lambda sizes: functools.reduce(_larger, sizes[1:], sizes[0]))
MIN = reduction(lambda sizes: functools.reduce(_smaller, sizes[1:], sizes[0]))
