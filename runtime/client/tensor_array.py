"""TensorArray: tensors by index, written and read inside of loops.

It is a TensorList, a value like any other: `write` gives the array after the write, and loops and
branches carry it as they carry a tensor.

TF: tensorflow/python/ops/tensor_array_ops.py (_GraphTensorArrayV2)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.client.construction import convert_to_tensor, no_op
from runtime.client.conversion import TensorConvertible
from runtime.client.element_types import as_dtype
from runtime.client.graph import get_default_graph
from runtime.client.operation import Operation, Tensor
from runtime.client.ops import op_function
from runtime.client.structures import Composite
from runtime.client.tensor_shape import TensorShape
from runtime.framework.dtypes import DataType


class TensorArray(TensorConvertible, Composite):
    """`size` tensors of one type; `dynamic_size` lets writes make it longer."""

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        """An array of elements that are not written yet, or (with `flow`) one that is there.

        ValueError when neither a size nor a flow is given. What TensorFlow says about places and
        the clearing of elements changes nothing here.
        """
        del clear_after_read, handle, colocate_with_first_write_call
        self.dtype: DataType = as_dtype(dtype)
        self.dynamic_size = bool(dynamic_size)
        self.element_shape = TensorShape(element_shape)
        self._infers_shape = infer_shape
        self._name = tensor_array_name or name or "TensorArray"
        if flow is None:
            if size is None:
                raise ValueError("Argument `size` must be provided if handle is not provided.")
            flow = op_function("TensorListReserve")(
                self._element_sizes(), size, self.dtype, name=self._name
            )
        self.flow: Tensor = flow

    @property
    def graph(self) -> Any:
        """The graph of its tensor."""
        return self.flow.graph

    @property
    def handle(self) -> None:
        """None: the array is a value."""
        return

    def to_tensor(self, dtype: DataType | None, as_ref: bool) -> Tensor:
        """The list as a tensor of type variant."""
        return self.flow

    def rebuilt(self, tensor: Tensor) -> TensorArray:
        """The array whose list is `tensor`."""
        return TensorArray(
            self.dtype,
            dynamic_size=self.dynamic_size,
            tensor_array_name=self._name,
            flow=tensor,
            infer_shape=self._infers_shape,
            element_shape=self.element_shape,
        )

    def identity(self) -> TensorArray:
        """The same array, with the control dependencies of here."""
        return self.rebuilt(op_function("Identity")(self.flow))

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements."""
        return self._tensor("TensorListLength", name=name)

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at an index."""
        sizes = self._element_sizes()
        return self._shaped(self._tensor("TensorListGetItem", index, sizes, self.dtype, name=name))

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array after the write; ValueError for an element of another shape."""
        element = convert_to_tensor(value, self.dtype, "value")
        written = op_function("TensorListSetItem")(
            self.flow, index, element, self.dynamic_size, name=name
        )
        after = self.rebuilt(written)
        after._learn(element.shape)
        return after

    def stack(self, name: str | None = None) -> Tensor:
        """All elements, along a new first axis."""
        sizes = self._element_sizes()
        stacked = self._tensor("TensorListStack", sizes, self.dtype, name=name)
        return self._shaped(stacked, [None])

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at the indices, along a new first axis."""
        sizes = self._element_sizes()
        found = self._tensor("TensorListGather", indices, sizes, self.dtype, name=name)
        return self._shaped(found, [None])

    def concat(self, name: str | None = None) -> Tensor:
        """The elements one after another along their first axis."""
        shape = self.element_shape
        rest = None if shape.rank is None else [None, *shape.as_list()[1:]]
        wanted = [] if rest is None else [-1 if each is None else each for each in rest]
        op = op_function("TensorListConcatV2")
        sizes = np.array(-1 if rest is None else wanted, np.int32)
        joined = op(self.flow, sizes, np.zeros(0, np.int64), self.dtype, name=name)[0]
        joined.set_shape(TensorShape(rest))
        tensor: Tensor = joined
        return tensor

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array of the parts of `value` along its first axis."""
        whole = convert_to_tensor(value, self.dtype, "value")
        self._learn(whole.shape[1:])
        sizes = self._element_sizes()
        return self.rebuilt(op_function("TensorListFromTensor")(whole, sizes, name=name))

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with the parts of `value` along its first axis at the indices."""
        whole = convert_to_tensor(value, self.dtype, "value")
        op = op_function("TensorListScatterIntoExistingList")
        after = self.rebuilt(op(self.flow, whole, indices, name=name))
        after._learn(whole.shape[1:])
        return after

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """The array of parts of `value` that have these lengths along its first axis."""
        whole = convert_to_tensor(value, self.dtype, "value")
        sizes, lengths = np.array(-1, np.int32), convert_to_tensor(lengths, DataType.INT64)
        return self.rebuilt(op_function("TensorListSplit")(whole, sizes, lengths, name=name))

    def close(self, name: str | None = None) -> Operation:
        """Nothing: the array goes with its last reader."""
        with get_default_graph().as_default():
            return no_op(name)

    def grad(self, source: Any, flow: Any = None, name: str | None = None) -> TensorArray:
        """Refused: the gradient of an array is one that `gradients` makes."""
        raise NotImplementedError("TensorArray.grad is not supported")

    def _learn(self, shape: TensorShape) -> None:
        """All elements have one shape, where that is inferred."""
        if not self.element_shape.is_compatible_with(shape):
            raise ValueError(f"Inconsistent shapes: saw {shape} but expected {self.element_shape}")
        if self._infers_shape:
            self.element_shape = self.element_shape.merge_with(shape)

    def _element_sizes(self) -> np.ndarray:
        sizes = self.element_shape.sizes
        return np.array(-1 if sizes is None else sizes, np.int32)

    def _tensor(self, op: str, *arguments: Any, name: str | None) -> Tensor:
        result: Tensor = op_function(op)(self.flow, *arguments, name=name)
        return result

    def _shaped(self, tensor: Tensor, before: list[int | None] | None = None) -> Tensor:
        if self.element_shape.rank is not None:
            tensor.set_shape(TensorShape([*(before or []), *self.element_shape.as_list()]))
        return tensor

    def __repr__(self) -> str:
        return f"TensorArray(dtype={self.dtype.name_on_wire}, shape={self.element_shape})"
