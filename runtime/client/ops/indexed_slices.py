"""IndexedSlices: some rows of a tensor that is zero elsewhere, such as the gradient of a lookup.

TF: tensorflow/python/framework/indexed_slices.py
"""

from __future__ import annotations

from typing import NamedTuple

from runtime.client.framework.argument_types import TensorLike
from runtime.client.framework.conversion import TensorConvertible
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.ops import op_function
from runtime.client.ops.construction import convert_to_tensor
from runtime.framework.dtypes import DataType


class IndexedSlicesValue(NamedTuple):
    """The arrays of an IndexedSlices: `values` `[n, …]`, `indices` `[n]`, `dense_shape` `[rank]`.

    `dense_shape` may be None.
    """

    values: TensorLike
    indices: TensorLike
    dense_shape: TensorLike


class IndexedSlices(TensorConvertible):
    """A tensor of shape `dense_shape` that has `values` `[n, …]` at the rows `indices` `[n]`.

    The other rows are zero. Values that belong to the same row are added. It converts to the dense
    tensor wherever a tensor is expected.
    """

    def __init__(
        self, values: TensorLike, indices: TensorLike, dense_shape: TensorLike | None = None
    ) -> None:
        """Take tensors or values; if `dense_shape` is None, it can't convert to a tensor."""
        self.values = convert_to_tensor(values, name="values")
        self.indices = convert_to_tensor(indices, name="indices")
        self.dense_shape = None
        if dense_shape is not None:
            self.dense_shape = convert_to_tensor(dense_shape, name="dense_shape")
        self.dtype = self.values.dtype
        self.graph = self.values.graph

    @property
    def op(self) -> Operation:
        """The operation that computes `values`."""
        return self.values.op

    @property
    def name(self) -> str:
        """The name of `values`."""
        return self.values.name

    @property
    def device(self) -> str:
        """The device of `values`."""
        return self.values.device

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The tensors in the order of IndexedSlicesValue, except `dense_shape` if it is None."""
        found = (self.values, self.indices, self.dense_shape)
        return tuple(each for each in found if each is not None)

    def to_tensor(self, dtype: DataType | None, as_ref: bool) -> Tensor:
        """Return the dense tensor. Raises ValueError if `dense_shape` is None."""
        if self.dense_shape is None:
            raise ValueError(
                "Tensor conversion requested for IndexedSlices without dense_shape: " + str(self)
            )
        with self.graph.as_default():
            rows = op_function("StridedSlice")(self.dense_shape, [0], [1], [1], shrink_axis_mask=1)
            whole: Tensor = op_function("UnsortedSegmentSum")(self.values, self.indices, rows)
        return whole

    def __repr__(self) -> str:
        return (
            f"IndexedSlices(indices={self.indices}, values={self.values}, "
            f"dense_shape={self.dense_shape})"
        )


def with_values(slices: TensorLike, values: Tensor) -> Tensor | IndexedSlices:
    """Return IndexedSlices with `values` at the rows of `slices`; `values` if that is a tensor."""
    if not isinstance(slices, IndexedSlices):
        return values
    return IndexedSlices(values, slices.indices, slices.dense_shape)
