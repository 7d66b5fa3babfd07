"""Read the tensors of session requests from JSON values.

A tensor is a nested list, whose element type is taken from the graph, or an object
`{"dtype": "float32", "shape": [2, 3], "data": [...]}`, whose data is nested or flat. Instead of
`"data"` the object may have `"b64"`: the little-endian bytes of the elements. If the elements are
strings, each one is preceded by its length as a little-endian u32.

Rules: an integer must be a JSON integer in range. A float may be any JSON number or one of the
strings "NaN", "Infinity" and "-Infinity". A boolean must be true or false. A string element is text
or `{"b64": "…"}`. A complex number is the innermost list `[re, im]`.
"""

from __future__ import annotations

import binascii
import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from runtime.api import MAX_RANK, DataType, check_representable, dtypes, tensor_limit
from runtime.errors import InvalidArgumentError, ResourceExhaustedError
from server.codec.json_body import type_name
from server.codec.large.large_values import TEXTS, LargeList, LargeText
from server.codec.large.number_array import NumberArray
from server.codec.scalars import NON_FINITE

_TYPED_KEYS = frozenset({"dtype", "shape", "data", "b64"})
_NUMBERS = frozenset({int, float})
_MAX_KNOWN = 1 << 16
_NO_VALUE = (DataType.RESOURCE, DataType.VARIANT)


@dataclasses.dataclass(frozen=True, slots=True)
class _Elements:
    """The innermost values of a nested list, in order, and the list's shape."""

    flat: list[Any]
    shape: tuple[int, ...]


def read_tensor(value: Any, name: str, data_type: DataType) -> np.ndarray:
    """Read the array of a JSON value.

    `data_type` is the type in the graph; it is used if the value has no `dtype`. Raises
    InvalidArgumentError with the name of the tensor and the fault, and ResourceExhaustedError if
    the shape requires more bytes than `tensor_limit()`.
    """
    try:
        if _is_typed(value):
            return _read_typed(value, data_type)
        return _read_list(value, data_type, None)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"Tensor {name}: {error.message}") from None


def _is_typed(value: Any) -> bool:
    """Return whether a value is a tensor object; `{"b64": …}` alone is a string element."""
    return isinstance(value, dict) and value.keys() != {"b64"}


def _read_typed(value: dict[str, Any], graph_type: DataType) -> np.ndarray:
    if not value.keys() <= _TYPED_KEYS:
        unknown = ", ".join(sorted(value.keys() - _TYPED_KEYS))
        raise InvalidArgumentError(
            f"Unknown keys: {unknown}; known keys are dtype, shape, data, b64"
        )
    if ("data" in value) == ("b64" in value):
        raise InvalidArgumentError("Expected either data or b64, got " + _both_or_none(value))
    data_type = _read_dtype(value["dtype"]) if "dtype" in value else graph_type
    shape = read_shape(value["shape"], data_type) if "shape" in value else None
    if "data" in value:
        return _read_list(value["data"], data_type, shape)
    if shape is None:
        raise InvalidArgumentError("A tensor given as b64 needs a shape")
    return read_bytes(decode_base64(value["b64"]), data_type, shape)


def _both_or_none(value: dict[str, Any]) -> str:
    return "both" if "data" in value else "neither"


def _read_dtype(name: Any) -> DataType:
    if not isinstance(name, str):
        raise InvalidArgumentError(f"dtype must be a string, got {type_name(name)}")
    data_type = dtypes.from_name(name)
    if data_type in _NO_VALUE or data_type is DataType.INVALID:
        raise InvalidArgumentError(f"A tensor of dtype {name} has no value on the wire")
    return data_type


