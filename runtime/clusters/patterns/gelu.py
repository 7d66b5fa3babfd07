"""Gelu from the operations that compute it.

TF: tensorflow/python/ops/nn_ops.py (gelu); Keras writes it with Erfc.
"""

from __future__ import annotations

import math

from runtime.clusters.emission import Operation
from runtime.clusters.patterns.pattern import OperationGraph
from runtime.clusters.patterns.scalars import (
    is_number,
    multiples,
    product,
    product_of,
    scalar,
)
from runtime.clusters.values import Value
from runtime.framework.dtypes import DataType

_CUBE = 0.044715  # the weight of x³ in the approximation by tanh


def recognize_gelu(graph: OperationGraph, operation: Operation) -> Value | None:
    """Replace x / 2 · (1 + erf(x / √2)), or its approximation by tanh, by Gelu."""
    made = operation.outputs[0]
    if operation.op_type not in ("Mul", "Div") or made.dtype is not DataType.FLOAT:
        return None
    whole = product_of(graph, operation)
    for gate in whole.factors if whole is not None else ():
        source, approximation = _argument(graph, gate)
        if source is None or source.model_shape != made.model_shape:
            continue
        seen = product_of(graph, operation, source)
        if seen is not None and seen.is_of(0.5, source, gate):
            return graph.emission.op(
                "Gelu",
                [source],
                made.dtype,
                made.shape,
                layout=made.layout,
                approximate=approximation,
            )
    return None


def _argument(graph: OperationGraph, gate: Value) -> tuple[Value | None, str]:
    """Return (x, name of the approximation) if `gate` is 1 + erf(x / √2) or with tanh."""
    total = graph.producer(gate, "Add", "Sub")
    if total is None:
        return None, ""
    one, curve = total.inputs
    if total.op_type == "Add" and scalar(one) is None:
        one, curve = curve, one
    bend = graph.producer(curve, "Erf", "Tanh")
    if bend is None or not is_number(scalar(one), 1.0):
        return None, ""
    sign = -1.0 if total.op_type == "Sub" else 1.0
    (inner,) = bend.inputs
    assert inner is not None
    if bend.op_type == "Erf":
        return _multiple(graph, inner, sign * math.sqrt(0.5)), "none"
    cubic = _multiple(graph, inner, sign * math.sqrt(2 / math.pi))
    return None if cubic is None else _base(graph, cubic), "tanh"


def _multiple(graph: OperationGraph, value: Value, number: float) -> Value | None:
    """Return the value of which `value` is `number` times."""
    found = (factor for by, factor in multiples(graph, value) if is_number(by, number))
    return next(found, None)


def _base(graph: OperationGraph, cubic: Value) -> Value | None:
    """Return x if `cubic` is x + 0.044715 x³."""
    total = graph.producer(cubic, "Add")
    if total is None:
        return None
    left, right = total.inputs
    assert left is not None
    assert right is not None
    for source, cube in ((left, right), (right, left)):
        if product(graph, cube, source).is_of(_CUBE, source, source, source):
            return source
    return None
