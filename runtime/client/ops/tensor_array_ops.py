"""TensorArray: a list of tensors that loops write and read by index.

It is implemented as a TensorList, which is an immutable value: `write` returns a new array, and
loops and branches pass arrays like tensors.

TF: tensorflow/python/ops/tensor_array_ops.py (_GraphTensorArrayV2)
"""

from __future__ import annotations

import numpy as np

from runtime.client.framework.argument_types import TensorLike
from runtime.client.framework.conversion import TensorConvertible
from runtime.client.framework.element_types import DTypeLike, as_dtype
from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.framework.tensor_shape import ShapeLike, TensorShape
from runtime.client.ops import op_function
from runtime.client.ops.construction import convert_to_tensor, no_op
from runtime.client.structures import Composite
from runtime.framework.dtypes import DataType


class TensorArray(TensorConvertible, Composite):
    """An array of `size` tensors of one type.

    If `dynamic_size` is set, a write beyond the end extends it.
    """

    def __init__(
        self,
        dtype: DTypeLike,
        size: TensorLike | None = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Tensor | None = None,
        flow: Tensor | None = None,
        infer_shape: bool = True,
        element_shape: ShapeLike | None = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        """Create an array of unwritten elements, or wrap the TensorList `flow`.

        `clear_after_read`, `handle` and `colocate_with_first_write_call` are accepted and have no
        effect. Raises ValueError if neither `size` nor `flow` is given.
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
        self.graph = self.flow.graph

    @property
    def handle(self) -> None:
        """Always None, because the array is a value, not a resource."""
        return

    def to_tensor(self, dtype: DataType | None, as_ref: bool) -> Tensor:
        """Return the TensorList, a scalar of type VARIANT."""
        return self.flow

    def rebuilt(self, tensor: Tensor) -> TensorArray:
        """Return a copy of this array that has `tensor` as its TensorList."""
        return TensorArray(
            self.dtype,
            dynamic_size=self.dynamic_size,
            tensor_array_name=self._name,
            flow=tensor,
            infer_shape=self._infers_shape,
            element_shape=self.element_shape,
        )

    def identity(self) -> TensorArray:
        """Return the same array, available once the current control inputs have run."""
        return self.rebuilt(op_function("Identity")(self.flow))

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of elements, as a scalar tensor."""
        return self._tensor("TensorListLength", name=name)

    def read(self, index: TensorLike, name: str | None = None) -> Tensor:
        """Return the element at `index`."""
        sizes = self._element_sizes()
        return self._shaped(self._tensor("TensorListGetItem", index, sizes, self.dtype, name=name))

    def write(self, index: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """Return a new array, in which the element at `index` is `value`.

        Raises ValueError if `value` has another static shape than the elements.
        """
        element = convert_to_tensor(value, self.dtype, "value")
        written = op_function("TensorListSetItem")(
            self.flow, index, element, self.dynamic_size, name=name
        )
        after = self.rebuilt(written)
        after._merge_element_shape(element.shape)
        return after

    def stack(self, name: str | None = None) -> Tensor:
        """Stack all elements along a new first axis to `[size, …]`."""
        sizes = self._element_sizes()
        stacked = self._tensor("TensorListStack", sizes, self.dtype, name=name)
        return self._shaped(stacked, [None])

    def gather(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """Stack the elements at `indices` `[n]` along a new first axis to `[n, …]`."""
        sizes = self._element_sizes()
        found = self._tensor("TensorListGather", indices, sizes, self.dtype, name=name)
        return self._shaped(found, [None])

    def concat(self, name: str | None = None) -> Tensor:
        """Concatenate the elements along their first axis."""
        shape = self.element_shape
        rest = None if shape.rank is None else [None, *shape.as_list()[1:]]
        wanted = [] if rest is None else [-1 if each is None else each for each in rest]
        op = op_function("TensorListConcatV2")
        sizes = np.array(-1 if rest is None else wanted, np.int32)
        joined = op(self.flow, sizes, np.zeros(0, np.int64), self.dtype, name=name)[0]
        joined.set_shape(TensorShape(rest))
        tensor: Tensor = joined
        return tensor

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        """Return a new array whose elements are the rows of `value`."""
        whole = convert_to_tensor(value, self.dtype, "value")
        self._merge_element_shape(whole.shape[1:])
        sizes = self._element_sizes()
        return self.rebuilt(op_function("TensorListFromTensor")(whole, sizes, name=name))

    def scatter(
        self, indices: TensorLike, value: TensorLike, name: str | None = None
    ) -> TensorArray:
        """Return a new array in which row i of `value` is element `indices[i]`, for all i."""
        whole = convert_to_tensor(value, self.dtype, "value")
        op = op_function("TensorListScatterIntoExistingList")
        after = self.rebuilt(op(self.flow, whole, indices, name=name))
        after._merge_element_shape(whole.shape[1:])
        return after

    def split(self, value: TensorLike, lengths: TensorLike, name: str | None = None) -> TensorArray:
        """Return a new array in which element i has the next `lengths[i]` rows of `value`."""
        whole = convert_to_tensor(value, self.dtype, "value")
        sizes, lengths = np.array(-1, np.int32), convert_to_tensor(lengths, DataType.INT64)
        return self.rebuilt(op_function("TensorListSplit")(whole, sizes, lengths, name=name))

    def close(self, name: str | None = None) -> Operation:
        """Add a NoOp, because an array is freed when it is no longer referenced."""
        with get_default_graph().as_default():
            return no_op(name)

    def grad(
        self, source: TensorLike, flow: Tensor | None = None, name: str | None = None
    ) -> TensorArray:
        """Raise NotImplementedError: `gradients` differentiates arrays without this method."""
        raise NotImplementedError("TensorArray.grad is not supported")

    def _merge_element_shape(self, shape: TensorShape) -> None:
        """Merge an element's shape into `element_shape`. Raises ValueError if they contradict."""
        if not self.element_shape.is_compatible_with(shape):
            raise ValueError(f"Inconsistent shapes: saw {shape} but expected {self.element_shape}")
        if self._infers_shape:
            self.element_shape = self.element_shape.merge_with(shape)

    def _element_sizes(self) -> np.ndarray:
        sizes = self.element_shape.sizes
        return np.array(-1 if sizes is None else sizes, np.int32)

    def _tensor(self, op: str, *arguments: TensorLike, name: str | None) -> Tensor:
        result: Tensor = op_function(op)(self.flow, *arguments, name=name)
        return result

    def _shaped(self, tensor: Tensor, before: list[int | None] | None = None) -> Tensor:
        if self.element_shape.rank is not None:
            tensor.set_shape(TensorShape([*(before or []), *self.element_shape.as_list()]))
        return tensor

    def __repr__(self) -> str:
        return f"TensorArray(dtype={self.dtype.name_on_wire}, shape={self.element_shape})"
