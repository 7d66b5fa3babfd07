"""Kernels that serialize sparse tensors to strings (TensorProtos) or variants, and back.

TF: tensorflow/core/kernels/{serialize_sparse_op,deserialize_sparse_string_op}.cc
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import check_allocation, tensor_limit
from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from runtime.kernels.sparse.sparse_structure import Sparse
from runtime.kernels.sparse.sparse_tensor_checks import built_shape, check_parts
from runtime.kernels.sparse.sparse_to_dense import check_sorted_indices


def serialize_sparse(
    indices: np.ndarray, values: np.ndarray, shape: np.ndarray, *, out_type: DataType
) -> np.ndarray:
    """SerializeSparse: return [indices, values, shape], each as a string or a variant.

    DeserializeSparse checks whether the three parts fit together.
    """
    _check_ranks(indices, values, shape)
    return _serialized([(indices, values, shape)], out_type)[0]


def serialize_many_sparse(
    indices: np.ndarray, values: np.ndarray, shape: np.ndarray, *, out_type: DataType
) -> np.ndarray:
    """SerializeManySparse: serialize each row of a sparse tensor as a sparse tensor; return [n, 3].

    A row is an index of dimension 0.
    """
    _check_ranks(indices, values, shape)
    if shape.size < 2:
        raise InvalidArgumentError(
            "Rank of input SparseTensor should be > 1, but saw rank: " + str(shape.size)
        )
    sizes = built_shape(shape)
    check_parts(indices, values, len(sizes))
    check_sorted_indices(indices, sizes)
    check_allocation((sizes[0], 3), np.dtype(object))
    bounds = np.searchsorted(indices[:, 0], np.arange(sizes[0] + 1))
    parts = [
        (indices[begin:end, 1:], values[begin:end], shape[1:])
        for begin, end in itertools.pairwise(bounds.tolist())
    ]
    return _serialized(parts, out_type)


def _check_ranks(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> None:
    for part, name, rank, noun in (
        (indices, "indices", 2, "matrix"),
        (values, "values", 1, "vector"),
        (shape, "shape", 1, "vector"),
    ):
        if part.ndim != rank:
            raise InvalidArgumentError(
                f"Input {name} should be a {noun} but received shape {shape_text(part.shape)}"
            )


def _serialized(parts: Sequence[Sparse], out_type: DataType) -> np.ndarray:
    result = np.empty((len(parts), 3), object)
    for row, part in enumerate(parts):
        check_task()
        for column, each in enumerate(part):
            as_string = out_type is DataType.STRING
            result[row, column] = tensor_to_proto(each).SerializeToString() if as_string else each
    return result


def deserialize_sparse(serialized: np.ndarray, *, dtype: DataType) -> Sparse:
    """DeserializeSparse: return the sparse tensors of `serialized` [B…, 3] as one sparse tensor.

    The batch dimensions come first in the result.
    """
    if not serialized.ndim:
        raise InvalidArgumentError("Serialized sparse should have non-zero rank []")
    if serialized.shape[-1] != 3:
        raise InvalidArgumentError(
            f"Serialized sparse should have 3 as the last dimension {shape_text(serialized.shape)}"
        )
    batch_shape = serialized.shape[:-1]
    rows = serialized.reshape(-1, 3)
    parts = [_deserialized(row, number, dtype) for number, row in enumerate(rows)]
    if not batch_shape:
        return parts[0]
    return _batched(parts, batch_shape)


def _deserialized(row: np.ndarray, number: int, dtype: DataType) -> Sparse:
    indices, values, shape = (_tensor(each) for each in row.tolist())
    if indices.dtype != np.int64 or shape.dtype != np.int64:
        raise InvalidArgumentError("Serialized sparse indices and shape must be int64")
    name = f"SparseTensor[{number}]"
    if values.dtype != dtype.numpy:
        raise InvalidArgumentError(
            f"Requested SparseTensor of type {dtype.tf_name} but {name}.values.dtype() == "
            f"{from_numpy(values.dtype).tf_name}"
        )
    for part, at, rank, noun in (
        (indices, 0, 2, "an index matrix"),
        (values, 1, 1, "a values vector"),
        (shape, 2, 1, "a shape vector"),
    ):
        if part.ndim != rank:
            raise InvalidArgumentError(
                f"Expected serialized_sparse[{number}, {at}] to represent {noun} but received "
                f"shape {shape_text(part.shape)}"
            )
    if len(indices) != len(values):
        raise InvalidArgumentError(
            f"Expected row counts of {name}.indices and {name}.values to match but they do not: "
            f"{len(indices)} vs. {len(values)}"
        )
    if indices.shape[1] != shape.size:
        raise InvalidArgumentError(
            f"Expected column counts of {name}.indices to match size of {name}.shape but they do "
            f"not: {indices.shape[1]} vs. {shape.size}"
        )
    return indices, values, shape


def _tensor(item: object) -> np.ndarray:
    if isinstance(item, np.ndarray):
        return item
    if not isinstance(item, bytes):
        raise InvalidArgumentError(f"Expected a serialized tensor, got {type(item).__name__}")
    try:
        proto = pb.TensorProto.FromString(item)
    except DecodeError as error:
        raise InvalidArgumentError("Could not parse serialized proto") from error
    try:
        return tensor_from_proto(proto, tensor_limit())
    except InvalidArgumentError as error:
        raise InvalidArgumentError("Could not construct tensor from proto") from error


def _batched(parts: list[Sparse], batch_shape: tuple[int, ...]) -> Sparse:
    if not parts:
        raise InvalidArgumentError(
            "Serialized sparse should have at least 1 serialized tensor, but has a zero dimension "
            f"{shape_text((*batch_shape, 3))}"
        )
    rank = parts[0][2].size
    for number, part in enumerate(parts):
        if part[2].size != rank:
            raise InvalidArgumentError(
                f"Inconsistent shape across SparseTensors: rank prior to SparseTensor[{number}] "
                f"was: {rank} but rank of SparseTensor[{number}] is: {part[2].size}"
            )
    rows = []
    for number, (indices, _, _) in enumerate(parts):
        place = np.array(np.unravel_index(number, batch_shape), np.int64)
        prefix = np.broadcast_to(place, (len(indices), len(batch_shape)))
        rows.append(np.concatenate((prefix, indices), 1))
    sizes = np.max([part[2] for part in parts], 0)
    shape = np.concatenate((np.array(batch_shape, np.int64), sizes))
    return np.concatenate(rows), np.concatenate([part[1] for part in parts]), shape


KERNELS = (
    KernelDef("DeserializeManySparse", deserialize_sparse),
    KernelDef("DeserializeSparse", deserialize_sparse),
    KernelDef("SerializeManySparse", serialize_many_sparse),
    KernelDef("SerializeSparse", serialize_sparse),
)
