"""numpy arrays as the server's binary forms: v2 binary tensors, and base64 tensors of sessions."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from runtime.errors import InternalError, InvalidArgumentError

# The Open Inference Protocol's datatypes by numpy's names.
DATATYPES = {
    "bool": "BOOL",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FP16",
    "bfloat16": "BF16",
    "float32": "FP32",
    "float64": "FP64",
}
_NAMES = {datatype: name for name, datatype in DATATYPES.items()}
BYTES = "BYTES"
_STRING = "string"  # the element type of strings in session bodies


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return a numpy dtype by its name; `bfloat16`, `float8_e5m2`… come from ml_dtypes."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        if not hasattr(ml_dtypes, name):
            raise InternalError(f"the server sent a tensor of unknown type {name!r}") from None
        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found


def datatype_of(array: np.ndarray) -> str:
    """Return the protocol's datatype; raise InvalidArgumentError if there is none."""
    if array.dtype.kind in "OSU":
        return BYTES
    datatype = DATATYPES.get(array.dtype.name)
    if datatype is None:
        raise InvalidArgumentError(
            f"arrays of {array.dtype.name} can't be sent: expected one of "
            f"{', '.join(DATATYPES)}, or strings"
        )
    return datatype


def as_datatype(value: object, datatype: str) -> np.ndarray:
    """Return a nested list or a scalar as an array of the protocol's datatype."""
    name = _NAMES.get(datatype)
    try:
        return np.asarray(value, object if name is None else numpy_dtype(name))
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"expected values of {datatype}: {error}") from None


def little_endian(array: np.ndarray) -> bytes:
    """Return the elements in row order; strings with their lengths as uint32 before each."""
    if array.dtype.kind in "OSU":
        return b"".join(_with_length(each) for each in array.ravel().tolist())
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _with_length(value: object) -> bytes:
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, bytes):
        raise InvalidArgumentError(f"expected a string or bytes, got {type(value).__name__}")
    return struct.pack("<I", len(value)) + value


def from_little_endian(content: bytes, name: str, shape: Sequence[int]) -> np.ndarray:
    """Return an array from what `little_endian` returns; `name` is numpy's, or `string`.

    Raises InternalError if the bytes are not those of such a tensor.
    """
    count = math.prod(shape)
    if name in (_STRING, BYTES):
        array = np.empty(count, object)
        array[:] = list(_strings(content, count))
        return array.reshape(shape)
    dtype = numpy_dtype(_NAMES.get(name, name)).newbyteorder("<")
    if len(content) != count * dtype.itemsize:
        raise InternalError(
            f"expected {count * dtype.itemsize} bytes of {name}{list(shape)}, got {len(content)}"
        )
    return np.frombuffer(content, dtype).reshape(shape)


def _strings(content: bytes, count: int) -> Iterable[bytes]:
    position = 0
    for _ in range(count):
        begin = position + 4
        (size,) = struct.unpack_from("<I", content.ljust(begin, b"\xff"), position)
        position = begin + size
        if position > len(content):
            raise InternalError(f"expected {count} strings, got {len(content)} bytes")
        yield content[begin:position]


def session_value(value: object) -> object:
    """Return a feed as JSON: an array in its binary form, anything else as it is.

    A list or a number takes its type from the graph.
    """
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode()}
    if not isinstance(value, np.ndarray | np.generic):
        return value
    array = np.asarray(value)
    return {
        "dtype": _STRING if array.dtype.kind in "OSU" else array.dtype.name,
        "shape": list(array.shape),
        "b64": base64.b64encode(little_endian(array)).decode(),
    }


def session_array(value: Mapping[str, Any]) -> np.ndarray:
    """Return a tensor of a session's answer as an array; raise InternalError if it is none."""
    try:
        content = base64.b64decode(value["b64"], validate=True)
        return from_little_endian(content, value["dtype"], value["shape"])
    except (KeyError, TypeError, ValueError) as error:
        raise InternalError(f"the server sent an unreadable tensor: {error}") from None


def write_inputs(inputs: Mapping[str, np.ndarray]) -> tuple[list[dict[str, Any]], bytes]:
    """Return v2's description of the inputs, and their binary data."""
    parts, described = [], []
    for name, array in inputs.items():
        part = little_endian(array)
        described.append(
            {
                "name": name,
                "shape": list(array.shape),
                "datatype": datatype_of(array),
                "parameters": {"binary_data_size": len(part)},
            }
        )
        parts.append(part)
    return described, b"".join(parts)


def read_outputs(described: Sequence[Mapping[str, Any]], content: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of a v2 answer with binary data; raise InternalError if it is damaged."""
    found, begin = {}, 0
    for each in described:
        try:
            size = each["parameters"]["binary_data_size"]
            part = content[begin : begin + size]
            found[each["name"]] = from_little_endian(part, each["datatype"], each["shape"])
        except (KeyError, TypeError, ValueError) as error:
            raise InternalError(f"the server sent an unreadable tensor: {error!r}") from None
        begin += size
    return found