def read_shape(sizes: Any, data_type: DataType) -> tuple[int, ...]:
    """Return a shape; raise the errors of `read_tensor` if it is none, or requires too much."""
    if not isinstance(sizes, list) or any(type(size) is not int or size < 0 for size in sizes):
        raise InvalidArgumentError(
            f"shape must be a list of non-negative integers, got {sizes!r:.80}"
        )
    check_representable(sizes)
    needed = math.prod(sizes) * data_type.numpy.itemsize
    if needed > tensor_limit():
        raise ResourceExhaustedError(
            f"A tensor of shape {sizes} and type {data_type.tf_name} needs {needed} bytes; "
            f"the limit is {tensor_limit()}"
        )
    return tuple(sizes)


def decode_base64(text: Any) -> bytes | bytearray:
    """Decode a base64 string, which must be in the standard alphabet with padding."""
    if not isinstance(text, TEXTS):
        raise InvalidArgumentError(f"b64 must be a string, got {type_name(text)}")
    try:
        if isinstance(text, LargeText):
            return text.base64()
        return binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidArgumentError(f"b64 is not valid base64: {error}") from None


# --- nested lists -------------------------------------------------------------------------------


def _read_list(value: Any, data_type: DataType, declared: tuple[int, ...] | None) -> np.ndarray:
    if isinstance(value, NumberArray):
        return _place(_read_numbers(value, data_type), declared)
    if isinstance(value, LargeList):
        return _place(_read_large(value, data_type), declared)
    elements = _flatten(value)
    if data_type in dtypes.COMPLEX:
        return _place(_read_complex(elements, data_type), declared)
    flat = _read_elements(elements.flat, data_type)
    return _place((flat, elements.shape), declared)


def _read_numbers(numbers: NumberArray, data_type: DataType) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the flat array and the shape of numbers that were read in slices.

    Raises InvalidArgumentError, without the faulty element, if they do not fit `data_type`.
    """
    array: np.ndarray | None = None
    shape = numbers.shape
    if data_type in dtypes.COMPLEX and shape[-1] == 2:
        part = DataType.FLOAT if data_type is DataType.COMPLEX64 else DataType.DOUBLE
        array, shape = numbers.floats(part.numpy).ravel().view(data_type.numpy), shape[:-1]
    elif data_type in dtypes.INTEGER or data_type in dtypes.QUANTIZED:
        array = numbers.integers(data_type.numpy, *_range(data_type))
    elif data_type in dtypes.FLOATING:
        array = numbers.floats(data_type.numpy)
    if array is None:
        raise InvalidArgumentError(f"Expected elements of {data_type.name_on_wire}, got numbers")
    return array.ravel(), shape


def _read_large(large: LargeList, data_type: DataType) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the flat array and the shape of a list that is read slice by slice."""
    shape, fault = large.levels.shape, large.levels.fault()
    if fault is not None:
        raise _ragged(*fault)
    if shape is None or len(shape) > MAX_RANK:
        raise InvalidArgumentError(f"Lists are nested over {MAX_RANK} deep")
    part = data_type
    if data_type in dtypes.COMPLEX:
        part = DataType.FLOAT if data_type is DataType.COMPLEX64 else DataType.DOUBLE
    flat = np.empty(math.prod(shape), part.numpy)
    known: dict[bytes, bytes] = {}  # short strings, of which many may be equal
    begin = 0
    for leaves in large.leaves():
        block = _read_elements(leaves, part, begin)
        if part is DataType.STRING and len(known) < _MAX_KNOWN:
            block[:] = [known.setdefault(item, item) for item in block.tolist()]
        flat[begin : begin + len(block)] = block
        begin += len(block)
    if data_type in dtypes.COMPLEX:
        return _paired(flat, shape, data_type)
    return flat, shape


def _place(
    elements: tuple[np.ndarray, tuple[int, ...]], declared: tuple[int, ...] | None
) -> np.ndarray:
    """Reshape a flat array to the declared shape, whether the data was nested or flat.

    `elements` is the flat array and the shape of the data. Raises InvalidArgumentError if
    `declared` does not fit them.
    """
    flat, shape = elements
    if declared is None or shape == declared:
        return flat.reshape(shape)
    if flat.size == 0 and shape == declared[: len(shape)] and 0 in declared:
        return flat.reshape(declared)  # data cannot be nested below a dimension of size 0
    if len(shape) > 1 or flat.size != math.prod(declared):
        raise InvalidArgumentError(
            f"Expected {math.prod(declared)} elements for shape {list(declared)}, "
            f"got data of shape {list(shape)}"
        )
    return flat.reshape(declared)


