"""Feeds and outputs of a session step: JSON or TensorProtos to arrays and back.

Feeds are checked against the graph: element type, and the static shape of a placeholder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.api import DataType, tensor_from_proto, tensor_to_proto
from runtime.errors import InvalidArgumentError
from server.codec.json_tensor_reader import read_tensor
from server.codec.json_tensor_writer import Encoding, write_tensor

Shape = tuple[int, ...] | None  # None: unknown rank; −1: unknown dimension
TensorInfo = Callable[[str], tuple[DataType, Shape]]

_PROCESS_ONLY = (DataType.RESOURCE, DataType.VARIANT)


def read_feeds(feeds: Mapping[str, Any], tensor_info: TensorInfo) -> dict[str, np.ndarray]:
    """The arrays of a JSON body's feeds, by the names that the client used.

    Raises what `tensor_info` raises for an unknown name, and InvalidArgumentError for a value
    that does not fit the graph.
    """
    arrays = {}
    for index, (name, value) in enumerate(feeds.items()):
        data_type, shape = _feedable(name, tensor_info)
        array = read_tensor(value, name, data_type)
        _check(array, index, name, data_type, shape)
        arrays[name] = array
    return arrays


def read_proto_feeds(
    feeds: Iterable[pb.NamedTensorProto], tensor_info: TensorInfo, max_bytes: int
) -> dict[str, np.ndarray]:
    """The arrays of a RunStepRequest's feeds; raises as `read_feeds`."""
    arrays: dict[str, np.ndarray] = {}
    for index, feed in enumerate(feeds):
        if feed.name in arrays:
            raise InvalidArgumentError(f'Endpoint "{feed.name}" fed more than once.')
        data_type, shape = _feedable(feed.name, tensor_info)
        array = tensor_from_proto(feed.tensor, max_bytes)
        _check(array, index, feed.name, data_type, shape)
        arrays[feed.name] = array
    return arrays


def _feedable(name: str, tensor_info: TensorInfo) -> tuple[DataType, Shape]:
    data_type, shape = tensor_info(name)
    if data_type in _PROCESS_ONLY:
        raise InvalidArgumentError(
            f"Tensor {name} is of type {data_type.tf_name}, which cannot be fed from the wire"
        )
    return data_type, shape


def _check(array: np.ndarray, index: int, name: str, data_type: DataType, shape: Shape) -> None:
    """TF: direct_session.cc (the type's message), python/client/session.py (the shape's)."""
    if array.dtype != data_type.numpy:
        got = DataType.STRING if array.dtype == object else _type_of(array)
        raise InvalidArgumentError(
            f"Expects arg[{index}] to be {data_type.tf_name} but {got.tf_name} is provided"
        )
    if shape is None:
        return
    fits = len(shape) == array.ndim and all(
        wanted in (-1, size) for wanted, size in zip(shape, array.shape, strict=True)
    )
    if not fits:
        wanted = tuple(None if size < 0 else size for size in shape)
        raise InvalidArgumentError(
            f"Cannot feed value of shape {array.shape} for Tensor {name}, which has shape {wanted}"
        )


def _type_of(array: np.ndarray) -> DataType:
    return next(t for t in DataType if t and t.numpy == array.dtype)


def fetch_types(fetches: Sequence[str], tensor_info: TensorInfo) -> list[DataType]:
    """Element types of what is fetched; InvalidArgumentError for what cannot leave the process."""
    types = []
    for name in fetches:
        data_type, _ = tensor_info(name)
        if data_type in _PROCESS_ONLY:
            raise InvalidArgumentError(
                f"Tensor {name} is of type {data_type.tf_name}, which cannot be fetched"
            )
        types.append(data_type)
    return types


def write_outputs(
    fetches: Sequence[str],
    values: Sequence[Any],
    types: Sequence[DataType],
    encoding: Encoding,
    non_finite: str,
) -> dict[str, Any]:
    """The JSON form of a step's outputs; keys are spelled as the client spelled them."""
    return {
        name: write_tensor(value, data_type, encoding=encoding, non_finite=non_finite)
        for name, value, data_type in zip(fetches, values, types, strict=True)
    }


def write_proto_outputs(
    fetches: Sequence[str], values: Sequence[Any], types: Sequence[DataType]
) -> list[pb.NamedTensorProto]:
    """The tensors of a RunStepResponse, in the order of `fetches`."""
    return [
        pb.NamedTensorProto(name=name, tensor=tensor_to_proto(np.asarray(value), data_type))
        for name, value, data_type in zip(fetches, values, types, strict=True)
    ]
