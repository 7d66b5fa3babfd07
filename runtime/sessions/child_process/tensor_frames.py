"""Converts tensors to buffers of a message: numbers are their memory, strings TensorProtos."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.foundation.message_channel import Buffer, MessageChannel
from runtime.framework.dtypes import DataType, from_number, from_numpy
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from runtime.sessions.child_process.shared_area import LEAST_BYTES, SharedArea, copy_in_pieces

# [DataType number, shape] if the tensor is the message's next buffer, or [DataType number, shape,
# byte offset] if the tensor is in the shared area.
Description = list[Any]


def frames(
    values: Sequence[Any], area: SharedArea | None = None
) -> tuple[list[Description], list[Buffer]]:
    """Return the descriptions of tensors, for the header of a message, and the message's buffers.

    Tensors of at least LEAST_BYTES are copied into `area` if it is given and has room. Raises
    UnimplementedError if a value is a resource or a variant, which exist in one process only.
    """
    descriptions: list[Description] = []
    buffers: list[Buffer] = []
    for value in values:
        array = value if isinstance(value, np.ndarray) else _boxed(value)
        shape = list(array.shape)
        if array.dtype == object:
            descriptions.append([int(DataType.STRING), shape])
            buffers.append(tensor_to_proto(array).SerializeToString())
            continue
        description: Description = [int(from_numpy(array.dtype)), shape]
        descriptions.append(description)
        array = np.ascontiguousarray(array)  # may change rank 0 to 1, so `shape` is read before
        begin = None
        if area is not None and array.nbytes >= LEAST_BYTES:
            begin = area.put(array)
        if begin is None:
            buffers.append(_bytes_of(array))
        else:
            description.append(begin)
    return descriptions, buffers


def receive_tensor(
    channel: MessageChannel, description: Description, area: SharedArea | None = None
) -> np.ndarray:
    """Receive the tensor of a description; return a read-only view if it is in the area."""
    number, shape, *begin = description
    data_type = from_number(number)[0]
    if begin:
        assert area is not None, "a tensor in an area that is not there"
        return area.look(begin[0], shape, data_type.numpy)
    if data_type is DataType.STRING:
        return tensor_from_proto(pb.TensorProto.FromString(channel.receive_buffer()))
    array = np.empty(shape, data_type.numpy)
    channel.receive_into(_bytes_of(array))
    return array


def receive_tensors(
    channel: MessageChannel, descriptions: Sequence[Description], area: SharedArea | None = None
) -> list[np.ndarray]:
    """Receive the tensor of each description as `receive_tensor` does."""
    return [receive_tensor(channel, description, area) for description in descriptions]


def copied_out(values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the arrays, but copies of the read-only arrays, which view a shared area."""
    return [value if value.flags.writeable else _copy(value) for value in values]


def _copy(value: np.ndarray) -> np.ndarray:
    copy = np.empty_like(value)
    copy_in_pieces(copy.reshape(-1), value.reshape(-1))
    return copy


def _bytes_of(array: np.ndarray) -> memoryview:
    """Return the memory of a contiguous array without copying it."""
    return memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type] # an array is a buffer


def _boxed(value: Any) -> np.ndarray:
    """Return a value that is no array as an array; a string gets dtype `object`."""
    array = np.asarray(value)
    if array.dtype.kind in "SU":  # a single string
        boxed = np.empty((), object)
        boxed[()] = value
        return boxed
    return array
