"""Kernels for comparisons, boolean logic, and element-wise selection between two tensors.

TF: tensorflow/core/kernels/{cwise_ops.h,cwise_op_select.cc}
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.intra_op_pool import shard
from runtime.framework.dtypes import QUANTIZED, DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import POD_TYPES, SINGLE_AND_DOUBLE
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box, unbox
from runtime.kernels.math.broadcasting import (
    SMALL_ENOUGH,
    binary,
    check_broadcast_allocation,
    incompatible_shapes,
)
from runtime.kernels.math.element_blocks import BLOCK, THREADED_BLOCK, block_size, choose

EQUALITY_TYPES = (*POD_TYPES, DataType.STRING, *QUANTIZED)
SELECT_TYPES = (*POD_TYPES, DataType.STRING)
OBJECT_TYPES = (DataType.RESOURCE, DataType.VARIANT)


def equal(x: np.ndarray, y: np.ndarray, *, incompatible_shape_error: bool) -> np.ndarray | np.bool_:
    """Equal: return x == y.

    If the shapes do not broadcast, the result is a scalar False; if `incompatible_shape_error` is
    set, InvalidArgumentError is raised instead.
    """
    if x.size * y.size > SMALL_ENOUGH:
        check_broadcast_allocation(x, y)
    try:
        return np.equal(x, y)
    except ValueError:
        if incompatible_shape_error:
            raise incompatible_shapes(x, y) from None
        return np.False_


def not_equal(
    x: np.ndarray, y: np.ndarray, *, incompatible_shape_error: bool
) -> np.ndarray | np.bool_:
    """NotEqual: return x != y.

    If the shapes do not broadcast, the result is a scalar True; if `incompatible_shape_error` is
    set, InvalidArgumentError is raised instead.
    """
    if x.size * y.size > SMALL_ENOUGH:
        check_broadcast_allocation(x, y)
    try:
        return np.not_equal(x, y)
    except ValueError:
        if incompatible_shape_error:
            raise incompatible_shapes(x, y) from None
        return np.True_


def approximate_equal(x: np.ndarray, y: np.ndarray, *, tolerance: float) -> np.ndarray:
    """ApproximateEqual: return |x − y| < tolerance.

    Raises InvalidArgumentError if the shapes differ.
    """
    if x.shape != y.shape:
        raise InvalidArgumentError(
            f"x and y must be of the same shape. x shape: {shape_text(x.shape)}. "
            f"y shape: {shape_text(y.shape)}"
        )
    return np.less(np.abs(np.subtract(x, y)), x.dtype.type(tolerance))


def _choose(condition: np.ndarray, t: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Return `np.where(condition, t, e)` for three arrays of one shape.

    Large arrays are computed in blocks on several threads.
    """
    if t.size <= BLOCK or t.dtype.hasobject:
        return np.where(condition, t, e)
    result = np.empty(t.size, t.dtype)
    flat = condition.ravel(), t.ravel(), e.ravel()
    size = block_size(t.size)

    def work(start: int, limit: int) -> None:
        for first in range(start, limit, size):
            part = slice(first, min(first + size, limit))
            result[part] = choose(flat[0][part], flat[1][part], flat[2][part])

    shard(t.size, 1, work, THREADED_BLOCK)
    return result.reshape(t.shape)


def select_v2(condition: np.ndarray, t: np.ndarray, e: np.ndarray) -> np.ndarray:
    """SelectV2: take each element from `t` if `condition` is true, else from `e`; all broadcast."""
    if condition.size * t.size * e.size > SMALL_ENOUGH:
        check_broadcast_allocation(condition, t, e)
    if condition.shape == t.shape == e.shape and condition.ndim:
        return _choose(condition, t, e)
    try:
        return np.where(condition, t, e)
    except ValueError:
        raise InvalidArgumentError(
            f"condition {shape_text(condition.shape)}, then {shape_text(t.shape)}, and else "
            f"{shape_text(e.shape)} must be broadcastable"
        ) from None


Select = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def select(condition: np.ndarray, t: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Select: take each element from `t` if `condition` is true, else from `e`.

    `t` and `e` must have the same shape. `condition` must have that shape, be a scalar, or be a
    vector whose elements select whole rows. Otherwise raises InvalidArgumentError.
    """
    if condition.ndim == 0 and t.shape != e.shape:
        raise InvalidArgumentError(
            "'then' and 'else' must have the same size.  but received: "
            f"{shape_text(t.shape)} vs. {shape_text(e.shape)}"
        )
    if condition.ndim == 0:
        return np.where(condition, t, e)
    if condition.shape == t.shape == e.shape:
        return _choose(condition, t, e)
    if condition.ndim == 1 and t.ndim == 0:
        raise InvalidArgumentError("'then' must be at least a vector, but saw shape: []")
    if condition.ndim != 1 or t.ndim == 1:
        raise (
            _select_error(condition, 1, t)
            if condition.shape != t.shape
            else _select_error(condition, 2, e)
        )
    if t.shape != e.shape:
        raise _select_error(t, 2, e)
    if condition.shape[0] != t.shape[0]:
        raise InvalidArgumentError(
            "Number of batches of 'then' must match size of 'cond', but saw: "
            f"{t.shape[0]} vs. {condition.shape[0]}"
        )
    return np.where(condition.reshape(-1, *(1,) * (t.ndim - 1)), t, e)


def _select_error(expected: np.ndarray, index: int, got: np.ndarray) -> InvalidArgumentError:
    return InvalidArgumentError(
        "Inputs to operation of type Select must have the same size and shape.  "
        f"Input 0: {shape_text(expected.shape)} != input {index}: {shape_text(got.shape)}"
    )


def select_object(choice: Select) -> Callable[[np.ndarray, TensorValue, TensorValue], TensorValue]:
    """Return a kernel that applies `choice` (`select` or `select_v2`) to resources and variants.

    It also accepts scalars, which are bare objects.
    """

    def chosen(condition: np.ndarray, t: TensorValue, e: TensorValue) -> TensorValue:
        if condition.ndim == 0 and not isinstance(t, np.ndarray) and not isinstance(e, np.ndarray):
            return t if condition else e
        return unbox(choice(condition, box(t), box(e)))

    return chosen


BINARY = {
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
}

KERNELS: tuple[KernelDef, ...] = (
    *(KernelDef(op, binary(function)) for op, function in BINARY.items()),
    KernelDef("LogicalNot", np.logical_not),
    KernelDef("Equal", equal, {"T": EQUALITY_TYPES}),
    KernelDef("NotEqual", not_equal, {"T": EQUALITY_TYPES}),
    KernelDef("ApproximateEqual", approximate_equal, {"T": SINGLE_AND_DOUBLE}),
    KernelDef("Select", select, {"T": SELECT_TYPES}),
    KernelDef("SelectV2", select_v2, {"T": SELECT_TYPES}),
    KernelDef("Select", select_object(select), {"T": OBJECT_TYPES}),
    KernelDef("SelectV2", select_object(select_v2), {"T": OBJECT_TYPES}),
)
