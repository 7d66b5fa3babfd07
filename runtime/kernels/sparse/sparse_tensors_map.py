"""Kernels for SparseTensorsMap, a store of sparse tensors, each under an int64 handle.

TF: tensorflow/core/kernels/sparse_tensors_map_ops.cc
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, ResourceExhaustedError
from runtime.foundation.running_task import check_task
from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.growth_limit import GrowthLimit
from runtime.framework.held_bytes import HeldBytes
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.resource_manager import Resource
from runtime.framework.shapes import shape_text
from runtime.kernels.sparse.sparse_tensor_checks import built_shape, made_shape
from runtime.kernels.sparse.sparse_to_dense import check_sorted_indices

# The largest number of rows without values. A client sends no data for such rows, but each of them
# is stored as a tensor.
_MAX_EMPTY_ROWS = 1_000_000

Sparse = tuple[np.ndarray, np.ndarray, np.ndarray]  # indices [n, rank], values [n], shape [rank]


class SparseTensorsMap(Resource):
    """Stores sparse tensors under handles until `take` removes them. Thread-safe."""

    type_name = "N10tensorflow16SparseTensorsMapE"

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held while _tensors is read or written
        self._tensors: dict[int, Sparse] = {}
        self._numbers = itertools.count()
        self._held_bytes = HeldBytes()

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the bytes of all stored indices, values and shapes."""
        return self._held_bytes.bytes, ()

    def limit_growth(self, limit: GrowthLimit) -> None:
        """Report tensors that are stored later to `limit`."""
        self._held_bytes.limit = limit

    def add(self, tensor: Sparse) -> int:
        """Store a tensor and return its handle."""
        with self._lock:
            self._held_bytes.add(tensor)
            number = next(self._numbers)
            self._tensors[number] = tensor
            return number

    def take(self, numbers: list[int]) -> list[Sparse]:
        """Remove and return the tensors of the handles `numbers`.

        Raises InvalidArgumentError if there is no tensor under a handle.
        """
        with self._lock:
            for number in numbers:
                if number not in self._tensors:
                    raise InvalidArgumentError(f"Unable to find SparseTensor: {number} in map")
            taken = {number: self._tensors.pop(number) for number in dict.fromkeys(numbers)}
            for tensor in taken.values():
                self._held_bytes.drop(tensor)
            return [taken[number] for number in numbers]


def _map(context: OpKernelContext, container: str, shared_name: str) -> SparseTensorsMap:
    return context.resources.look_up_or_create(
        container, SparseTensorsMap, shared_name or context.node.name, SparseTensorsMap
    )


