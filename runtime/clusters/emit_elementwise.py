"""Emitters of element-wise operations.

These keep channels first if an operand has that order; the other operands follow.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.clusters.dimensions import broadcast
from runtime.clusters.emission import Emission
from runtime.clusters.op_emitter import FLOAT, NUMBERS, OpEmitter
from runtime.clusters.values import Layout, Value
from runtime.graph.node import Node


def in_one_layout(emission: Emission, values: Sequence[Value]) -> tuple[list[Value], Layout]:
    """Return `values` in one layout, and that layout, for an operation that broadcasts them.

    It is channels-first if one of them is and all others can follow: those of the same rank are
    transposed, a vector of channels gets axes of size 1 after it, a scalar needs nothing.
    """
    first = next((each for each in values if each.layout is Layout.CHANNELS_FIRST), None)
    if first is None:
        return list(values), Layout.AS_IS
    if not all(each.rank in (0, first.rank) or _is_channel_vector(each) for each in values):
        return [emission.as_is(each) for each in values], Layout.AS_IS
    return [_follow(emission, each, first.rank) for each in values], Layout.CHANNELS_FIRST


def _is_channel_vector(value: Value) -> bool:
    return value.rank == 1 and value.array is not None


def _follow(emission: Emission, value: Value, rank: int) -> Value:
    if value.rank == 0:
        return value
    if value.rank == 1:
        shape = (-1, *(1,) * (rank - 2))
        return emission.derive(lambda array: array.reshape(shape), value)
    return emission.channels_first(value)


def elementwise(emission: Emission, op_type: str, *values: Value) -> Value:
    """Add an operation that broadcasts its operands; its result has the type of the first."""
    operands, layout = in_one_layout(emission, values)
    shape = broadcast(*(value.shape for value in values))
    return emission.op(op_type, operands, values[0].dtype, shape, layout=layout)


def _add(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    return elementwise(emission, "Add", *inputs)


def _relu(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    return elementwise(emission, "Relu", *inputs)


EMITTERS = (
    OpEmitter("Add", _add, {"T": NUMBERS}),
    OpEmitter("AddV2", _add, {"T": NUMBERS}),
    OpEmitter("Relu", _relu, {"T": FLOAT}),
)
