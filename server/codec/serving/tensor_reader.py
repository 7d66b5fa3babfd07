"""Convert parsed JSON to numpy arrays of a known element type, by TensorFlow Serving's rules.

numpy converts regular lists of numbers. Every other value is converted element by element, and only
this slower way produces error messages. Both ways accept the same values.

Guarantees: no recursion; the memory used is bounded by the size of the parsed value.

TF: tensorflow_serving/util/json_tensor.cc
"""

from __future__ import annotations

import array as c_array
import base64
import binascii
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from runtime.api import MAX_RANK, DataType
from runtime.errors import InvalidArgumentError, UnimplementedError
from server.codec.large.large_values import TEXTS, DeepListError, LargeList, LargeText
from server.codec.large.number_array import NumberArray
from server.codec.serving.pretty_json import debug_string

_INT32 = (-(1 << 31), (1 << 31) - 1)
_INT64 = (-(1 << 63), (1 << 63) - 1)
_UINT32 = (0, (1 << 32) - 1)
_UINT64 = (0, (1 << 64) - 1)
# The JSON integers that each type accepts. In TensorFlow Serving, the 8-bit and 16-bit types accept
# any 32-bit integer and wrap it. If `exact_range` is true, they accept only their own range.
_INTEGER_RANGE: dict[DataType, tuple[int, int]] = {
    DataType.INT32: _INT32,
    DataType.INT16: _INT32,
    DataType.INT8: _INT32,
    DataType.UINT8: _INT32,
    DataType.INT64: _INT64,
    DataType.UINT32: _UINT32,
    DataType.UINT64: _UINT64,
}
_FAST_TYPES: dict[DataType, frozenset[type]] = {
    DataType.FLOAT: frozenset((float, int)),
    DataType.DOUBLE: frozenset((float, int)),
    DataType.BOOL: frozenset((bool,)),
    **dict.fromkeys(_INTEGER_RANGE, frozenset((int,))),
}
_SMALL = (DataType.INT16, DataType.INT8, DataType.UINT8)
_FLOATS = (DataType.FLOAT, DataType.DOUBLE)
_TYPE_NAMES: dict[type, str] = {
    type(None): "Null", dict: "Object", list: "Array", NumberArray: "Array", str: "String",
    int: "Number", float: "Number", LargeList: "Array", LargeText: "String",
}  # fmt: skip


