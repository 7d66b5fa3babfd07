"""Layer normalization, and its form without a mean, from the operations that compute it.

Keras writes x · s + (β − mean · s) with s = γ / √(variance + ε); other exporters write
(x − mean) / √(variance + ε) · γ + β. First the normalization is found, then it takes in γ and β.

TF: tensorflow/python/ops/nn_impl.py (batch_normalization, moments)
"""

from __future__ import annotations

import dataclasses

import numpy as np

from runtime.clusters.dimensions import is_static, static_shape
from runtime.clusters.emission import Emission, Operation
from runtime.clusters.patterns.pattern import OperationGraph
from runtime.clusters.patterns.scalars import product, scalar
from runtime.clusters.values import Layout, Value
from runtime.framework.dtypes import DataType

_CENTRED, _UNCENTRED = "LayerNormalization", "SimplifiedLayerNormalization"


@dataclasses.dataclass(frozen=True, slots=True)
class Statistics:
    """What 1 / √(variance + ε) is of; `mean` is None if the mean square is the variance."""

    source: Value
    mean: Value | None
    axis: int  # the first of the axes over which means are taken, which are the last ones
    epsilon: float


def recognize_layer_normalization(graph: OperationGraph, operation: Operation) -> Value | None:
    """Replace a normalization over the last axes, or a scale or shift that follows one."""
    made = operation.outputs[0]
    if made.dtype is not DataType.FLOAT or made.layout is not Layout.AS_IS:
        return None
    if operation.op_type in ("Add", "Sub"):
        return _shifted(graph, operation) or _with_offset(graph, operation)
    if operation.op_type in ("Mul", "Div"):
        return _normalized(graph, operation) or _with_scale(graph, operation)
    return None


def _orders(operation: Operation) -> tuple[tuple[Value, Value], ...]:
    """Return the operands in the orders that give the same result."""
    left, right = operation.inputs
    assert left is not None
    assert right is not None
    if operation.op_type in ("Add", "Mul"):
        return (left, right), (right, left)
    return ((left, right),)


def _shifted(graph: OperationGraph, operation: Operation) -> Value | None:
    """Write x · s + (β − mean · s), or x · s − mean · s."""
    for scaled, shift in _orders(operation):
        times = graph.producer(scaled, "Mul")
        for source, factor in _orders(times) if times is not None else ():
            found = _scale(graph, factor)
            if found is None or found[0].source.name != source.name:
                continue
            statistics, gamma = found
            is_difference = operation.op_type == "Sub"
            matched, beta = _offset(graph, shift, statistics, factor, is_difference)
            if matched:
                return _write(graph.emission, operation, statistics, gamma, beta)
    return None


def _offset(
    graph: OperationGraph,
    shift: Value,
    statistics: Statistics,
    factor: Value,
    is_difference: bool,
) -> tuple[bool, Value | None]:
    """Return (whether `shift` is β − mean · s, β); β is None if there is none."""
    mean = statistics.mean
    if mean is None:
        return False, None
    if product(graph, shift, factor).is_of(1.0 if is_difference else -1.0, mean, factor):
        return True, None
    total = None if is_difference else graph.producer(shift, "Add", "Sub")
    if total is None:
        return False, None
    if total.op_type == "Sub":
        ((beta, rest),) = _orders(total)
        return product(graph, rest, factor).is_of(1.0, mean, factor), beta
    for rest, beta in _orders(total):
        if product(graph, rest, factor).is_of(-1.0, mean, factor):
            return True, beta
    return False, None


def _normalized(graph: OperationGraph, operation: Operation) -> Value | None:
    """Write (x − mean) · s, or x · s if the mean square is the variance."""
    for left, right in _orders(operation):
        if operation.op_type == "Mul":
            found = _scale(graph, right)
        else:
            statistics = _statistics(graph, right, is_inverse=False)
            found = None if statistics is None else (statistics, None)
        if found is None:
            continue
        statistics, gamma = found
        if _is_centred(graph, left, statistics):
            return _write(graph.emission, operation, statistics, gamma, None)
    return None


def _is_centred(graph: OperationGraph, value: Value, statistics: Statistics) -> bool:
    if statistics.mean is None:
        return value.name == statistics.source.name
    return _is_difference(graph, value, statistics.source, statistics.mean)


def _is_difference(graph: OperationGraph, value: Value, left: Value, right: Value) -> bool:
    found = graph.producer(value, "Sub")
    if found is None:
        return False
    names = [each.name for each in found.inputs if each is not None]
    return names == [left.name, right.name]


def _scale(graph: OperationGraph, value: Value) -> tuple[Statistics, Value | None] | None:
    """Return what `value` = γ / √(variance + ε) is of, and γ if there is one."""
    statistics = _statistics(graph, value, is_inverse=True)
    if statistics is not None:
        return statistics, None
    times = graph.producer(value, "Mul")
    for inverse, gamma in _orders(times) if times is not None else ():
        statistics = _statistics(graph, inverse, is_inverse=True)
        if statistics is not None and gamma.array is not None:
            return statistics, gamma
    return None


