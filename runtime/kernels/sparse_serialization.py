"""Sparse tensors as strings (serialised TensorProtos) or variants, which batches pass around.

TF: tensorflow/core/kernels/{serialize_sparse_op,deserialize_sparse_string_op}.cc
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation, tensor_limit
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from runtime.kernels.sparse_structure import Sparse, check_sparse


def serialize_sparse(
    indices: np.ndarray, values: np.ndarray, shape: np.ndarray, *, out_type: DataType
) -> np.ndarray:
    """SerializeSparse: [indices, values, shape], each as a string or variant."""
    check_sparse(indices, values, shape)
    return _packed([(indices, values, shape)], out_type)[0]


def serialize_many_sparse(
    indices: np.ndarray, values: np.ndarray, shape: np.ndarray, *, out_type: DataType
) -> np.ndarray:
    """SerializeManySparse: [n, 3], a row for each index of the first dimension."""
    check_sparse(indices, values, shape)
    if shape.size < 2:
        raise InvalidArgumentError(
            "Rank of input SparseTensor should be > 1, but saw rank: " + str(shape.size)
        )
    count = int(shape[0])
    check_allocation((count, 3), np.dtype(object))
    batch = indices[:, 0]
    if ((batch < 0) | (batch >= count)).any():
        raise InvalidArgumentError(
            f"Received unexpected column 0 value in input SparseTensor: not within [0, {count})"
        )
    order = np.argsort(batch, kind="stable")
    bounds = np.searchsorted(batch[order], np.arange(count + 1))
    rows, elements = indices[order][:, 1:], values[order]
    parts = [
        (rows[begin:end], elements[begin:end], shape[1:])
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]
    return _packed(parts, out_type)


def _packed(parts: Sequence[Sparse], out_type: DataType) -> np.ndarray:
    result = np.empty((len(parts), 3), object)
    for row, part in enumerate(parts):
        for column, each in enumerate(part):
            as_string = out_type is DataType.STRING
            result[row, column] = tensor_to_proto(each).SerializeToString() if as_string else each
    return result


def deserialize_sparse(serialized: np.ndarray, *, dtype: DataType) -> Sparse:
    """DeserializeSparse: [B…, 3] to one sparse tensor with the batch dimensions in front."""
    if serialized.ndim < 1 or serialized.shape[-1] != 3:
        raise InvalidArgumentError(
            "Serialized sparse should have non-zero rank and 3 as the last dimension, got "
            f"{shape_text(serialized.shape)}"
        )
    batch_shape = serialized.shape[:-1]
    parts = [_unpacked(row, dtype) for row in serialized.reshape(-1, 3)]
    if not batch_shape:
        return parts[0]
    return _batched(parts, batch_shape, dtype)


def deserialize_many_sparse(serialized: np.ndarray, *, dtype: DataType) -> Sparse:
    """DeserializeManySparse: [n, 3] to one sparse tensor with a batch dimension in front."""
    if serialized.ndim != 2:
        raise InvalidArgumentError(
            "Serialized sparse should have rank 2 but has rank " + str(serialized.ndim)
        )
    return deserialize_sparse(serialized, dtype=dtype)


def _unpacked(row: np.ndarray, dtype: DataType) -> Sparse:
    indices, values, shape = (_tensor(each) for each in row.tolist())
    if indices.dtype != np.int64 or shape.dtype != np.int64:
        raise InvalidArgumentError("Serialized sparse indices and shape must be int64")
    if values.dtype != dtype.numpy:
        raise InvalidArgumentError(
            f"Requested SparseTensor of type {dtype.tf_name} but SparseTensor values have type "
            f"{values.dtype}"
        )
    check_sparse(indices, values, shape)
    return indices, values, shape


def _tensor(item: Any) -> np.ndarray:
    if isinstance(item, np.ndarray):
        return item
    if not isinstance(item, bytes):
        raise InvalidArgumentError(f"Expected a serialized tensor, got {type(item).__name__}")
    try:
        proto = pb.TensorProto.FromString(item)
    except DecodeError as error:
        raise InvalidArgumentError("Could not parse serialized_sparse proto") from error
    return tensor_from_proto(proto, tensor_limit())


def _batched(parts: list[Sparse], batch_shape: tuple[int, ...], dtype: DataType) -> Sparse:
    if not parts:
        raise InvalidArgumentError(
            "Serialized sparse should have at least one element, got shape "
            f"{shape_text((*batch_shape, 3))}"
        )
    ranks = {part[2].size for part in parts}
    if len(ranks) > 1:
        raise InvalidArgumentError(f"Inconsistent rank across SparseTensors: {sorted(ranks)}")
    rows = []
    for number, (indices, _, _) in enumerate(parts):
        place = np.array(np.unravel_index(number, batch_shape), np.int64)
        prefix = np.broadcast_to(place, (len(indices), len(batch_shape)))
        rows.append(np.concatenate((prefix, indices), 1))
    sizes = np.max([part[2] for part in parts], 0)
    shape = np.concatenate((np.array(batch_shape, np.int64), sizes))
    return np.concatenate(rows), np.concatenate([part[1] for part in parts]), shape


KERNELS = (
    KernelDef("DeserializeManySparse", deserialize_many_sparse),
    KernelDef("DeserializeSparse", deserialize_sparse),
    KernelDef("SerializeManySparse", serialize_many_sparse),
    KernelDef("SerializeSparse", serialize_sparse),
)