class TensorReader:
    """Converts the values of a body to arrays.

    If `exact_range` is true, an int8, uint8 or int16 that is out of range is refused; otherwise it
    wraps, as in TensorFlow Serving.
    """

    def __init__(self, *, exact_range: bool) -> None:
        self._exact_range = exact_range

    def fast_array(self, value: Any, data_type: DataType) -> np.ndarray | None:
        """Convert a regular value at once; return None if it must be converted element by element.

        The types of all elements are checked first. Otherwise numpy would read true as 1 and "1.5"
        as a number, and would allocate the length of the longest string for every element.
        """
        if type(value) is not list:
            if isinstance(value, NumberArray):
                return self._of_numbers(value, data_type)
            if isinstance(value, LargeList):
                return self._of_rows(value, data_type)
        element_types = _FAST_TYPES.get(data_type)
        regular = None if element_types is None else _regular(value)
        if element_types is None or regular is None:
            return None
        flat, shape = regular
        if not element_types.issuperset(map(type, flat)):
            return None
        if data_type is DataType.FLOAT:
            # Converts like `_as_float`, beyond the range too, but numpy would warn of that, and
            # switching the warning off takes longer than all the rest for a short list.
            array = np.frombuffer(c_array.array("f", flat), np.float32)
        elif data_type is DataType.DOUBLE:
            array = np.array(flat, np.float64)
        elif data_type in _INTEGER_RANGE:
            low, high = self._range(data_type)
            if min(flat) < low or max(flat) > high:
                return None
            array = _flat_array(flat, data_type)
        else:
            array = np.array(flat, np.bool_)
        return array if len(shape) == 1 else array.reshape(shape)

    def _of_numbers(self, numbers: NumberArray, data_type: DataType) -> np.ndarray | None:
        if data_type in _FLOATS:
            return numbers.floats(data_type.numpy)
        if data_type in _INTEGER_RANGE:
            return numbers.integers(data_type.numpy, *self._range(data_type))
        return None

    def batch_array(self, value: Any, data_type: DataType) -> np.ndarray | None:
        """Convert a regular value of many elements at once, strings and empty lists too."""
        array = (
            _regular_strings(value)
            if data_type is DataType.STRING
            else self.fast_array(value, data_type)
        )
        if array is None:
            shape = _empty_shape(value)
            is_known = data_type is DataType.STRING or data_type in _FAST_TYPES
            return None if shape is None or not is_known else np.empty(shape, data_type.numpy)
        return array

    def _of_rows(self, large: LargeList, data_type: DataType) -> np.ndarray:
        """Convert a large list, several elements at a time; raise the errors of `slow_array`."""
        array: np.ndarray | None = None
        for index, rows in _rows_of(large):
            inner = dense_shape(rows[0]) if array is None else array.shape[1:]
            if any(isinstance(row, LargeList) for row in rows):
                block = self._of_large_rows(rows, data_type, None if array is None else inner)
            else:
                fast = self.batch_array(rows, data_type)
                if fast is None or fast.shape[1:] != inner:
                    fast = self._of_slow_rows(rows, inner, data_type)
                block = fast
            if array is None:
                array = np.empty((large.size, *block.shape[1:]), block.dtype)
            array[index : index + len(block)] = block
        return np.empty(0, data_type.numpy) if array is None else array

    def _of_large_rows(
        self, rows: list[Any], data_type: DataType, inner: tuple[int, ...] | None
    ) -> np.ndarray:
        """Convert elements that are large lists themselves, which must have the shape `inner`."""
        arrays = [self.array(row, data_type) for row in rows]
        expected = arrays[0].shape if inner is None else inner
        for array in arrays:
            if array.shape != expected:
                raise InvalidArgumentError(
                    f"Encountered list at unexpected size: {array.shape[:1]} at level: 1 "
                    f"expected size: {expected[:1]}"
                )
        check_rank(1 + len(expected))
        return arrays[0][np.newaxis] if len(arrays) == 1 else np.stack(arrays)

    def _of_slow_rows(
        self, rows: list[Any], inner: tuple[int, ...], data_type: DataType
    ) -> np.ndarray:
        convert = self._converter(data_type)
        values = [convert(leaf) for row in rows for leaf in _leaves([row], (1, *inner))]
        check_rank(1 + len(inner))
        return _flat_array(values, data_type).reshape(len(rows), *inner)

    def slow_array(self, value: Any, data_type: DataType) -> np.ndarray:
        """Convert a value element by element.

        Raises InvalidArgumentError if a list is ragged or an element has another type, and
        UnimplementedError if JSON cannot express `data_type`.
        """
        if isinstance(value, LargeList):
            return self._of_rows(value, data_type)
        shape = dense_shape(value)
        convert = self._converter(data_type)
        values = [convert(leaf) for leaf in _leaves(value, shape)]
        check_rank(len(shape))
        return _flat_array(values, data_type).reshape(shape)

    def array(self, value: Any, data_type: DataType) -> np.ndarray:
        """Convert a value, at once if it is regular; raise the same errors as `slow_array`."""
        fast = self.fast_array(value, data_type)
        return self.slow_array(value, data_type) if fast is None else fast

    def _range(self, data_type: DataType) -> tuple[int, int]:
        if self._exact_range and data_type in _SMALL:
            info = np.iinfo(data_type.numpy)
            return info.min, info.max
        return _INTEGER_RANGE[data_type]

    def _converter(self, data_type: DataType) -> Callable[[Any], Any]:
        """Return the function that converts one JSON value to an element or raises."""
        if data_type is DataType.STRING:
            return _string_element
        if data_type in _FLOATS:
            accepts = _is_number
        elif data_type is DataType.BOOL:
            accepts = _is_bool
        elif data_type in _INTEGER_RANGE:
            low, high = self._range(data_type)

            def accepts(value: Any) -> bool:
                return type(value) is int and low <= value <= high
        else:

            def refuse(value: Any) -> Any:
                if isinstance(value, dict):
                    raise _type_error(value, data_type)
                raise UnimplementedError(
                    f"Conversion of JSON Value: {debug_string(value)} to type: {data_type.tf_name}"
                )

            return refuse

        def convert(value: Any) -> Any:
            if accepts(value):
                return value
            raise _type_error(value, data_type)

        return convert


def _regular(value: Any) -> tuple[list[Any], tuple[int, ...]] | None:
    """Return the elements in order and the shape of a value.

    Returns None if lists on the same level differ in length, or if a list is empty.
    """
    if type(value) is list and value and type(value[0]) is not list:
        return value, (len(value),)
    flat = [value]
    shape: list[int] = []
    while type(flat[0]) is list:
        size = len(flat[0])
        if not size or len(shape) == MAX_RANK:
            return None
        if len(flat) == 1:
            flat = flat[0]
        elif set(map(type, flat)) == {list} and set(map(len, flat)) == {size}:
            flat = list(itertools.chain.from_iterable(flat))
        else:
            return None
        shape.append(size)
    return flat, tuple(shape)


def check_rank(rank: int) -> None:
    """Raise InvalidArgumentError if a tensor may not have so many dimensions."""
    if rank > MAX_RANK:
        raise InvalidArgumentError(f"A tensor may have {MAX_RANK} dimensions at most, got {rank}")