def _flatten(value: Any) -> _Elements:
    """Flatten nested lists level by level; raise InvalidArgumentError if they are ragged."""
    level: list[Any] = [value]
    shape: list[int] = []
    while level and type(level[0]) is list:
        sizes = set(map(len, level)) if set(map(type, level)) == {list} else None
        if sizes is None or len(sizes) != 1:
            raise _ragged(len(shape), [] if sizes is None else sorted(sizes))
        shape.append(sizes.pop())
        if len(shape) > MAX_RANK:
            raise InvalidArgumentError(f"Lists are nested over {MAX_RANK} deep")
        level = list(itertools.chain.from_iterable(level))
    if list in set(map(type, level)):
        raise _ragged(len(shape), [])
    return _Elements(level, tuple(shape))


def _ragged(level: int, sizes: Sequence[int]) -> InvalidArgumentError:
    """Return the error for lists of these sizes at a level, or for lists beside values."""
    got = f"lengths {list(sizes[:5])}" if sizes else "lists beside values"
    return InvalidArgumentError(f"Expected lists of equal length at depth {level + 1}, got {got}")


def _read_complex(elements: _Elements, data_type: DataType) -> tuple[np.ndarray, tuple[int, ...]]:
    """Read complex numbers from innermost pairs `[re, im]`; return them and their shape.

    The shape does not include the dimension of the pairs.
    """
    part = DataType.FLOAT if data_type is DataType.COMPLEX64 else DataType.DOUBLE
    is_paired = elements.shape[-1:] == (2,)
    flat = _read_elements(elements.flat, part) if is_paired else np.empty(0, part.numpy)
    return _paired(flat, elements.shape, data_type)


