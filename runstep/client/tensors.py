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
# By the kind of the datatype: the kinds of values that it takes, as the server's JSON does. The
# types of ml_dtypes have the kind V.
_TAKEN = {"b": "b", "i": "iu", "u": "iu", "f": "iufV", "V": "iufV"}
_KIND_NAMES = {
    "b": "booleans", "i": "integers", "u": "integers", "f": "floats", "c": "complex numbers",
    "S": "strings", "U": "strings",
}  # fmt: skip
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
    """Return a nested list or a scalar as an array of the protocol's datatype.

    No value changes but by the rounding of floats: InvalidArgumentError if one is of another kind
    (1.5 for INT32, "3" for FP32) or out of range.
    """
    name = _NAMES.get(datatype)
    try:
        if name is None:
            return np.asarray(value, object)
        array, dtype = np.asarray(value), numpy_dtype(name)
        if array.size and array.dtype.kind not in _TAKEN[dtype.kind]:
            got = _KIND_NAMES.get(array.dtype.kind, "other objects")
            raise InvalidArgumentError(f"expected values of {datatype}: got {got}")
        if array.size and dtype.kind in "iu":
            range_ = np.iinfo(dtype)
            if int(array.min()) < range_.min or int(array.max()) > range_.max:
                raise InvalidArgumentError(
                    f"expected values of {datatype}: got {array.min()} to {array.max()}"
                )
        with np.errstate(over="raise"):
            return array.astype(dtype, copy=False)
    except (TypeError, ValueError, ArithmeticError) as error:
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


def from_little_endian(content: bytes | memoryview, name: str, shape: Sequence[int]) -> np.ndarray:
    """Return a new array from what `little_endian` returns; `name` is numpy's, or `string`.

    Raises InternalError if the bytes are not those of such a tensor.
    """
    count = math.prod(shape)
    if name in (_STRING, BYTES):
        array = np.empty(count, object)
        array[:] = list(_strings(bytes(content), count))
        return array.reshape(shape)
    dtype = numpy_dtype(_NAMES.get(name, name)).newbyteorder("<")
    if len(content) != count * dtype.itemsize:
        raise InternalError(
            f"expected {count * dtype.itemsize} bytes of {name}{list(shape)}, got {len(content)}"
        )
    return np.frombuffer(bytearray(content), dtype).reshape(shape)  # which may be written to


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
    found, begin, view = {}, 0, memoryview(content)
    for each in described:
        try:
            size = each["parameters"]["binary_data_size"]
            part = view[begin : begin + size]
            found[each["name"]] = from_little_endian(part, each["datatype"], each["shape"])
        except (KeyError, TypeError, ValueError) as error:
            raise InternalError(f"the server sent an unreadable tensor: {error!r}") from None
        begin += size
    return found