def _rows_of(large: LargeList) -> Iterator[tuple[int, list[Any]]]:
    """Yield the elements of a list; raise the error of `slow_array` if one is too deep."""
    try:
        yield from large.rows()
    except DeepListError as error:
        check_rank(error.depth)
        raise


def is_base64(value: Any) -> bool:
    """Return whether a JSON value is `{"b64": "…"}`, which stands for bytes."""
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get("b64"), TEXTS)


def decode_base64(value: dict[str, Any]) -> bytes:
    """Decode the bytes of `{"b64": "…"}`; white space and missing padding are accepted.

    Raises InvalidArgumentError `Unable to base64 decode` if the text is not base64.
    """
    encoded: str | LargeText = value["b64"]
    try:
        if isinstance(encoded, LargeText):
            return bytes(encoded.base64(is_tolerant=True))
        text = "".join(encoded.split())
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidArgumentError("Unable to base64 decode") from error


def text_bytes(text: str) -> bytes:
    """Encode a JSON string as UTF-8; a lone surrogate gives back the byte that was not UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def dense_shape(value: Any) -> tuple[int, ...]:
    """Return the shape that the first element on each level suggests; an empty list ends it."""
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        if not value:
            break
        value = value[0]
    return tuple(shape)


def type_name(value: Any) -> str:
    """Return TensorFlow Serving's name for the kind of a JSON value, for error messages."""
    if isinstance(value, bool):
        return "True" if value else "False"
    return _TYPE_NAMES[type(value)]


def _leaves(value: Any, shape: tuple[int, ...]) -> Iterator[Any]:
    """Yield the elements in order; raise InvalidArgumentError if a list does not fit `shape`."""
    rank = len(shape)
    stack: list[Iterator[Any]] = [iter((value,))]
    while stack:
        level = len(stack) - 1
        for item in stack[-1]:
            if not isinstance(item, list):
                if level != rank:
                    raise InvalidArgumentError(
                        f"JSON Value: {debug_string(item)} found at incorrect level: {level + 1} "
                        f"in the JSON DOM. Expected at level: {rank}"
                    )
                yield item
                continue
            if level >= rank:
                raise InvalidArgumentError(
                    f"Encountered list at unexpected level: {level} expected < {rank}"
                )
            if len(item) != shape[level]:
                raise InvalidArgumentError(
                    f"Encountered list at unexpected size: {len(item)} at level: {level} "
                    f"expected size: {shape[level]}"
                )
            stack.append(iter(item))
            break
        else:
            stack.pop()


def _regular_strings(value: Any) -> np.ndarray | None:
    """Convert lists of short strings at once; return None if there is anything else in them."""
    regular = _regular(value)
    if regular is None:
        return None
    flat, shape = regular
    kinds = set(map(type, flat))
    array = np.empty(len(flat), object)
    if kinds == {str}:
        array[:] = [text.encode("utf-8", "surrogateescape") for text in flat]
    elif kinds <= {str, dict} and all(type(item) is str or is_base64(item) for item in flat):
        array[:] = list(map(_string_element, flat))
    else:
        return None
    return array.reshape(shape)


def _empty_shape(value: Any) -> tuple[int, ...] | None:
    """Return the shape of a regular value without elements; None of any other."""
    level = [value]
    shape: list[int] = []
    while set(map(type, level)) == {list} and len(shape) < MAX_RANK:
        sizes = set(map(len, level))
        if len(sizes) > 1:
            return None
        shape.append(sizes.pop())
        if not shape[-1]:
            return tuple(shape)
        level = list(itertools.chain.from_iterable(level))
    return None


def _string_element(value: Any) -> bytes:
    if isinstance(value, LargeText):
        return value.content()
    if isinstance(value, str):
        return text_bytes(value)
    if isinstance(value, dict):
        if not is_base64(value):
            raise InvalidArgumentError(
                f"JSON Value: {debug_string(value)} not formatted correctly for base64 data"
            )
        return decode_base64(value)
    raise _type_error(value, DataType.STRING)


def _is_number(value: Any) -> bool:
    return type(value) is float or type(value) is int


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _type_error(value: Any, data_type: DataType) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"JSON Value: {debug_string(value)} Type: {type_name(value)} "
        f"is not of expected type: {data_type.tf_name}"
    )


def _as_float(array: np.ndarray, data_type: DataType) -> np.ndarray:
    """Convert to `data_type` through float64; a value beyond the range of float32 becomes infinite.

    JSON numbers are float64.
    """
    array = array.astype(np.float64, copy=False)
    if data_type is DataType.DOUBLE:
        return array
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def _flat_array(values: list[Any], data_type: DataType) -> np.ndarray:
    if data_type in _FLOATS:
        return _as_float(np.array(values, np.float64), data_type)
    if data_type in _SMALL:
        return np.array(values, np.int64).astype(data_type.numpy)  # wraps if out of range
    array = np.empty(len(values), data_type.numpy)
    array[:] = values
    return array
