"""Operations that only move elements: fewer of them, and where they cost less.

A Transpose moves up through element-wise operations to where there are fewer bytes, or where one
undoes another. A Transpose of axes of size 1 moves nothing and is a Reshape; of a chain of these
the last remains, or none if the shape is that of its start.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.clusters.dimensions import Dimension, Shape, SymbolicSize
from runtime.clusters.emission import Emission, Operation
from runtime.clusters.patterns.pattern import OperationGraph
from runtime.clusters.values import Layout, Value

_RESHAPES = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")
# Operations of one tensor, and scalars after it.
UNARY = ("Cast", "Clip", "LeakyRelu", "Neg", "Relu", "Sigmoid", "Sqrt", "Tanh")
BINARY = ("Add", "Div", "Mul", "Sub")


def drop_moves(graph: OperationGraph, operation: Operation) -> Value | None:
    """Replace a Transpose or Reshape by one that costs less, or by none."""
    made = operation.outputs[0]
    source = operation.inputs[0]
    if source is None or source.array is not None:
        return None
    if operation.op_type in _RESHAPES:
        return _reshaped(graph, source, made)
    if operation.op_type != "Transpose":
        return None
    order = operation.attributes["perm"]
    if not _is_movable(graph, source, order):
        return None
    return _like(_transposed(graph, source, order), made)


def _like(value: Value, other: Value) -> Value:
    """Return the tensor `value` with the shape and layout that `other` has."""
    return Value(other.dtype, other.shape, value.name, other.layout)


def _plain(value: Value) -> Value:
    """Return the tensor `value` as one whose TensorFlow order is that of the model."""
    return Value(value.dtype, value.model_shape, value.name, Layout.AS_IS)


# Reshapes


def _reshaped(graph: OperationGraph, source: Value, made: Value) -> Value | None:
    """Return `source` in the shape of `made`, from as far up as elements keep their order."""
    start = source
    while (found := graph.producer(start, *_RESHAPES)) is not None and found.inputs[0] is not None:
        start = found.inputs[0]
    if start.model_shape == made.model_shape:
        return _like(start, made)
    if start is source:
        return None
    target = reshape_target(graph.emission, start.model_shape, made.model_shape)
    if target is None:
        return None
    return graph.emission.op(
        "Reshape", [start, target], made.dtype, made.shape, layout=made.layout, allowzero=0
    )


def reshape_target(emission: Emission, given: Shape, wanted: Shape) -> Value | None:
    """Return the constant operand of Reshape: 0 copies a size and −1 is what is left.

    Returns None if there is more than one unknown size to find.
    """
    sizes: list[Dimension] = [
        0 if axis < len(given) and given[axis] == size else size for axis, size in enumerate(wanted)
    ]
    unknown = [axis for axis, size in enumerate(sizes) if isinstance(size, SymbolicSize)]
    if len(unknown) > 1 or 0 in wanted:
        return None
    for axis in unknown:
        sizes[axis] = -1
    return emission.sizes(sizes)


# Transposes


def _moves_nothing(shape: Shape, order: Sequence[int]) -> bool:
    """Return whether axes other than those of size 1 keep their order."""
    moved = [axis for axis in order if shape[axis] != 1]
    return moved == sorted(moved)


def _is_movable(graph: OperationGraph, value: Value, order: Sequence[int]) -> bool:
    """Return whether a Transpose of `value` is better further up, or none."""
    if graph.is_made(value):
        return _ends_well(graph, value, order)
    return _is_reshape(graph, value, order)


def _is_reshape(graph: OperationGraph, value: Value, order: Sequence[int]) -> bool:
    """Return whether a Transpose moves nothing, and a Reshape can be written for it."""
    shape, wanted = value.model_shape, _in_order(value, order)
    if not _moves_nothing(shape, order):
        return False
    return reshape_target(graph.emission, shape, wanted) is not None


def _ends_well(graph: OperationGraph, value: Value, order: Sequence[int]) -> bool:
    """Return whether a Transpose that moves up from `value` vanishes, or reaches an input.

    Elsewhere it stays behind the element-wise operations, which belong to what is before them.
    """
    if _is_reshape(graph, value, order):
        return True
    if not graph.is_made(value):
        return True
    source, inner = _before(graph, value, order)
    return source is not None and _ends_well(graph, source, inner)


def _before(
    graph: OperationGraph, value: Value, order: Sequence[int]
) -> tuple[Value | None, list[int]]:
    """Return the value, and the order, whose Transpose gives that of `value`; None if none does."""
    other = graph.producer(value, "Transpose")
    if other is not None:
        return other.inputs[0], [other.attributes["perm"][axis] for axis in order]
    operation = graph.only(value, *UNARY, *BINARY, "Pad", *_RESHAPES)
    if operation is None:
        return None, []
    if operation.op_type in _RESHAPES:
        inner = _inner_order(operation, order)
        return (None, []) if inner is None else (operation.inputs[0], inner)
    if operation.op_type == "Pad":
        return (operation.inputs[0] if _pads(operation) is not None else None), list(order)
    return unknown_operand(operation), list(order)


def _in_order(value: Value, order: Sequence[int]) -> Shape:
    shape = value.model_shape
    return tuple(shape[axis] for axis in order)


def _transposed(graph: OperationGraph, value: Value, order: Sequence[int]) -> Value:
    """Return `value` with its axes in another order, by a Transpose as far up as it can be."""
    emission, shape = graph.emission, _in_order(value, order)
    if list(order) == list(range(value.rank)):
        return _plain(value)
    if not _is_movable(graph, value, order):
        return emission.op("Transpose", [value], value.dtype, shape, perm=list(order))
    if _is_reshape(graph, value, order):
        made = Value(value.dtype, shape)
        reshaped = _reshaped(graph, value, made)
        if reshaped is not None:
            return reshaped
        return _in_shape(emission, value, shape)
    source, inner = _before(graph, value, order)
    assert source is not None
    if graph.producer(value, "Transpose") is not None:
        return _transposed(graph, source, inner)
    operation = graph.only(value, *UNARY, *BINARY, "Pad", *_RESHAPES)
    assert operation is not None
    if operation.op_type in _RESHAPES:
        return _in_shape(graph.emission, _transposed(graph, source, inner), shape)
    operands = _moved_operands(graph, operation, order)
    return emission.op(
        operation.op_type,
        operands,
        value.dtype,
        shape,
        domain=operation.domain,
        **operation.attributes,
    )


def _in_shape(emission: Emission, value: Value, shape: Shape) -> Value:
    """Return `value` in a shape that differs from its own in axes of size 1."""
    if value.model_shape == shape:
        return value
    target = reshape_target(emission, value.model_shape, shape)
    assert target is not None
    return emission.op("Reshape", [value, target], value.dtype, shape, allowzero=0)


def _moved_operands(
    graph: OperationGraph, operation: Operation, order: Sequence[int]
) -> list[Value | None]:
    """Return the operands of an operation for its transposed result."""
    derive = graph.emission.derive
    if operation.op_type == "Pad":
        source, pads, *rest = operation.inputs
        assert source is not None
        assert pads is not None
        both = derive(
            lambda array: np.concatenate([each[order] for each in np.split(array, 2)]), pads
        )
        return [_transposed(graph, source, order), both, *rest]
    result: list[Value | None] = []
    for value in operation.inputs:
        if value is None or value.array is None:
            result.append(None if value is None else _transposed(graph, value, order))
        elif value.array.ndim == 0:
            result.append(value)
        else:
            result.append(derive(lambda array: _as_rank(array, len(order)).transpose(order), value))
    return result


def _as_rank(array: np.ndarray, rank: int) -> np.ndarray:
    """Return `array` with axes of size 1 before its own."""
    return array.reshape((1,) * (rank - array.ndim) + array.shape)


def unknown_operand(operation: Operation) -> Value | None:
    """Return the operand that is known at a run only, if others broadcast to its shape."""
    unknown = [each for each in operation.inputs if each is not None and each.array is None]
    if len(unknown) != 1 or unknown[0].sizes is not None:
        return None
    shape = operation.outputs[0].model_shape
    return unknown[0] if unknown[0].model_shape == shape else None


def _pads(operation: Operation) -> Value | None:
    """Return the pads of all axes if they are known, and the padding is by a number."""
    pads = operation.inputs[1]
    if len(operation.inputs) > 3 or pads is None:
        return None
    return pads if pads.constant is not None else None


def _inner_order(operation: Operation, order: Sequence[int]) -> list[int] | None:
    """Return how to transpose the operand of a Reshape instead of its result.

    Returns None if the Reshape does more than put in or leave out axes of size 1.
    """
    source = operation.inputs[0]
    if source is None:
        return None
    before, after = source.model_shape, operation.outputs[0].model_shape
    inner = [axis for axis, size in enumerate(before) if size != 1]
    outer = [axis for axis, size in enumerate(after) if size != 1]
    if [before[axis] for axis in inner] != [after[axis] for axis in outer]:
        return None
    place = dict(zip(outer, inner, strict=True))
    moved = [place[axis] for axis in order if axis in place]
    return moved + [axis for axis, size in enumerate(before) if size == 1]
