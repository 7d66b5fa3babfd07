"""Conversion of values to tensors.

A tensor is returned as it is, a variable is read, lists with tensors become Pack operations, and
other values become Const operations.

TF: tensorflow/python/framework/tensor_conversion_registry.py, constant_op.py
"""

from __future__ import annotations

import abc
from collections.abc import Sequence

import protos as pb
from runtime.client.framework.argument_types import TensorLike
from runtime.client.framework.element_types import as_array
from runtime.client.framework.operation import OperationGraph, Tensor
from runtime.framework import attr_value
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_codec import tensor_to_proto


class TensorConvertible(abc.ABC):
    """An object that can be used instead of a tensor, such as a variable."""

    graph: OperationGraph
    dtype: DataType

    @abc.abstractmethod
    def to_tensor(self, dtype: DataType | None, as_ref: bool) -> Tensor:
        """Return a tensor of the value.

        If `as_ref` is set, that is the reference tensor; if `dtype` is RESOURCE, the handle.
        """


def convert_to_tensor(
    graph: OperationGraph,
    value: TensorLike,
    dtype: DataType | None = None,
    name: str = "Const",
    as_ref: bool = False,
) -> Tensor:
    """Return a tensor of `graph` that has the value `value`.

    Raises ValueError if `value` is a tensor of another type than `dtype`, TypeError or ValueError
    if no constant can have the value.
    """
    if isinstance(value, TensorConvertible):
        value = value.to_tensor(dtype, as_ref)
    if isinstance(value, Tensor):
        if dtype is not None and value.dtype is not dtype:
            raise ValueError(
                f"Tensor conversion requested dtype {dtype.name_on_wire} for Tensor with dtype "
                f"{value.dtype.name_on_wire}: {value!r}"
            )
        return graph.capture(value)
    if isinstance(value, list | tuple) and first_tensor(value) is not None:
        return _pack(graph, value, dtype)
    return constant_tensor(graph, value, dtype, name)


def constant_tensor(
    graph: OperationGraph, value: TensorLike, dtype: DataType | None, name: str
) -> Tensor:
    """Add a Const operation to `graph` and return its output."""
    array = as_array(value, dtype)
    proto = tensor_to_proto(array, dtype)
    attrs = {
        "value": attr_value.to_proto(proto),
        "dtype": pb.AttrValue(type=proto.dtype),
    }
    return graph.create_op("Const", [], attrs, name).outputs[0]


def first_tensor(value: TensorLike) -> Tensor | TensorConvertible | None:
    """Return the first Tensor or TensorConvertible in nested lists, or None if there is none."""
    if isinstance(value, Tensor | TensorConvertible):
        return value
    if isinstance(value, list | tuple):
        for each in value:
            found = first_tensor(each)
            if found is not None:
                return found
    return None


def _pack(graph: OperationGraph, values: Sequence[TensorLike], dtype: DataType | None) -> Tensor:
    """Convert nested lists that contain tensors to nested Pack operations."""
    if dtype is None:
        found = first_tensor(values)
        dtype = found.dtype if found is not None else None
    with graph.name_scope("packed") as scope:
        parts = [
            convert_to_tensor(graph, each, dtype, str(index)) for index, each in enumerate(values)
        ]
        attrs = {
            "T": attr_value.to_proto(parts[0].dtype),
            "N": pb.AttrValue(i=len(parts)),
            "axis": pb.AttrValue(i=0),
        }
        return graph.create_op("Pack", parts, attrs, scope).outputs[0]