def _checked(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> Sparse:
    tensor = np.asarray(indices), np.asarray(values), np.asarray(shape)
    for part, name, rank, noun in (
        (tensor[0], "indices", 2, "matrix"),
        (tensor[1], "values", 1, "vector"),
        (tensor[2], "shape", 1, "vector"),
    ):
        if part.ndim != rank:
            raise InvalidArgumentError(
                f"Input {name} should be a {noun} but received shape {shape_text(part.shape)}"
            )
    if len(tensor[0]) != len(tensor[1]):
        raise InvalidArgumentError(
            f"Number of values must match first dimension of indices. Got {len(tensor[1])} "
            f"values, indices shape: {shape_text(tensor[0].shape)}"
        )
    if tensor[0].shape[1] != len(tensor[2]):
        raise InvalidArgumentError(
            f"Number of dimensions must match second dimension of indices. Got {len(tensor[2])} "
            f"dimensions, indices shape: {shape_text(tensor[0].shape)}"
        )
    return tensor


def add_sparse_to_tensors_map(
    context: OpKernelContext,
    sparse_indices: np.ndarray,
    sparse_values: np.ndarray,
    sparse_shape: np.ndarray,
    *,
    container: str,
    shared_name: str,
) -> np.ndarray:
    """AddSparseToTensorsMap: store a sparse tensor and return its handle."""
    tensor = _checked(sparse_indices, sparse_values, sparse_shape)
    made_shape(tensor[2])
    return np.array(_map(context, container, shared_name).add(tensor), np.int64)


def add_many_sparse_to_tensors_map(
    context: OpKernelContext,
    sparse_indices: np.ndarray,
    sparse_values: np.ndarray,
    sparse_shape: np.ndarray,
    *,
    container: str,
    shared_name: str,
) -> np.ndarray:
    """AddManySparseToTensorsMap: store each row of a sparse tensor and return the handles.

    A row is an index of dimension 0.
    """
    indices, values, shape = _checked(sparse_indices, sparse_values, sparse_shape)
    if len(shape) < 2:
        raise InvalidArgumentError(
            f"Rank of input SparseTensor should be > 1, but saw rank: {len(shape)}"
        )
    check_sorted_indices(indices, built_shape(shape))
    kept = _map(context, container, shared_name)
    count = int(shape[0])
    if count > len(values) + _MAX_EMPTY_ROWS:
        raise ResourceExhaustedError(f"A SparseTensor of {len(values)} values claims {count} rows")
    bounds = np.searchsorted(indices[:, 0], np.arange(count + 1))
    numbers = []
    for begin, end in itertools.pairwise(bounds.tolist()):
        check_task()
        numbers.append(kept.add((indices[begin:end, 1:], values[begin:end], shape[1:])))
    return np.array(numbers, np.int64)


def take_many_sparse_from_tensors_map(
    context: OpKernelContext,
    sparse_handles: np.ndarray,
    *,
    dtype: DataType,
    container: str,
    shared_name: str,
) -> Sparse:
    """TakeManySparseFromTensorsMap: remove the tensors of `sparse_handles` [n] and stack them.

    Return one sparse tensor [n, …]. In each other dimension, its size is the largest size of the
    tensors.
    """
    handles = np.asarray(sparse_handles)
    if handles.ndim != 1:
        raise InvalidArgumentError(
            f"sparse_handles should be a vector but received shape {shape_text(handles.shape)}"
        )
    if not handles.size:
        raise InvalidArgumentError(
            "Must have at least 1 serialized SparseTensor, but input is empty"
        )
    tensors = _map(context, container, shared_name).take(handles.tolist())
    _check_dtypes_and_ranks(tensors, dtype)
    rows = [np.full((len(values), 1), row, np.int64) for row, (_, values, _) in enumerate(tensors)]
    indices = np.concatenate(
        [np.hstack([row, part]) for row, (part, _, _) in zip(rows, tensors, strict=True)]
    )
    largest = np.max([shape for _, _, shape in tensors], axis=0)
    shape = np.concatenate([[len(tensors)], largest]).astype(np.int64)
    return indices.astype(np.int64), np.concatenate([values for _, values, _ in tensors]), shape


def _check_dtypes_and_ranks(tensors: list[Sparse], dtype: DataType) -> None:
    before = len(tensors[0][2]) + 1
    for index, (_, values, shape) in enumerate(tensors):
        if values.dtype != dtype.numpy:
            raise InvalidArgumentError(
                f"Requested SparseTensor of type {dtype.tf_name} but SparseTensor[{index}]"
                f".values.dtype() == {from_numpy(values.dtype).tf_name}"
            )
        if len(shape) + 1 != before:
            raise InvalidArgumentError(
                "Inconsistent rank across SparseTensors: rank prior to "
                f"SparseTensor[{index}] was: {before} but rank of SparseTensor[{index}] "
                f"is: {len(shape) + 1}"
            )


KERNELS = (
    KernelDef("AddManySparseToTensorsMap", add_many_sparse_to_tensors_map),
    KernelDef("AddSparseToTensorsMap", add_sparse_to_tensors_map),
    KernelDef("TakeManySparseFromTensorsMap", take_many_sparse_from_tensors_map),
)
