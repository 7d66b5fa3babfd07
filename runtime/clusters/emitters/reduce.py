"""Emitters of reductions, running sums, and the largest elements.

Reductions take channels first as it is. A mean over all spatial axes becomes a global pool, with
which the engine can go on from convolutions without reordering.

TF: tensorflow/core/ops/math_ops.cc
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from runtime.clusters.dimensions import (
    Dimension,
    Shape,
    SymbolicSize,
    is_static,
    product,
    static,
    static_shape,
)
from runtime.clusters.emission import ONNX_TYPES, DeclinedError, Emission
from runtime.clusters.emitters import size_arithmetic
from runtime.clusters.emitters.array import model_axis
from runtime.clusters.emitters.elementwise import elementwise, like
from runtime.clusters.emitters.shape import normal_axis, reshaped
from runtime.clusters.emitters.size_arithmetic import known_integer, known_integers, on_sizes
from runtime.clusters.op_emitter import FLOAT, FLOATS, INTEGERS, NUMBERS, Emitter, OpEmitter
from runtime.clusters.values import Layout, Value
from runtime.framework.dtypes import DataType
from runtime.graph.node import Node
from runtime.kernels.math.reductions import ARG_MAX_RANK

_ORDERED = NUMBERS | {DataType.INT8, DataType.UINT8}
_TOP_TYPES = _ORDERED | {DataType.INT16}
# As many float32 may be added one after the other for an error below 1e-5, even if all are equal.
_MAX_ROWS = 512
# The engine adds the elements of the last axis in at least 8 groups.
_MAX_GROUPED = 8 * _MAX_ROWS


def reduced(
    emission: Emission, op_type: str, value: Value, axes: Sequence[int], keep_dims: bool
) -> Value:
    """Return the reduction of `value` over `axes` (from 0), at least one."""
    kept = [axis for axis in range(value.rank) if axis not in axes]
    if value.layout is Layout.CHANNELS_FIRST and not keep_dims:
        in_model = [model_axis(axis, value.rank, value.layout) for axis in kept]
        if in_model != sorted(in_model):
            value = emission.as_is(value)
    shape = _kept_shape(value.shape, axes, keep_dims)
    at = sorted(model_axis(axis, value.rank, value.layout) for axis in axes)
    return emission.op(
        op_type,
        [value, emission.constant(np.array(at, np.int64))],
        value.dtype,
        shape,
        layout=value.layout if keep_dims else Layout.AS_IS,
        keepdims=int(keep_dims),
    )


def summed(
    emission: Emission, op_type: str, value: Value, axes: Sequence[int], keep_dims: bool
) -> Value:
    """Return the sum or mean of `value` over `axes` (from 0), the same within 1e-5.

    The engine adds one row after the other, and in groups along the last axes. The rounding of
    thousands of such additions can be above 1e-5 of the sum, so long sums are made in stages.
    Raises DeclinedError if that is not possible.
    """
    over = [value.shape[axis] for axis in axes]
    if value.dtype is not DataType.FLOAT or _is_short(value, axes):
        return reduced(emission, op_type, value, axes, keep_dims)
    if not is_static(over):
        raise DeclinedError("a sum that may be long, over axes which are not the last ones")
    sizes = static_shape(over)
    if all(size <= _MAX_ROWS for size in sizes):
        for axis in reversed(axes):
            value = reduced(emission, op_type, value, [axis], True)
    else:
        value = _summed_in_parts(emission, op_type, value, axes)
    return value if keep_dims else reshaped(emission, value, _kept_shape(value.shape, axes, False))


def _is_short(value: Value, axes: Sequence[int]) -> bool:
    """Return whether few enough elements are added one after the other."""
    over = [value.shape[axis] for axis in axes]
    at = sorted(model_axis(axis, value.rank, value.layout) for axis in axes)
    is_at_end = at == list(range(value.rank - len(at), value.rank))
    if not is_static(over):
        return is_at_end
    return math.prod(static_shape(over)) <= (_MAX_GROUPED if is_at_end else _MAX_ROWS)


def _summed_in_parts(emission: Emission, op_type: str, value: Value, axes: Sequence[int]) -> Value:
    """Return the sum or mean over `axes`, which stay with size 1, split into short ones."""
    split: list[Dimension] = []
    parts: list[int] = []
    for axis, size in enumerate(value.shape):
        factors = _factors(static(size)) if axis in axes else [size]
        parts += range(len(split), len(split) + len(factors)) if axis in axes else []
        split += factors
    shape = _kept_shape(value.shape, axes, True)
    value = reshaped(emission, value, tuple(split))
    for axis in reversed(parts):
        value = reduced(emission, op_type, value, [axis], True)
    return reshaped(emission, value, shape)


def _factors(size: int) -> list[int]:
    """Return short sizes whose product is `size`; raise DeclinedError if there are none."""
    factors = []
    while size > _MAX_ROWS:
        factor = next((each for each in range(_MAX_ROWS, 1, -1) if size % each == 0), None)
        if factor is None:
            raise DeclinedError(f"a sum of {size} elements that can't be made in equal stages")
        factors.append(factor)
        size //= factor
    return [size, *factors]


def _kept_shape(shape: Shape, axes: Sequence[int], keep_dims: bool) -> Shape:
    return tuple(
        1 if axis in axes else size
        for axis, size in enumerate(shape)
        if keep_dims or axis not in axes
    )


def _axes(node: Node, value: Value, operand: Value) -> list[int]:
    axes = [normal_axis(axis, value.rank) for axis in known_integers(operand, "the axes")]
    if len(set(axes)) != len(axes):
        raise DeclinedError("an axis twice, which is an error")
    return sorted(axes)


def _reduction(op_type: str) -> Emitter:
    def emit(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
        value = inputs[0]
        axes = _axes(node, value, inputs[1])
        return reduced(emission, op_type, value, axes, node.attr("keep_dims")) if axes else value

    return emit


def _sum(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value = inputs[0]
    if value.dtype in INTEGERS:
        raise DeclinedError("a sum of integers, in which the engine does not wrap around")
    axes = _axes(node, value, inputs[1])
    return summed(emission, "ReduceSum", value, axes, node.attr("keep_dims")) if axes else value


def _extreme(op_type: str) -> Emitter:
    """Return the emitter of Max or Min; the engine's reductions lose NaN."""

    def emit(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
        value, keep_dims = inputs[0], node.attr("keep_dims")
        axes = _axes(node, value, inputs[1])
        if not axes:
            return value
        if 0 in value.shape:
            raise DeclinedError("a reduction of no elements")
        found = reduced(emission, op_type, value, axes, keep_dims)
        if value.dtype not in FLOATS:
            return found
        has_nan = reduced(emission, "ReduceMax", _is_nan(emission, value), axes, keep_dims)
        nan = like(emission, np.nan, value)
        return elementwise(emission, "Where", has_nan, nan, found, dtype=value.dtype)

    return emit


def _is_nan(emission: Emission, value: Value) -> Value:
    return elementwise(emission, "IsNaN", value, dtype=DataType.BOOL)


def _mean(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value, keep_dims = inputs[0], node.attr("keep_dims")
    axes = _axes(node, value, inputs[1])
    if not axes:
        return value
    over = tuple(value.shape[axis] for axis in axes)
    if 0 in over:
        raise DeclinedError("a mean over no elements")
    if not is_static(over):
        return _mean_over_symbols(emission, value, axes, over, keep_dims)
    is_pool = value.layout is Layout.CHANNELS_FIRST and axes == list(range(1, value.rank - 1))
    if is_pool and value.dtype is DataType.FLOAT and _is_short(value, axes):
        return _global_pool(emission, value, keep_dims)
    return summed(emission, "ReduceMean", value, axes, keep_dims)


def _global_pool(emission: Emission, value: Value, keep_dims: bool) -> Value:
    batch, channels = value.shape[0], value.shape[-1]
    shape = (batch, *(1,) * (value.rank - 2), channels)
    pooled = emission.op(
        "GlobalAveragePool", [value], value.dtype, shape, layout=Layout.CHANNELS_FIRST
    )
    if keep_dims:
        return pooled
    return emission.op("Flatten", [pooled], value.dtype, (batch, channels), axis=1)


def _mean_over_symbols(
    emission: Emission, value: Value, axes: Sequence[int], over: Shape, keep_dims: bool
) -> Value:
    # TensorFlow's mean over no elements is NaN, the engine's is 0; 0 / 0 is NaN.
    number = _as_type(emission, emission.size(product(over)), value.dtype)
    sums = summed(emission, "ReduceSum", value, axes, keep_dims)
    return elementwise(emission, "Div", sums, number)


def _all_or_any(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value = inputs[0]
    axes = _axes(node, value, inputs[1])
    if not axes:
        return value
    if 0 in value.shape:
        raise DeclinedError("a reduction of no elements, for which the engine raises")
    op_type = "ReduceMin" if node.op == "All" else "ReduceMax"
    return reduced(emission, op_type, value, axes, node.attr("keep_dims"))


def _product(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    if inputs[0].dtype is not DataType.FLOAT:
        raise DeclinedError("a product of integers, in which the engine does not wrap around")
    result = _reduction("ReduceProd")(emission, node, inputs)
    assert isinstance(result, Value)
    # In another order of factors, an overflow meets a zero where it did not in TensorFlow.
    emission.require_finite(emission.as_is(result))
    return result


def _l2_loss(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value = inputs[0]
    squares = elementwise(emission, "Mul", value, value)
    axes = list(range(value.rank))
    sum_of_all = summed(emission, "ReduceSum", squares, axes, False) if axes else squares
    return elementwise(emission, "Mul", sum_of_all, like(emission, 0.5, value))


def _arg(op_type: str) -> Emitter:
    def emit(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
        value = emission.as_is(inputs[0])
        axis = normal_axis(known_integer(inputs[1], "the axis"), value.rank)
        if value.shape[axis] == 0 or value.rank > ARG_MAX_RANK:
            raise DeclinedError("an empty axis or too many axes, which is an error")
        if value.dtype in FLOATS:
            # TensorFlow ignores NaN, the engine does so only after the first element.
            loser = like(emission, -np.inf if op_type == "ArgMax" else np.inf, value)
            value = elementwise(
                emission, "Where", _is_nan(emission, value), loser, value, dtype=value.dtype
            )
        shape = (*value.shape[:axis], *value.shape[axis + 1 :])
        int64 = DataType.INT64
        found = emission.op(op_type, [value], int64, shape, axis=axis, keepdims=0)
        return _as_type(emission, found, node.attr("output_type"))

    return emit


def _as_type(emission: Emission, value: Value, dtype: DataType) -> Value:
    if value.dtype is dtype:
        return value
    return emission.op("Cast", [value], dtype, value.shape, to=ONNX_TYPES[dtype])


def _cumsum(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value = emission.as_is(inputs[0])
    axis = normal_axis(known_integer(inputs[1], "the axis"), value.rank)
    return emission.op(
        "CumSum",
        [value, emission.constant(np.array(axis, np.int64))],
        value.dtype,
        value.shape,
        exclusive=int(node.attr("exclusive")),
        reverse=int(node.attr("reverse")),
    )


def _top(emission: Emission, node: Node, inputs: Sequence[Value]) -> list[Value]:
    value = emission.as_is(inputs[0])
    count = known_integer(inputs[1], "k") if node.op == "TopKV2" else node.attr("k")
    size = value.shape[-1] if value.rank else 0
    if isinstance(size, SymbolicSize) or not 0 <= count <= size:
        raise DeclinedError(f"the {count} largest of {size} elements")
    shape = (*value.shape[:-1], count)
    number = emission.constant(np.array([count], np.int64))
    outputs = [(value.dtype, shape), (DataType.INT64, shape)]
    values, indices = emission.ops("TopK", [value, number], outputs, axis=-1, sorted=1)
    return [values, _as_type(emission, indices, node.output_types[1])]


EMITTERS = (
    OpEmitter("All", _all_or_any, constants=(1,)),
    OpEmitter("Any", _all_or_any, constants=(1,)),
    OpEmitter("ArgMax", _arg("ArgMax"), {"T": _ORDERED, "output_type": INTEGERS}, constants=(1,)),
    OpEmitter("ArgMin", _arg("ArgMin"), {"T": _ORDERED, "output_type": INTEGERS}, constants=(1,)),
    OpEmitter("Cumsum", _cumsum, {"T": NUMBERS}, constants=(1,)),
    OpEmitter("L2Loss", _l2_loss, {"T": FLOATS}),
    OpEmitter(
        "Max",
        on_sizes(size_arithmetic.MAX, _extreme("ReduceMax")),
        {"T": _ORDERED},
        constants=(1,),
    ),
    OpEmitter("Mean", _mean, {"T": FLOATS}, constants=(1,)),
    OpEmitter(
        "Min",
        on_sizes(size_arithmetic.MIN, _extreme("ReduceMin")),
        {"T": _ORDERED},
        constants=(1,),
    ),
    OpEmitter(
        "Prod",
        on_sizes(size_arithmetic.PROD, _product),
        {"T": FLOAT | INTEGERS},  # of integers only products of sizes
        constants=(1,),
    ),
    OpEmitter(
        "Sum",
        on_sizes(size_arithmetic.SUM, _sum),
        {"T": NUMBERS},  # of integers only sums of sizes
        constants=(1,),
    ),
    OpEmitter("TopK", _top, {"T": _TOP_TYPES}),
    OpEmitter("TopKV2", _top, {"T": _TOP_TYPES, "index_type": INTEGERS}, constants=(1,)),
)