def _paired(
    flat: np.ndarray, shape: tuple[int, ...], data_type: DataType
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return complex numbers from their parts, which have this shape, and their own shape."""
    if 0 in shape:
        return np.empty(0, data_type.numpy), shape
    if shape[-1:] != (2,):
        raise InvalidArgumentError(
            f"A complex tensor needs [re, im] innermost, got data of shape {list(shape)}"
        )
    return flat.view(data_type.numpy), shape[:-1]


def _read_elements(flat: list[Any], data_type: DataType, first: int = 0) -> np.ndarray:
    """Convert elements; `first` is the number of those before them, for error messages."""
    if data_type is DataType.STRING:
        return _read_strings(flat, first)
    kinds = set(map(type, flat))
    if data_type is DataType.BOOL:
        _check_kinds(flat, kinds, frozenset({bool}), "true or false", first)
        return np.array(flat, np.bool_)
    if data_type in dtypes.INTEGER or data_type in dtypes.QUANTIZED:
        _check_kinds(flat, kinds, frozenset({int}), "an integer", first)
        return _read_integers(flat, data_type)
    if str in kinds:
        flat = [NON_FINITE.get(item, item) if type(item) is str else item for item in flat]
        kinds = set(map(type, flat))
    _check_kinds(flat, kinds, _NUMBERS, "a number", first)
    return _read_floats(flat, data_type.numpy)


def _check_kinds(
    flat: list[Any], kinds: set[type], allowed: frozenset[type], wanted: str, first: int
) -> None:
    if kinds <= allowed:
        return
    index, wrong = next((i, item) for i, item in enumerate(flat) if type(item) not in allowed)
    raise InvalidArgumentError(
        f"Expected {wanted} at element {first + index}, got {type_name(wrong)} {wrong!r:.80}"
    )


def _read_integers(flat: list[int], data_type: DataType) -> np.ndarray:
    """Convert integers; raise InvalidArgumentError if one is out of the range of `data_type`."""
    low, high = _range(data_type)
    if flat and (min(flat) < low or max(flat) > high):
        wrong = next(item for item in flat if not low <= item <= high)
        raise InvalidArgumentError(
            f"{wrong} is out of range for {data_type.name_on_wire}: {low} to {high}"
        )
    return np.array(flat, np.uint64 if low == 0 else np.int64).astype(data_type.numpy)


def _range(data_type: DataType) -> tuple[int, int]:
    info = ml_dtypes.iinfo(data_type.numpy)  # type: ignore[no-untyped-call]
    return int(info.min), int(info.max)


def _read_floats(flat: list[float], dtype: np.dtype) -> np.ndarray:
    """Convert floats as TensorFlow Serving does: values beyond the range become infinite."""
    with np.errstate(over="ignore"):
        try:
            return np.array(flat, np.float64).astype(dtype)
        except OverflowError:  # an integer is beyond the range of float64
            return np.array([_to_float(item) for item in flat]).astype(dtype)


def _to_float(item: float) -> float:
    try:
        return float(item)
    except OverflowError:
        return math.inf if item > 0 else -math.inf


def _read_strings(flat: list[Any], first: int) -> np.ndarray:
    array = np.empty(len(flat), object)
    array[:] = [_read_string(item, index) for index, item in enumerate(flat, first)]
    return array


def _read_string(item: Any, index: int) -> bytes:
    if type(item) is LargeText:
        return item.content()
    if type(item) is str:
        try:
            return item.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgumentError(f"Element {index} is not valid Unicode: {error}") from None
    if type(item) is dict and item.keys() == {"b64"}:
        return bytes(decode_base64(item["b64"]))
    raise InvalidArgumentError(
        f'Expected a string or {{"b64": "…"}} at element {index}, '
        f"got {type_name(item)} {item!r:.80}"
    )


# --- bytes --------------------------------------------------------------------------------------


def read_bytes(
    content: bytes | bytearray | memoryview, data_type: DataType, shape: Sequence[int]
) -> np.ndarray:
    """Read the array of little-endian bytes; each string is preceded by its length as a u32.

    The array may be a view of `content`. Raises InvalidArgumentError if the bytes do not fit the
    shape, which must have been checked.
    """
    count = math.prod(shape)
    if data_type is DataType.STRING:
        return _read_length_prefixed(content, count).reshape(shape)
    dtype = data_type.numpy
    if len(content) != count * dtype.itemsize:
        raise InvalidArgumentError(
            f"Expected {count * dtype.itemsize} bytes for shape {list(shape)} of "
            f"{data_type.name_on_wire}, got {len(content)}"
        )
    if data_type is DataType.BOOL:  # any byte other than zero is true
        return np.frombuffer(content, np.uint8).astype(np.bool_).reshape(shape)
    # The array may be a read-only view of the bytes, because kernels never write into their inputs.
    little_endian = dtype.newbyteorder("<") if dtype.kind in "iufc" else dtype
    return np.frombuffer(content, little_endian).astype(dtype, copy=False).reshape(shape)


def _read_length_prefixed(content: bytes | bytearray | memoryview, count: int) -> np.ndarray:
    """Read `count` strings, each preceded by its length as a little-endian u32."""
    if 4 * count > len(content):  # checked before memory is allocated for the strings
        raise InvalidArgumentError(f"{len(content)} bytes cannot hold {count} strings")
    array = np.empty(count, object)
    position = 0
    for index in range(count):
        start = position + 4
        position = start + int.from_bytes(content[position:start], "little")
        if start > len(content) or position > len(content):
            raise InvalidArgumentError(f"The bytes end within string {index} of {count}")
        array[index] = bytes(content[start:position])
    if position != len(content):
        raise InvalidArgumentError(
            f"Expected {count} strings in {position} bytes, got {len(content)} bytes"
        )
    return array
