"""Tensors as buffers of a message: numbers as they lie in memory, strings as TensorProtos."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.foundation.message_channel import Buffer, MessageChannel
from runtime.framework.dtypes import DataType, from_number, from_numpy
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto

Description = list[Any]  # [number of the element type, shape]


def frame(value: Any) -> tuple[Description, Buffer]:
    """What a message's header says of a tensor, and its bytes.

    Raises UnimplementedError for resources and variants, which live in one process only.
    """
    array = value if isinstance(value, np.ndarray) else _boxed(value)
    if array.dtype == object:
        proto = tensor_to_proto(array)
        return [int(DataType.STRING), list(array.shape)], proto.SerializeToString()
    description = [int(from_numpy(array.dtype)), list(array.shape)]
    return description, _bytes_of(np.ascontiguousarray(array))  # which has rank 1 for rank 0


def receive_tensor(channel: MessageChannel, description: Description) -> np.ndarray:
    """The tensor of the message's next buffer."""
    number, shape = description
    data_type = from_number(number)[0]
    if data_type is DataType.STRING:
        return tensor_from_proto(pb.TensorProto.FromString(channel.receive_buffer()))
    array = np.empty(shape, data_type.numpy)
    channel.receive_into(_bytes_of(array))
    return array


def frames(values: Sequence[Any]) -> tuple[list[Description], list[Buffer]]:
    """`frame` of each of them."""
    framed = [frame(value) for value in values]
    return [description for description, _ in framed], [buffer for _, buffer in framed]


def receive_tensors(
    channel: MessageChannel, descriptions: Sequence[Description]
) -> list[np.ndarray]:
    """The tensors of the message's next buffers."""
    return [receive_tensor(channel, description) for description in descriptions]


def _bytes_of(array: np.ndarray) -> memoryview:
    """The memory of a contiguous array."""
    return memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type] # an array is a buffer


def _boxed(value: Any) -> np.ndarray:
    """A scalar as an array; what is neither a number nor a string stays what it is, boxed."""
    array = np.asarray(value)
    if array.dtype.kind in "SU":  # a bare string
        boxed = np.empty((), object)
        boxed[()] = value
        return boxed
    return array
