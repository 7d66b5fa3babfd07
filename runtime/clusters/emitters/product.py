"""Emitters of matrix products and of Einsum, which is expanded to transposes around a product."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.clusters.dimensions import (
    Dimension,
    Shape,
    SymbolicSize,
    broadcast,
    is_static,
    product,
)
from runtime.clusters.emission import DeclinedError, Emission
from runtime.clusters.emitters.windows import text
from runtime.clusters.op_emitter import FLOATS, NUMBERS, OpEmitter
from runtime.clusters.values import Value
from runtime.foundation.errors import OpError
from runtime.graph.node import Node
from runtime.kernels.linalg.einsum import Label, Plan, make_plan


def _mat_mul(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    """Write MatMul: `[m, k]` by `[k, n]`."""
    left, right = inputs
    if left.rank != 2 or right.rank != 2:
        raise DeclinedError(f"matrices of rank {left.rank} and {right.rank}")
    return _multiplied(emission, node, inputs, "transpose_a", "transpose_b")


def _batch_mat_mul(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    """Write BatchMatMul, V2 or V3: `[..., m, k]` by `[..., k, n]`; a real adjoint transposes."""
    left, right = inputs
    if node.op == "BatchMatMul" and left.shape[:-2] != right.shape[:-2]:
        raise DeclinedError(f"batches {left.shape[:-2]} and {right.shape[:-2]}")
    if left.rank < 2 or right.rank < 2:
        raise DeclinedError(f"matrices of rank {left.rank} and {right.rank}")
    return _multiplied(emission, node, inputs, "adj_x", "adj_y")


def _multiplied(emission: Emission, node: Node, inputs: Sequence[Value], *transposed: str) -> Value:
    left, right = (
        _with_last_axes_swapped(emission, each) if node.attr(name) else emission.as_is(each)
        for each, name in zip(inputs, transposed, strict=True)
    )
    return mat_mul(emission, left, right)


def mat_mul(emission: Emission, left: Value, right: Value) -> Value:
    """Add the product of `[..., m, k]` and `[..., k, n]` in TensorFlow's order of axes.

    Leading axes broadcast. Raises DeclinedError if the inner sizes can't be equal.
    """
    if left.shape[-1] != right.shape[-2]:
        raise DeclinedError(f"sizes {left.shape[-1]} and {right.shape[-2]} of a sum")
    shape = (*broadcast(left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-1])
    return emission.op("MatMul", [left, right], left.dtype, shape)


def _with_last_axes_swapped(emission: Emission, value: Value) -> Value:
    order = [*range(value.rank - 2), value.rank - 1, value.rank - 2]
    return transpose(emission, value, order)


def transpose(emission: Emission, value: Value, order: Sequence[int]) -> Value:
    """Return `value` with its axes in another order; of what is known before a run, by numpy."""
    order = list(order)
    value = emission.as_is(value)
    if order == list(range(value.rank)):
        return value
    if value.array is not None:
        return emission.derive(lambda array: array.transpose(order), value)
    shape = tuple(value.shape[axis] for axis in order)
    return emission.op("Transpose", [value], value.dtype, shape, perm=order)


def reshape(emission: Emission, value: Value, shape: Shape) -> Value:
    """Return `value` with another shape of as many elements."""
    value = emission.as_is(value)
    if value.shape == shape:
        return value
    if value.array is not None and is_static(shape):
        return emission.derive(lambda array: array.reshape(shape), value)
    target, allows_zero = _target(emission, value.shape, shape)
    return emission.op("Reshape", [value, target], value.dtype, shape, allowzero=allows_zero)


def _target(emission: Emission, given: Shape, shape: Shape) -> tuple[Value, int]:
    """Return the operand of Reshape, and whether a 0 in it means a size of 0.

    It is a constant where it can be: an unknown size is 0, which copies that of the same axis, or
    -1, which is what is left.
    """
    wanted: list[Dimension] = list(shape)
    for axis, size in enumerate(shape):
        if isinstance(size, SymbolicSize):
            if axis < len(given) and given[axis] == size:
                wanted[axis] = 0
            elif -1 not in wanted:
                wanted[axis] = -1
    if 0 in shape or not is_static(wanted):
        return emission.sizes(shape), 1
    return emission.sizes(wanted), 0


def _einsum(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    try:
        plan = make_plan(text(node, "equation"), tuple(value.rank for value in inputs))
    except OpError as error:
        raise DeclinedError(str(error)) from None
    if len(plan.output) != len(plan.distinct_output):
        raise DeclinedError("a label that is twice in the output")
    sizes = _label_sizes(plan, inputs)
    values = [
        _summed(emission, value, labels, kept)
        for value, labels, kept in zip(inputs, plan.inputs, plan.kept, strict=True)
    ]
    if len(values) == 1:
        return _arranged(emission, values[0], plan.kept[0], plan.output)
    value, labels = _contracted(emission, plan, values, sizes)
    return _arranged(emission, value, labels, plan.output)


def _label_sizes(plan: Plan, inputs: Sequence[Value]) -> dict[Label, Dimension]:
    """Return the size of each label; raise DeclinedError if inputs differ in one."""
    sizes: dict[Label, Dimension] = {}
    for labels, value in zip(plan.inputs, inputs, strict=True):
        if len(set(labels)) != len(labels):
            raise DeclinedError("a label that is twice in an input")
        for label, size in zip(labels, value.shape, strict=True):
            known = sizes.setdefault(label, size)
            if known == size:
                continue
            if not isinstance(label, int):
                raise DeclinedError(f"sizes {known} and {size} of {label}")
            (sizes[label],) = broadcast((known,), (size,))
    return sizes


def _summed(
    emission: Emission, value: Value, labels: Sequence[Label], kept: Sequence[Label]
) -> Value:
    """Return the sum over the labels that nothing else has."""
    axes = [axis for axis, label in enumerate(labels) if label not in kept]
    if not axes:
        return value
    value = emission.as_is(value)
    shape = tuple(size for size, label in zip(value.shape, labels, strict=True) if label in kept)
    operand = emission.constant(np.array(axes, np.int64))
    return emission.op("ReduceSum", [value, operand], value.dtype, shape, keepdims=0)


def _arranged(
    emission: Emission, value: Value, labels: Sequence[Label], order: Sequence[Label]
) -> Value:
    """Return `value`, whose axes have `labels`, with the axes in `order`.

    A label that `value` lacks becomes an axis of size 1.
    """
    present = [label for label in order if label in labels]
    moved = transpose(emission, value, [list(labels).index(label) for label in present])
    if len(present) == len(order):
        return moved
    sizes = dict(zip(present, moved.shape, strict=True))
    return reshape(emission, moved, tuple(sizes.get(label, 1) for label in order))


def _free(plan: Plan) -> tuple[tuple[Label, ...], tuple[Label, ...]]:
    """Return the labels that only the first input has, and those that only the second has."""
    joined = {*plan.batch, *plan.contracted}
    first, second = (tuple(each for each in kept if each not in joined) for kept in plan.kept)
    return first, second


def _contracted(
    emission: Emission, plan: Plan, values: Sequence[Value], sizes: dict[Label, Dimension]
) -> tuple[Value, tuple[Label, ...]]:
    """Return (sum of products, labels of its axes).

    Without common labels that stay, the rows of the left operand keep their axes. The operands
    change places if the output has the axes of the second input before those of the first.
    """
    batch, inner = plan.batch, plan.contracted
    kept, free = list(plan.kept), list(_free(plan))
    places = [plan.output.index(each[0]) for each in free if each]
    if len(places) == 2 and places[0] > places[1]:
        values, kept, free = values[::-1], kept[::-1], free[::-1]
    rows, columns = free
    depth = len(batch)
    left = _arranged(emission, values[0], kept[0], batch + rows + inner)
    right = _arranged(emission, values[1], kept[1], batch + inner + columns)
    row_sizes: Shape = tuple(sizes[label] for label in rows)
    column_sizes: Shape = tuple(sizes[label] for label in columns)
    middle = row_sizes if not batch and rows else (product(row_sizes),)
    count = product(sizes[label] for label in inner)
    left = reshape(emission, left, (*left.shape[:depth], *middle, count))
    right = reshape(emission, right, (*right.shape[:depth], count, product(column_sizes)))
    made = mat_mul(emission, left, right)
    shape = (*(sizes[label] for label in batch), *row_sizes, *column_sizes)
    return reshape(emission, made, shape), batch + rows + columns


EMITTERS = (
    OpEmitter("BatchMatMul", _batch_mat_mul, {"T": NUMBERS}, is_heavy=True),
    OpEmitter("BatchMatMulV2", _batch_mat_mul, {"T": NUMBERS}, is_heavy=True),
    OpEmitter(
        "BatchMatMulV3",
        _batch_mat_mul,
        {"Ta": FLOATS, "Tb": FLOATS, "Tout": FLOATS},
        is_heavy=True,
        check=lambda node: node.attr("Ta") == node.attr("Tb") == node.attr("Tout"),
    ),
    OpEmitter("Einsum", _einsum, {"T": FLOATS}, is_heavy=True),
    OpEmitter("MatMul", _mat_mul, {"T": NUMBERS}, is_heavy=True),
)
