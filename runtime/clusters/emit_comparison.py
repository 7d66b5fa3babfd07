"""Emitters of comparisons, logic, selection by a condition, and conversion between types.

TF: tensorflow/core/ops/math_ops.cc
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.clusters import size_arithmetic
from runtime.clusters.emission import ONNX_TYPES, DeclinedError, Emission
from runtime.clusters.emit_elementwise import ARITHMETIC, elementwise
from runtime.clusters.emit_shape import reshaped
from runtime.clusters.op_emitter import FLOATS, NUMBERS, Emitter, OpEmitter
from runtime.clusters.size_arithmetic import SizeFunction, on_sizes
from runtime.clusters.values import Value
from runtime.framework.dtypes import DataType
from runtime.graph.node import Node

SELECTED = NUMBERS | {DataType.UINT8, DataType.INT8, DataType.UINT32, DataType.BOOL}
_CAST = ARITHMETIC | {DataType.BOOL, DataType.HALF}


def _predicate(op_type: str, is_inverted: bool = False) -> Emitter:
    def emit(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
        found = elementwise(emission, op_type, *inputs, dtype=DataType.BOOL)
        return elementwise(emission, "Not", found) if is_inverted else found

    return emit


def _is_finite(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    nan = elementwise(emission, "IsNaN", inputs[0], dtype=DataType.BOOL)
    infinite = elementwise(emission, "IsInf", inputs[0], dtype=DataType.BOOL)
    return elementwise(emission, "Not", elementwise(emission, "Or", nan, infinite))


def selected(emission: Emission, condition: Value, x: Value, y: Value) -> Value:
    """Return `x` where `condition` is true, and `y` elsewhere; all three are broadcast."""
    if x.dtype is not DataType.BOOL:
        return elementwise(emission, "Where", condition, x, y, dtype=x.dtype)
    # The engine's Where has no boolean form.
    from_x = elementwise(emission, "And", condition, x)
    from_y = elementwise(emission, "And", elementwise(emission, "Not", condition), y)
    return elementwise(emission, "Or", from_x, from_y)


def _select_v2(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    condition, x, y = inputs
    return selected(emission, condition, x, y)


def _select(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    condition, x, y = inputs
    if x.shape != y.shape:
        raise DeclinedError("the two tensors may differ in shape, which is an error")
    if condition.rank == 1 and x.rank > 1 and condition.shape == x.shape[:1]:
        condition = reshaped(emission, condition, (*condition.shape, *(1,) * (x.rank - 1)))
    elif condition.rank and condition.shape != x.shape:
        raise DeclinedError("the condition may differ from the tensors in shape")
    return selected(emission, condition, x, y)


def _cast(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    source, to = node.attr("SrcT"), node.attr("DstT")
    if source is to:
        return inputs[0]
    return elementwise(emission, "Cast", inputs[0], dtype=to, to=ONNX_TYPES[to])


def _on_sizes(
    op: str, function: SizeFunction, op_type: str, types: frozenset[DataType] | None, *more: bool
) -> OpEmitter:
    emit = on_sizes(function, _predicate(op_type, *more))
    return OpEmitter(op, emit, {} if types is None else {"T": types})


def _converted(node: Node, elements: object) -> object:
    return elements


EMITTERS = (
    OpEmitter("Cast", on_sizes(_converted, _cast), {"SrcT": _CAST, "DstT": _CAST}),
    _on_sizes("Equal", size_arithmetic.EQUAL, "Equal", ARITHMETIC | {DataType.BOOL}),
    _on_sizes("Greater", size_arithmetic.GREATER, "Greater", ARITHMETIC),
    _on_sizes("GreaterEqual", size_arithmetic.GREATER_EQUAL, "GreaterOrEqual", ARITHMETIC),
    OpEmitter("IsFinite", _is_finite, {"T": FLOATS}),
    OpEmitter("IsInf", _predicate("IsInf"), {"T": FLOATS}),
    OpEmitter("IsNan", _predicate("IsNaN"), {"T": FLOATS}),
    _on_sizes("Less", size_arithmetic.LESS, "Less", ARITHMETIC),
    _on_sizes("LessEqual", size_arithmetic.LESS_EQUAL, "LessOrEqual", ARITHMETIC),
    _on_sizes("LogicalAnd", size_arithmetic.AND, "And", None),
    _on_sizes("LogicalNot", size_arithmetic.NOT, "Not", None),
    _on_sizes("LogicalOr", size_arithmetic.OR, "Or", None),
    _on_sizes("NotEqual", size_arithmetic.NOT_EQUAL, "Equal", ARITHMETIC | {DataType.BOOL}, True),
    OpEmitter("Select", on_sizes(size_arithmetic.SELECT, _select), {"T": SELECTED}),
    OpEmitter("SelectV2", on_sizes(size_arithmetic.SELECT, _select_v2), {"T": SELECTED}),
)
