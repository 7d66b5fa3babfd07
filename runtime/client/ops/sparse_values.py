"""SparseTensor, and SparseTensorValue, with which it is fed and fetched.

TF: tensorflow/python/framework/sparse_tensor.py, indexed_slices.py
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from runtime.client.framework.argument_types import TensorLike
from runtime.client.framework.element_types import DTypeLike
from runtime.client.framework.operation import OperationGraph, Tensor
from runtime.client.framework.tensor_shape import ShapeLike, TensorShape
from runtime.client.ops import op_function
from runtime.client.ops.construction import convert_to_tensor, placeholder
from runtime.framework.dtypes import DataType

# A SparseTensor if the argument of the function is one, else a Tensor.
DenseOrSparse: TypeAlias = Any


class SparseTensorValue(NamedTuple):
    """The three arrays of a sparse tensor.

    `indices` is `[n, rank]`, `values` `[n]` and `dense_shape` `[rank]`.
    """

    indices: TensorLike
    values: TensorLike
    dense_shape: TensorLike


class SparseTensor:
    """A sparse tensor in COO (coordinate) form, as three tensors.

    It is fed and fetched as SparseTensorValue.
    """

    def __init__(self, indices: TensorLike, values: TensorLike, dense_shape: TensorLike) -> None:
        """Take three tensors or values.

        `indices` is int64 `[n, rank]`, `values` `[n]` of any type, and `dense_shape` int64
        `[rank]`.
        """
        self.indices = convert_to_tensor(indices, DataType.INT64, "indices")
        self.values = convert_to_tensor(values, name="values")
        self.dense_shape = convert_to_tensor(dense_shape, DataType.INT64, "dense_shape")

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """The tensors in the order of SparseTensorValue."""
        return self.indices, self.values, self.dense_shape

    @property
    def dtype(self) -> DataType:
        """The element type of the values."""
        return self.values.dtype

    @property
    def graph(self) -> OperationGraph:
        """The graph that the three tensors belong to."""
        return self.values.graph

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self.indices}, values={self.values}, "
            f"dense_shape={self.dense_shape})"
        )


def sparse_placeholder(
    dtype: DTypeLike, shape: ShapeLike | None = None, name: str | None = None
) -> SparseTensor:
    """Return a sparse tensor that every run must feed with a SparseTensorValue or three arrays."""
    rank = TensorShape(shape).rank
    base = "Placeholder" if name is None else name
    return SparseTensor(
        placeholder(DataType.INT64, [None, rank], f"{base}/indices"),
        placeholder(dtype, [None], f"{base}/values"),
        placeholder(DataType.INT64, [rank], f"{base}/shape"),
    )


def sparse_tensor_to_dense(
    sp_input: SparseTensor,
    default_value: TensorLike | None = None,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """Convert to a dense tensor; indices that have no value get `default_value` (0 or "")."""
    default: TensorLike = b"" if sp_input.dtype is DataType.STRING else 0
    if default_value is not None:
        default = default_value
    dense: Tensor = op_function("SparseToDense")(
        sp_input.indices,
        sp_input.dense_shape,
        sp_input.values,
        convert_to_tensor(default, sp_input.dtype, "default_value"),
        validate_indices,
        name=name,
    )
    return dense
