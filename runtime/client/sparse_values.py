"""SparseTensor, and the values of sparse tensors that runs take and give.

TF: tensorflow/python/framework/sparse_tensor.py, indexed_slices.py
"""

from __future__ import annotations

from typing import Any, NamedTuple

from runtime.client.construction import convert_to_tensor
from runtime.client.operation import Tensor
from runtime.framework.dtypes import DataType


class SparseTensorValue(NamedTuple):
    """The three arrays of a sparse tensor: `[n, rank]`, `[n]` and `[rank]`."""

    indices: Any
    values: Any
    dense_shape: Any


class SparseTensor:
    """Three tensors that are one sparse tensor; runs feed and fetch it as a SparseTensorValue."""

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        """From tensors or values: int64 `[n, rank]`, any `[n]`, int64 `[rank]`."""
        self.indices = convert_to_tensor(indices, DataType.INT64, "indices")
        self.values = convert_to_tensor(values, name="values")
        self.dense_shape = convert_to_tensor(dense_shape, DataType.INT64, "dense_shape")

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """The tensors, in the order of SparseTensorValue."""
        return self.indices, self.values, self.dense_shape

    @property
    def dtype(self) -> DataType:
        """The element type of the values."""
        return self.values.dtype

    @property
    def graph(self) -> Any:
        """The graph of its tensors."""
        return self.values.graph

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self.indices}, values={self.values}, "
            f"dense_shape={self.dense_shape})"
        )
