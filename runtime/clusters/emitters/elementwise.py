"""Emitters of element-wise arithmetic and functions.

These keep channels first if an operand has that order; the other operands follow.

TF: tensorflow/core/ops/math_ops.cc
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.clusters.dimensions import broadcast
from runtime.clusters.emission import DeclinedError, Emission
from runtime.clusters.emitters import size_arithmetic
from runtime.clusters.emitters.size_arithmetic import SizeFunction, on_sizes
from runtime.clusters.op_emitter import FLOAT, FLOATS, INTEGERS, NUMBERS, Emitter, OpEmitter
from runtime.clusters.values import Layout, Value
from runtime.framework.dtypes import DataType
from runtime.graph.node import Node

SMALL_INTEGERS = frozenset((DataType.INT8, DataType.INT16, DataType.UINT8))
UNSIGNED = frozenset((DataType.UINT16, DataType.UINT32, DataType.UINT64))
# The types of which ONNX Runtime has Add, Sub, Mul, Div and comparisons.
ARITHMETIC = NUMBERS | SMALL_INTEGERS | UNSIGNED
# The types of which it has Max, Min and Clip.
ORDERED = NUMBERS | {DataType.INT8, DataType.UINT8, DataType.UINT32, DataType.UINT64}
SIGNED = NUMBERS | {DataType.INT8, DataType.INT16}


def in_one_layout(emission: Emission, values: Sequence[Value]) -> tuple[list[Value], Layout]:
    """Return `values` in one layout, and that layout, for an operation that broadcasts them.

    It is channels-first if one of them is and all others can follow: those of the same rank are
    transposed, known arrays of lower rank get axes of size 1, a scalar needs nothing.
    """
    first = next((each for each in values if each.layout is Layout.CHANNELS_FIRST), None)
    if first is None:
        return list(values), Layout.AS_IS
    if not all(_can_follow(each, first.rank) for each in values):
        return [emission.as_is(each) for each in values], Layout.AS_IS
    return [_follow(emission, each, first.rank) for each in values], Layout.CHANNELS_FIRST


def _can_follow(value: Value, rank: int) -> bool:
    return value.rank in (0, rank) or (
        value.rank < rank and value.array is not None and value.layout is Layout.AS_IS
    )


def _follow(emission: Emission, value: Value, rank: int) -> Value:
    if value.rank in (0, rank):
        return emission.channels_first(value) if value.rank else value
    if value.rank == 1:
        # [C, 1, …], the form in which the engine folds scales and biases into a convolution
        shape = (-1, *(1,) * (rank - 2))
        return emission.derive(lambda array: array.reshape(shape), value)
    padded = (*(1,) * (rank - value.rank), *value.shape)
    reshaped = emission.derive(lambda array: array.reshape(padded), value)
    return emission.channels_first(reshaped)


def elementwise(
    emission: Emission,
    op_type: str,
    *values: Value,
    dtype: DataType | None = None,
    **attributes: Any,
) -> Value:
    """Add an operation that broadcasts its operands.

    Its result has the type `dtype`, by default that of the first operand. Raises InexpressibleError
    if the shape of the result depends on the run.
    """
    operands, layout = in_one_layout(emission, values)
    shape = broadcast(*(value.shape for value in values))
    dtype = values[0].dtype if dtype is None else dtype
    return emission.op(op_type, operands, dtype, shape, layout=layout, **attributes)


def like(emission: Emission, number: float, value: Value) -> Value:
    """Return the scalar constant `number` of the type of `value`."""
    return emission.constant(number, value.dtype)


def where_zero(emission: Emission, tested: Value, otherwise: Value) -> Value:
    """Return 0 where `tested` is 0, and `otherwise` elsewhere."""
    is_zero = elementwise(emission, "Equal", tested, like(emission, 0, tested), dtype=DataType.BOOL)
    zero = like(emission, 0, otherwise)
    return elementwise(emission, "Where", is_zero, zero, otherwise, dtype=otherwise.dtype)


def chain(*op_types: str) -> Emitter:
    """Return the emitter of a function that is the composition of ONNX's, the first one first."""

    def emit(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
        result = elementwise(emission, op_types[0], *inputs)
        for op_type in op_types[1:]:
            result = elementwise(emission, op_type, result)
        return result

    return emit


def _square(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    return elementwise(emission, "Mul", inputs[0], inputs[0])


def _squared_difference(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    difference = elementwise(emission, "Sub", *inputs)
    return elementwise(emission, "Mul", difference, difference)


def _sum_of_all(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    if any(each.shape != inputs[0].shape for each in inputs):
        raise DeclinedError("the operands may differ in shape, which is an error")
    result = inputs[0]
    for each in inputs[1:]:
        result = elementwise(emission, "Add", result, each)
    return result


def _expm1(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    # tanh(x / 2) · (exp(x) + 1): near 0, exp(x) − 1 would lose all digits.
    x = inputs[0]
    half = elementwise(emission, "Mul", x, like(emission, 0.5, x))
    above = elementwise(emission, "Add", elementwise(emission, "Exp", x), like(emission, 1, x))
    return elementwise(emission, "Mul", elementwise(emission, "Tanh", half), above)


def log1p(emission: Emission, x: Value) -> Value:
    """Return log(1 + x), exact also near 0."""
    one = like(emission, 1, x)
    above = elementwise(emission, "Add", x, one)
    # Kahan: the rounding of 1 + x cancels in log(u) · x / (u − 1).
    rounded = elementwise(emission, "Sub", above, one)
    ratio = elementwise(emission, "Div", x, rounded)
    product = elementwise(emission, "Mul", elementwise(emission, "Log", above), ratio)
    # If u is 1 the quotient is 0 / 0, if x is infinite it is NaN; log(1 + x) is x in both cases.
    is_one = elementwise(emission, "Equal", above, one, dtype=DataType.BOOL)
    infinity = like(emission, float("inf"), x)
    is_infinite = elementwise(emission, "Equal", x, infinity, dtype=DataType.BOOL)
    is_x = elementwise(emission, "Or", is_one, is_infinite)
    return elementwise(emission, "Where", is_x, x, product, dtype=x.dtype)


def _log1p(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    return log1p(emission, inputs[0])


def _sigmoid(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    x = inputs[0]
    if node in emission.summed:
        return elementwise(emission, "Sigmoid", x)
    # The engine's Sigmoid is 0 below −18.
    power = elementwise(emission, "Exp", elementwise(emission, "Neg", x))
    return elementwise(
        emission, "Reciprocal", elementwise(emission, "Add", power, like(emission, 1, x))
    )


def _erfc(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    x = inputs[0]
    if node in emission.summed:
        erf = elementwise(emission, "Erf", x)
        return elementwise(emission, "Sub", like(emission, 1, erf), erf)
    # 1 − Erf is 0 above 4. With t = 1 / (1 + |x| / 2), erfc(|x|) is t·exp(polynomial(t) − x²).
    half = elementwise(emission, "Mul", elementwise(emission, "Abs", x), like(emission, 0.5, x))
    t = elementwise(
        emission, "Reciprocal", elementwise(emission, "Add", half, like(emission, 1, x))
    )
    power = like(emission, _ERFC_POWERS[-1], x)
    for coefficient in reversed(_ERFC_POWERS[:-1]):
        power = elementwise(emission, "Mul", t, power)
        power = elementwise(emission, "Add", power, like(emission, coefficient, x))
    power = elementwise(emission, "Sub", power, elementwise(emission, "Mul", x, x))
    tail = elementwise(emission, "Mul", t, elementwise(emission, "Exp", power))
    is_negative = elementwise(emission, "Less", x, like(emission, 0, x), dtype=DataType.BOOL)
    other = elementwise(emission, "Sub", like(emission, 2, x), tail)
    return elementwise(emission, "Where", is_negative, other, tail, dtype=x.dtype)


# A Chebyshev approximation; its relative error is below 1.2e-7 everywhere. Press et al., Numerical
# Recipes, chapter 6.2 (erfcc).
_ERFC_POWERS = (
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398,
    1.48851587, -0.82215223, 0.17087277,
)  # fmt: skip


def _div_no_nan(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    return where_zero(emission, inputs[1], elementwise(emission, "Div", *inputs))


def _mul_no_nan(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    return where_zero(emission, inputs[1], elementwise(emission, "Mul", *inputs))


def _xdivy(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    return where_zero(emission, inputs[0], elementwise(emission, "Div", *inputs))


def _xlogy(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    x, y = inputs
    logarithm = elementwise(emission, "Log", y)
    return where_zero(emission, x, elementwise(emission, "Mul", x, logarithm))


def _xlog1py(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    x, y = inputs
    return where_zero(emission, x, elementwise(emission, "Mul", x, log1p(emission, y)))


def declined(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    """Decline: the emitter of ops that are written on sizes only."""
    raise DeclinedError(f"{node.op} is written on shapes only")


def _on_sizes(
    op: str, function: SizeFunction, op_type: str, types: frozenset[DataType]
) -> OpEmitter:
    return OpEmitter(op, on_sizes(function, chain(op_type)), {"T": types})


EMITTERS = (
    OpEmitter("Abs", chain("Abs"), {"T": SIGNED}),
    OpEmitter("Acos", chain("Acos"), {"T": FLOAT}),
    OpEmitter("Acosh", chain("Acosh"), {"T": FLOAT}),
    _on_sizes("Add", size_arithmetic.ADD, "Add", NUMBERS | SMALL_INTEGERS),
    OpEmitter("AddN", _sum_of_all, {"T": ARITHMETIC}),
    _on_sizes("AddV2", size_arithmetic.ADD, "Add", ARITHMETIC),
    OpEmitter("Asin", chain("Asin"), {"T": FLOAT}),
    OpEmitter("Asinh", chain("Asinh"), {"T": FLOAT}),
    OpEmitter("Atan", chain("Atan"), {"T": FLOAT}),
    OpEmitter("Atanh", chain("Atanh"), {"T": FLOAT}),
    OpEmitter("Ceil", chain("Ceil"), {"T": FLOATS}),
    OpEmitter("Cos", chain("Cos"), {"T": FLOATS}),
    OpEmitter("Cosh", chain("Cosh"), {"T": FLOAT}),
    OpEmitter("Div", chain("Div"), {"T": FLOATS}),
    OpEmitter("DivNoNan", _div_no_nan, {"T": FLOATS}),
    OpEmitter("Erf", chain("Erf"), {"T": FLOAT}),
    OpEmitter("Erfc", _erfc, {"T": FLOAT}),
    OpEmitter("Exp", chain("Exp"), {"T": FLOATS}),
    OpEmitter("Expm1", _expm1, {"T": FLOATS}),
    OpEmitter("Floor", chain("Floor"), {"T": FLOATS}),
    OpEmitter("FloorDiv", on_sizes(size_arithmetic.FLOOR_DIV, declined), {"T": INTEGERS}),
    OpEmitter("Inv", chain("Reciprocal"), {"T": FLOATS}),
    OpEmitter("Log", chain("Log"), {"T": FLOATS}),
    OpEmitter("Log1p", _log1p, {"T": FLOATS}),
    _on_sizes("Maximum", size_arithmetic.MAXIMUM, "Max", ORDERED),
    _on_sizes("Minimum", size_arithmetic.MINIMUM, "Min", ORDERED),
    _on_sizes("Mul", size_arithmetic.MUL, "Mul", ARITHMETIC),
    OpEmitter("MulNoNan", _mul_no_nan, {"T": FLOATS}),
    _on_sizes("Neg", size_arithmetic.NEG, "Neg", SIGNED),
    OpEmitter("Pow", chain("Pow"), {"T": FLOATS}),
    OpEmitter("RealDiv", chain("Div"), {"T": FLOATS}),
    OpEmitter("Reciprocal", chain("Reciprocal"), {"T": FLOATS}),
    OpEmitter("Rint", chain("Round"), {"T": FLOATS}),
    OpEmitter("Round", chain("Round"), {"T": FLOATS}),
    OpEmitter("Rsqrt", chain("Sqrt", "Reciprocal"), {"T": FLOATS}),
    OpEmitter("Sigmoid", _sigmoid, {"T": FLOATS}),
    OpEmitter("Sign", chain("Sign"), {"T": SIGNED}),
    OpEmitter("Sin", chain("Sin"), {"T": FLOATS}),
    OpEmitter("Sinh", chain("Sinh"), {"T": FLOAT}),
    OpEmitter("Sqrt", chain("Sqrt"), {"T": FLOATS}),
    OpEmitter("Square", _square, {"T": ARITHMETIC}),
    OpEmitter("SquaredDifference", _squared_difference, {"T": NUMBERS}),
    _on_sizes("Sub", size_arithmetic.SUB, "Sub", ARITHMETIC),
    OpEmitter("Tan", chain("Tan"), {"T": FLOAT}),
    OpEmitter("Tanh", chain("Tanh"), {"T": FLOATS}),
    OpEmitter("Xdivy", _xdivy, {"T": FLOATS}),
    OpEmitter("Xlog1py", _xlog1py, {"T": FLOATS}),
    OpEmitter("Xlogy", _xlogy, {"T": FLOATS}),
)
