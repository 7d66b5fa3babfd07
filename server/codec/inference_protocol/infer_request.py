"""InferRequest and InferReply: an inference request and its response, in no wire format.

The fronts' codecs (`json_infer`, `message_infer`) make the one and write the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from runtime.api import DataType
from runtime.errors import InvalidArgumentError, UnimplementedError
from server.codec.session.tensor_reader import read_bytes

Parameters = Mapping[str, Any]  # values are booleans, numbers and strings
# Reads the elements of a tensor of this type and shape.
ReadElements = Callable[[DataType, tuple[int, ...]], np.ndarray]

_SHARED_MEMORY = "shared_memory_region"


class ReceivedInput(NamedTuple):
    """An input tensor of a request, whose elements are not read yet."""

    name: str
    datatype: str
    shape: Sequence[Any]
    read: ReadElements


class RequestedOutput(NamedTuple):
    """An output that a request names.

    `is_binary` is None if the output has no such parameter. `classes` is the number of classes if
    the classification extension is used, else 0.
    """

    name: str
    is_binary: bool | None = None
    classes: int = 0


class InferRequest(NamedTuple):
    """One inference request.

    `id` is None if there is none. `outputs` are those the request names; if there are none, all
    are meant. `is_binary` is whether outputs are binary for which the request says nothing else.
    `raw_body` is set if the body is nothing but the elements of the model's only input.
    """

    id: str | None = None
    parameters: Parameters = MappingProxyType({})
    inputs: Sequence[ReceivedInput] = ()
    outputs: Sequence[RequestedOutput] = ()
    is_binary: bool = False
    raw_body: bytes | None = None


class OutputTensor(NamedTuple):
    """An output of a response."""

    name: str
    datatype: str
    array: np.ndarray
    is_binary: bool


class InferReply(NamedTuple):
    """One response; `size` is the number of bytes of its tensors."""

    model_name: str
    model_version: str
    id: str | None
    outputs: Sequence[OutputTensor]
    size: int


# --- parameters ---------------------------------------------------------------------------------


def flag(parameters: Parameters, name: str) -> bool | None:
    """Return a boolean parameter, or None if it is missing.

    Raises InvalidArgumentError if it is no boolean.
    """
    value = parameters.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidArgumentError(f"Parameter {name} must be true or false, got {value!r:.80}")
    return value


def whole_number(parameters: Parameters, name: str) -> int | None:
    """Return a parameter that must be an integer of 0 or more, or None if it is missing."""
    value = parameters.get(name)
    if value is not None and (type(value) is not int or value < 0):
        raise InvalidArgumentError(
            f"Parameter {name} must be an integer of 0 or more, got {value!r:.80}"
        )
    return value


def text(parameters: Parameters, name: str) -> str | None:
    """Return a parameter that must be a string, or None if it is missing."""
    value = parameters.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidArgumentError(f"Parameter {name} must be a string, got {value!r:.80}")
    return value


def requested_output(name: str, parameters: Parameters) -> RequestedOutput:
    """Return the output that a request describes with these parameters."""
    refuse_shared_memory(name, parameters)
    classes = whole_number(parameters, "classification") or 0
    return RequestedOutput(name, flag(parameters, "binary_data"), classes)


def refuse_shared_memory(name: str, parameters: Parameters) -> None:
    """Raise UnimplementedError if a tensor is said to be in shared memory."""
    if _SHARED_MEMORY in parameters:
        raise UnimplementedError(
            f"Tensor {name} is in shared memory, which this server does not use; "
            "send and request binary data instead"
        )


# --- elements -----------------------------------------------------------------------------------


def read_raw(
    content: bytes | memoryview, data_type: DataType, shape: tuple[int, ...]
) -> np.ndarray:
    """Read little-endian elements; each string is preceded by its length as a u32."""
    array = read_bytes(content, data_type, shape)
    # Binary data may begin at any byte of a body, but kernels require aligned elements.
    return array if array.flags.aligned else array.copy()


def raw_elements(content: bytes | memoryview) -> ReadElements:
    """Return the function that reads these bytes."""
    return functools.partial(read_raw, content)
