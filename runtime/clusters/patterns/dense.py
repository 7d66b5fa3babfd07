"""A product by a matrix of weights and the bias that follows it are one operation.

The engine fuses these itself only for matrices, so that axes before the last two are made one.
"""

from __future__ import annotations

from runtime.clusters.dimensions import product, static
from runtime.clusters.emission import Operation
from runtime.clusters.patterns.moves import reshape_target
from runtime.clusters.patterns.pattern import OperationGraph
from runtime.clusters.values import Layout, Value
from runtime.framework.dtypes import DataType


def recognize_dense(graph: OperationGraph, operation: Operation) -> Value | None:
    """Replace a product, perhaps in another shape, and a known sum along its last axes by Gemm."""
    made = operation.outputs[0]
    if operation.op_type != "Add" or made.dtype is not DataType.FLOAT:
        return None
    left, right = operation.inputs
    assert left is not None
    assert right is not None
    if left.array is not None:
        left, right = right, left
    found = _dense(graph, left)
    if found is None or left.model_shape != made.model_shape or made.layout is not Layout.AS_IS:
        return None
    source, weights = found.inputs
    assert source is not None
    assert weights is not None
    bias = _bias(graph, right, left, static(weights.shape[1]))
    if bias is None:
        return None
    emission = graph.emission
    rows, (inner, outer) = product(source.model_shape[:-1]), weights.shape
    target = reshape_target(emission, (rows, outer), made.model_shape)
    if target is None:
        return None
    flat = source
    if source.rank != 2:
        sizes = emission.sizes([-1, inner])
        flat = emission.op("Reshape", [source, sizes], made.dtype, (rows, inner), allowzero=0)
    summed = emission.op("Gemm", [flat, weights, bias], made.dtype, (rows, outer))
    if made.model_shape == summed.model_shape:
        return summed
    return emission.op("Reshape", [summed, target], made.dtype, made.shape, allowzero=0)


def _dense(graph: OperationGraph, value: Value) -> Operation | None:
    """Return the product by a known matrix that gives the elements of `value`."""
    reshape = graph.only(value, "Reshape")
    found = graph.only(value if reshape is None else reshape.inputs[0], "MatMul")
    if found is None:
        return None
    source, weights = found.inputs
    if source is None or weights is None or weights.array is None or weights.rank != 2:
        return None
    return found if source.array is None and 0 not in source.shape else None


def _bias(graph: OperationGraph, value: Value, summed: Value, count: int) -> Value | None:
    """Return a known array as a vector `[count]`, if it is the same for each row of a product."""
    if value.array is None:
        return None
    shape = (1,) * (summed.rank - value.array.ndim) + value.array.shape
    covered, axis = 1, summed.rank
    while covered != count and axis > 0:
        axis -= 1
        size = summed.model_shape[axis]
        if not isinstance(size, int):
            return None
        covered *= size
    if covered != count or shape[axis:] != summed.model_shape[axis:]:
        return None
    if any(size != 1 for size in shape[:axis]):
        return None
    return graph.emission.derive(lambda array: array.reshape(-1), value)
