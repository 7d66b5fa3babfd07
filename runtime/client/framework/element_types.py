"""Conversion of dtype arguments to DataType, and of Python values to arrays.

TF: tensorflow/python/framework/dtypes.py (as_dtype), tensor_util.py, constant_op.py
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType, from_name, from_number, from_numpy

_INT32_LIMITS = np.iinfo(np.int32)
_PYTHON_TYPES: dict[type, DataType] = {
    bool: DataType.BOOL,
    int: DataType.INT32,
    float: DataType.FLOAT,
    complex: DataType.COMPLEX128,
    str: DataType.STRING,
    bytes: DataType.STRING,
}
_TEXT = (str, bytes)


class HasTypeNumber(Protocol):
    """TensorFlow's DType, which the front end accepts without importing TensorFlow."""

    @property
    def as_datatype_enum(self) -> int:
        """The number of the DataType in TensorFlow's enum."""


# A dtype argument: a DataType, its number or name, or a Python, numpy or TensorFlow type.
DTypeLike: TypeAlias = DataType | int | str | type | np.dtype | HasTypeNumber


def as_dtype(given: object) -> DataType:
    """Convert a dtype argument to a DataType.

    `given` may be a DataType, its number or name, or a Python, numpy or TensorFlow type. Raises
    TypeError for anything else.
    """
    if isinstance(given, DataType):
        return given
    if isinstance(given, type) and given in _PYTHON_TYPES:
        return _PYTHON_TYPES[given]
    named: Any = getattr(given, "as_datatype_enum", given)  # set by TensorFlow's DType
    try:
        if isinstance(named, int):
            return from_number(named)[0]
        return from_name(named) if isinstance(named, str) else from_numpy(np.dtype(named))
    except (InvalidArgumentError, TypeError):
        raise TypeError(f"Cannot convert value {given!r} to a TensorFlow DType.") from None


def as_array(value: object, dtype: DataType | None = None) -> np.ndarray:
    """Convert a Python value to an array of `dtype` (None: the type that fits the value).

    That type is int32 (int64 if a number needs it), float32, bool, complex128 or bytes; numpy
    values keep their type. Raises TypeError if the value has no element type or is not of the kind
    of `dtype`, ValueError for None and for ragged lists.
    """
    if value is None:
        raise ValueError("None values not supported.")
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if dtype is None or array.dtype.kind in "SUO":
            return _of_numpy(array, dtype)
        return array if array.dtype == dtype.numpy else array.astype(dtype.numpy)
    leaves = _leaves(value)
    if dtype is None:
        dtype = _infer(value, leaves)
    else:
        _check_kind(leaves, dtype)
    if dtype is DataType.STRING:
        return as_strings(value)
    # A Python int that the type can't hold wraps, as in TensorFlow's constants.
    wide = np.array(value) if dtype.is_integer else value
    return np.asarray(wide).astype(dtype.numpy)


def as_strings(value: object) -> np.ndarray:
    """Convert strings to an object array of bytes: text is encoded as UTF-8.

    Zero bytes at the end of a string are kept.
    """
    array = np.array(value, object)
    flat = np.empty(array.size, object)
    flat[:] = [item.encode() if isinstance(item, str) else item for item in array.ravel()]
    return flat.reshape(array.shape)


def _of_numpy(array: np.ndarray, dtype: DataType | None) -> np.ndarray:
    if array.dtype.kind not in "SUO":
        from_numpy(array.dtype)  # raises InvalidArgumentError for a type that no tensor has
        return array
    if dtype not in (None, DataType.STRING):
        raise TypeError(f"Expected {dtype.name_on_wire}, but got an array of {array.dtype}.")
    if not all(isinstance(item, _TEXT) for item in array.ravel().tolist()):
        raise _no_element_type(array)
    return as_strings(array.tolist())


def _leaves(value: object) -> list[object]:
    if not isinstance(value, list | tuple | range):
        return [value]
    found: list[object] = []
    for each in value:
        found += _leaves(each)
    return found


def _infer(value: object, leaves: list[object]) -> DataType:
    if not leaves:
        return DataType.FLOAT
    types = {_type_of(leaf, value) for leaf in leaves}
    if len(types) == 1:
        return types.pop()
    if DataType.STRING in types or DataType.BOOL in types:
        raise _no_element_type(value)
    # A floating-point type is preferred to an integer type; otherwise numpy's promotion applies.
    return as_dtype(np.result_type(*(data_type.numpy for data_type in types - _weak(types))))


def _weak(types: set[DataType]) -> set[DataType]:
    """Return the integer types in `types` if there are also floating-point ones, else no type.

    They are ignored, because they must not make the floating-point type wider.
    """
    floating = {data_type for data_type in types if not data_type.is_integer}
    return types - floating if floating else set()


def _type_of(leaf: object, value: object) -> DataType:
    if isinstance(leaf, np.ndarray | np.generic):
        return from_numpy(leaf.dtype)
    found = _PYTHON_TYPES.get(type(leaf))
    if found is None:
        raise _no_element_type(value)
    if (
        found is DataType.INT32
        and isinstance(leaf, int)
        and not _INT32_LIMITS.min <= leaf <= _INT32_LIMITS.max
    ):
        if not -(1 << 63) <= leaf < 1 << 63:
            raise _no_element_type(value)
        return DataType.INT64
    return found


def _check_kind(leaves: list[object], dtype: DataType) -> None:
    for leaf in leaves:
        if isinstance(leaf, np.ndarray | np.generic):
            continue
        if not isinstance(leaf, _allowed(dtype)) or (
            isinstance(leaf, bool) and dtype is not DataType.BOOL
        ):
            if leaf is None:
                raise ValueError("None values not supported.")
            raise TypeError(
                f"Expected {dtype.name_on_wire}, but got {leaf} of type '{type(leaf).__name__}'."
            )


def _allowed(dtype: DataType) -> tuple[type, ...]:
    if dtype is DataType.BOOL:
        return (bool,)
    if dtype is DataType.STRING:
        return _TEXT
    if dtype.numpy.kind in "iu":
        return (int,)
    return (int, float, complex) if dtype.numpy.kind == "c" else (int, float)


def _no_element_type(value: object) -> TypeError:
    return TypeError(
        f"Failed to convert elements of {value} to Tensor. Consider casting elements to a "
        "supported type."
    )
