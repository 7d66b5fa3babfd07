"""Emitters of tensor lists around recurrent loops: a list is the tensor of its elements.

A model has no lists, so a list never enters or leaves a cluster.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from runtime.clusters.dimensions import Dimension, Shape
from runtime.clusters.emission import DeclinedError, Emission
from runtime.clusters.op_emitter import FLOAT, OpEmitter
from runtime.clusters.values import Value
from runtime.framework.dtypes import DataType
from runtime.graph.node import Node


@dataclasses.dataclass(slots=True, eq=False)
class TensorListValue(Value):
    """A list of `length` elements: the rows of `elements`, or None if none is set yet.

    `element_shape` is what the list requires of elements, −1 for any size; None for any shape.
    """

    length: Dimension = 0
    element_shape: tuple[int, ...] | None = None
    elements: Value | None = None


def tensor_list(
    length: Dimension, element_shape: tuple[int, ...] | None, elements: Value | None
) -> TensorListValue:
    """Return a list; raise DeclinedError if its elements may not have the required shape."""
    if elements is not None:
        check_elements(element_shape, elements.shape[1:])
    return TensorListValue(
        DataType.VARIANT, (), length=length, element_shape=element_shape, elements=elements
    )


def check_elements(required: tuple[int, ...] | None, shape: Shape) -> None:
    """Raise DeclinedError unless `shape` is as required in every run."""
    if required is None:
        return
    fits = len(required) == len(shape) and all(
        size in (-1, actual) for size, actual in zip(required, shape, strict=True)
    )
    if not fits:
        raise DeclinedError(f"elements of shape {shape} in a list of {required}")


def as_list(value: Value) -> TensorListValue:
    """Return `value`, which must be a list made in this cluster."""
    if not isinstance(value, TensorListValue):
        raise DeclinedError("a list that is not made in the cluster")
    return value


def whole_number(value: Value) -> Dimension:
    """Return the integer that a scalar is, if it is known before a run.

    Kernels refuse a vector of one number, so it is declined.
    """
    if value.rank:
        raise DeclinedError(f"a number of shape {value.shape}")
    if value.sizes is not None and len(value.sizes) == 1:
        return value.sizes[0]
    array = value.constant
    if array is None or array.size != 1 or array.dtype.kind not in "iu":
        raise DeclinedError("a number that only a run can tell")
    return int(array.reshape(-1)[0])


def required_shape(value: Value) -> tuple[int, ...] | None:
    """Return what an operand `element_shape` requires; sizes that a run tells require nothing."""
    if value.sizes is not None and value.rank == 1:
        return tuple(size if isinstance(size, int) else -1 for size in value.sizes)
    if value.constant is None:
        raise DeclinedError("an element shape that only a run can tell")
    array = np.asarray(value.constant)
    if array.ndim == 0 and array != -1:
        raise DeclinedError("an element shape that is a scalar other than -1, which is an error")
    return None if array.ndim == 0 else tuple(int(each) for each in array)


def _from_tensor(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    tensor, element_shape = inputs
    if tensor.rank == 0:
        raise DeclinedError("a list of a scalar")
    elements = emission.as_is(tensor)
    return tensor_list(elements.shape[0], required_shape(element_shape), elements)


def _reserve(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    element_shape, length = inputs
    return tensor_list(whole_number(length), required_shape(element_shape), None)


def _stack(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    elements = as_list(inputs[0]).elements
    if elements is None:
        raise DeclinedError("a list without elements")
    check_elements(required_shape(inputs[1]), elements.shape[1:])
    if node.attr("num_elements") not in (-1, elements.shape[0]):
        raise DeclinedError(f"a list of {elements.shape[0]} elements")
    return elements


def _length(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    return emission.size(as_list(inputs[0]).length, DataType.INT32)


_TYPES = {"element_dtype": FLOAT}
EMITTERS = (
    OpEmitter("TensorListFromTensor", _from_tensor, _TYPES, constants=(1,), uses_lists=True),
    OpEmitter("TensorListLength", _length, uses_lists=True),
    OpEmitter("TensorListReserve", _reserve, _TYPES, constants=(0, 1), uses_lists=True),
    OpEmitter("TensorListStack", _stack, _TYPES, constants=(1,), uses_lists=True),
)