def _statistics(graph: OperationGraph, value: Value, is_inverse: bool) -> Statistics | None:
    """Return what `value` is 1 / √(variance + ε) of, or √(variance + ε) if not `is_inverse`."""
    root = graph.producer(value, "Reciprocal", "Pow") if is_inverse else None
    if root is not None and root.op_type == "Pow":
        if scalar(root.inputs[1]) != -0.5:
            return None
        return _of_variance(graph, root.inputs[0])
    if is_inverse and root is None:
        return None
    square_root = graph.producer(value if root is None else root.inputs[0], "Sqrt", "Pow")
    if square_root is None:
        return None
    if square_root.op_type == "Pow" and scalar(square_root.inputs[1]) != 0.5:
        return None
    return _of_variance(graph, square_root.inputs[0])


def _of_variance(graph: OperationGraph, value: Value | None) -> Statistics | None:
    """Return what `value` = variance + ε is of."""
    total = graph.producer(value, "Add")
    for variance, epsilon in _orders(total) if total is not None else ():
        number, mean = scalar(epsilon), graph.producer(variance, "ReduceMean")
        if number is None or number < 0 or mean is None:
            continue
        axis = _last_axes(mean)
        base = _squared(graph, mean.inputs[0])
        if axis is None or base is None:
            continue
        difference = graph.producer(base, "Sub")
        if difference is None:
            return Statistics(base, None, axis, number)
        source, centre = difference.inputs
        average = graph.producer(centre, "ReduceMean")
        if average is None or source is None or average.inputs[0] is None:
            return Statistics(base, None, axis, number)
        if average.inputs[0].name == source.name and _last_axes(average) == axis:
            return Statistics(source, centre, axis, number)
        return Statistics(base, None, axis, number)
    return None


def _squared(graph: OperationGraph, value: Value | None) -> Value | None:
    """Return the value of which `value` is the square."""
    found = graph.producer(value, "Mul", "Pow")
    if found is None:
        return None
    left, right = found.inputs
    assert left is not None
    assert right is not None
    is_square = scalar(right) == 2.0 if found.op_type == "Pow" else left.name == right.name
    return left if is_square else None


def _last_axes(mean: Operation) -> int | None:
    """Return the first of the axes of a mean that keeps them, if they are the last ones."""
    source, axes = (*mean.inputs, None)[:2]
    if source is None or axes is None or axes.constant is None or not mean.attributes["keepdims"]:
        return None
    if source.layout is not Layout.AS_IS:
        return None
    found = sorted(int(axis) % source.rank for axis in axes.constant.ravel())
    first = source.rank - len(found)
    if not found or found != list(range(first, source.rank)):
        return None
    return first if is_static(source.shape[first:]) and 0 not in source.shape[first:] else None


def _write(
    emission: Emission,
    operation: Operation,
    statistics: Statistics,
    gamma: Value | None,
    beta: Value | None,
) -> Value | None:
    source, made = statistics.source, operation.outputs[0]
    if source.shape != made.shape:
        return None
    scale = _vector(emission, gamma, source, statistics.axis)
    offset = None if beta is None else _vector(emission, beta, source, statistics.axis)
    if scale is None or (beta is not None and offset is None):
        return None
    operands = [source, scale] if offset is None else [source, scale, offset]
    return emission.op(
        _UNCENTRED if statistics.mean is None else _CENTRED,
        operands,
        made.dtype,
        made.shape,
        axis=statistics.axis,
        epsilon=statistics.epsilon,
    )


def _vector(emission: Emission, value: Value | None, source: Value, axis: int) -> Value | None:
    """Return a known array as one of the normalised axes alone, ones if there is none."""
    sizes = static_shape(source.shape[axis:])
    if value is None:
        return emission.constant(np.ones(sizes, np.float32))
    if value.array is None:
        return None
    shape = (1,) * (source.rank - value.array.ndim) + value.array.shape
    if any(size != 1 for size in shape[:axis]):
        return None
    own = shape[axis:]
    return emission.derive(lambda array: np.broadcast_to(array.reshape(own), sizes).copy(), value)


def _with_scale(graph: OperationGraph, operation: Operation) -> Value | None:
    """Let a normalization take in a factor that follows it."""
    if operation.op_type != "Mul":
        return None
    for value, gamma in _orders(operation):
        found = graph.only(value, _CENTRED, _UNCENTRED)
        if found is not None and len(found.inputs) == 2:
            return _taken_in(graph.emission, operation, found, gamma, np.multiply)
    return None


def _with_offset(graph: OperationGraph, operation: Operation) -> Value | None:
    """Let a normalization with a mean take in a sum that follows it."""
    if operation.op_type != "Add":
        return None
    for value, beta in _orders(operation):
        found = graph.only(value, _CENTRED)
        if found is not None:
            return _taken_in(graph.emission, operation, found, beta, np.add)
    return None


def _taken_in(
    emission: Emission, operation: Operation, found: Operation, array: Value, combine: np.ufunc
) -> Value | None:
    source, scale, *offset = found.inputs
    made, axis = operation.outputs[0], int(found.attributes["axis"])
    assert source is not None
    assert scale is not None
    vector = _vector(emission, array, source, axis) if array.array is not None else None
    if vector is None or source.shape != made.shape:
        return None
    last = offset[0] if offset else scale
    assert last is not None
    if combine is np.add and not offset:
        operands: list[Value | None] = [source, scale, vector]
    elif last.array is None:
        return None
    else:
        operands = [*found.inputs[:-1], emission.derive(combine, last, vector)]
    return emission.op(found.op_type, operands, made.dtype, made.shape, **found.attributes)
