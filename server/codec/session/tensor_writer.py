"""Write tensors as JSON values: `{"dtype", "shape", "data"}`, or `"b64"` in place of `"data"`.

`tensor_reader` reads the result back to the same array, bit for bit, if `non_finite` keeps NaN and
infinities. The payload of a NaN is lost.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import orjson

from runtime.api import DataType, as_bytes, dtypes
from runtime.errors import InvalidArgumentError
from server.codec.json_body import to_json
from server.codec.large.array_parts import base64_parts, blocks, json_parts
from server.codec.scalars import encode_base64, non_finite_word, text_or_base64

Encoding = Literal["json", "b64"]
# The floating-point types that orjson writes itself, with the fewest digits that read back the
# same.
_NATIVE_FLOATS = (np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64))

_SMALL_INTEGERS = (DataType.INT2, DataType.INT4, DataType.UINT2, DataType.UINT4)


def write_tensor(
    value: Any, data_type: DataType, *, encoding: Encoding = "json", non_finite: str = "string"
) -> dict[str, Any]:
    """Return the JSON value of an array, which must be passed to `to_json`.

    `non_finite` selects how NaN and infinities are written: `token`, `string`, `null`, or `error`.
    Raises InvalidArgumentError if it is `error` and `value` has a NaN or an infinity, or if
    `data_type` is RESOURCE or VARIANT.
    """
    if data_type in (DataType.RESOURCE, DataType.VARIANT):
        raise InvalidArgumentError(f"A tensor of type {data_type.tf_name} cannot be fetched")
    array = np.asarray(value)
    written: dict[str, Any] = {"dtype": data_type.name_on_wire, "shape": array.shape}
    if encoding == "b64":
        written["b64"] = encode_base64(to_bytes(array, data_type))
    else:
        written["data"] = write_data(array, data_type, non_finite)
    return written


def tensor_parts(
    value: Any, data_type: DataType, *, encoding: Encoding = "json", non_finite: str = "string"
) -> Iterator[bytes]:
    """Yield the parts of the text that `to_json` makes of `write_tensor`.

    No part takes long to write. Raises the same errors as `write_tensor`.
    """
    array = np.asarray(value)
    if not array.ndim:
        written = write_tensor(array, data_type, encoding=encoding, non_finite=non_finite)
        yield to_json(written)
        return
    yield to_json({"dtype": data_type.name_on_wire, "shape": array.shape})[:-1]
    if encoding == "b64":
        yield b',"b64":"'
        flat = np.ascontiguousarray(array)
        yield from base64_parts(to_bytes(block, data_type) for block in blocks(flat))
        yield b'"}'
    else:
        yield b',"data":'
        write_floats = _block_writer(array, data_type, non_finite)
        yield from json_parts(array, lambda block: to_json(_data(block, data_type, write_floats)))
        yield b"}"


def _block_writer(
    array: np.ndarray, data_type: DataType, non_finite: str
) -> Callable[[np.ndarray], Any]:
    """Return the function that writes every block of floats as the whole array is written."""
    if data_type not in dtypes.FLOATING and data_type not in dtypes.COMPLEX:
        return _writable
    for block in blocks(np.ascontiguousarray(array)):
        if not np.isfinite(_native(block, data_type)).all():
            if non_finite == "error":
                _refuse(_native(array, data_type))
            return _NON_FINITE[non_finite]
    return _writable


def write_data(array: np.ndarray, data_type: DataType, non_finite: str) -> Any:
    """Return the nested data of an array: lists, or a value that `to_json` writes as lists."""
    return _data(array, data_type, functools.partial(_finite_or, non_finite=non_finite))


def _data(array: np.ndarray, data_type: DataType, write_floats: Callable[[np.ndarray], Any]) -> Any:
    if data_type is DataType.STRING:
        return _nested_strings(array)
    if data_type in dtypes.COMPLEX or data_type in dtypes.FLOATING:
        return write_floats(_native(array, data_type))
    if data_type in _SMALL_INTEGERS:
        array = array.astype(np.int8 if data_type in _SMALL_INTEGERS[:2] else np.uint8)
    return _writable(array)


def _native(array: np.ndarray, data_type: DataType) -> np.ndarray:
    """Return floats in a type of numpy's own, and complex numbers as pairs `[re, im]`."""
    if data_type in dtypes.COMPLEX:
        part = DataType.FLOAT if data_type is DataType.COMPLEX64 else DataType.DOUBLE
        return np.ascontiguousarray(array).reshape(*array.shape, 1).view(part.numpy)
    # float32 contains every value of the smaller types, and its digits read back exactly.
    return array if array.dtype in _NATIVE_FLOATS else array.astype(np.float32)


def _writable(array: np.ndarray) -> Any:
    """Return an array in the form that orjson requires.

    The form is C-contiguous with native byte order; an array of rank 0 becomes a scalar.
    """
    if array.ndim == 0:
        return array[()]
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return np.ascontiguousarray(array)


def _finite_or(array: np.ndarray, non_finite: str) -> Any:
    if bool(np.isfinite(array).all()):
        return _writable(array)
    return _NON_FINITE[non_finite](array)


def _refuse(array: np.ndarray) -> Any:
    index = np.argwhere(~np.isfinite(array))[0].tolist()
    raise InvalidArgumentError(
        f"The tensor has a value that is not finite, {array[tuple(index)]} at {index}, "
        "and rest.non_finite is error"
    )


def _as_strings(array: np.ndarray) -> Any:
    """Return nested lists in which a value that is not finite is a string."""
    finite = np.isfinite(array)
    # The numbers are converted through text, so that float32 values keep their shortest digits.
    numbers = orjson.loads(to_json(np.ascontiguousarray(np.where(finite, array, 0).ravel())))
    flat = np.array(numbers, object)
    flat[~finite.ravel()] = [non_finite_word(item) for item in array[~finite].tolist()]
    return flat.reshape(array.shape).tolist()


def _as_tokens(array: np.ndarray) -> Any:
    """Return nested lists in which a value that is not finite is a bare token.

    All quotes can be removed from the text of `_as_strings`, because it contains no other strings.
    """
    return orjson.Fragment(orjson.dumps(_as_strings(array)).replace(b'"', b""))


_NON_FINITE: dict[str, Callable[[np.ndarray], Any]] = {
    "string": _as_strings,
    "token": _as_tokens,
    "null": _writable,  # orjson itself writes null for a value that is not finite
    "error": _refuse,
}


def _nested_strings(array: np.ndarray) -> Any:
    texts = np.empty(array.size, object)
    texts[:] = [text_or_base64(as_bytes(item)) for item in array.ravel().tolist()]
    return texts.reshape(array.shape).tolist()


def to_bytes(array: np.ndarray, data_type: DataType) -> bytes:
    """Return the little-endian bytes; each string is preceded by its length as a u32."""
    if data_type is DataType.STRING:
        items = [as_bytes(item) for item in array.ravel().tolist()]
        return b"".join(len(item).to_bytes(4, "little") + item for item in items)
    if array.dtype.kind in "iufc":
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return array.tobytes()
