"""Conversion of numbers to text and back: AsString, StringToNumber.

TF: tensorflow/core/kernels/as_string_op.cc, string_to_number_op.cc
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import COMPLEX, DataType
from runtime.framework.number_parsing import parse_number, parse_plain_numbers
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import items_of
from runtime.framework.string_tensor import string_tensor as as_string_tensor
from runtime.framework.tensor_text import readable
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box

_FILLS = ("", " ", "+", "-", "0", "#")


def as_string(
    input: TensorValue,
    *,
    T: DataType,  # noqa: N803
    precision: int,
    scientific: bool,
    shortest: bool,
    width: int,
    fill: str,
) -> np.ndarray:
    """AsString: return every element as text, formatted as C's printf formats it."""
    _check_format(T, precision, scientific, shortest, fill)
    padding = fill + (str(width) if width > -1 else "")
    items = box(input).ravel().tolist()
    check_allocation((len(items), max(width, precision, 0)), np.uint8)
    if T is DataType.VARIANT:
        names = [type(item).__name__ for item in items]
        written = [f"Variant<type: tensorflow::{name} value: {name}>".encode() for name in names]
    elif T is DataType.BOOL:
        written = [b"true" if item else b"false" for item in items]
    elif T is DataType.STRING and width <= 0:
        written = items
    elif T is DataType.STRING:
        flags = padding.replace("0", "", 1) if fill == "0" else padding
        digits = f".{precision}" if precision > -1 else ""
        one_text = f"%{flags}{digits}s".encode()
        written = [one_text % item for item in items]
    elif T.is_integer:
        signed = T.name.startswith("INT")
        flags = padding if signed or fill not in ("+", " ") else padding[1:]
        written = [f"%{flags}d".encode() % int(item) for item in items]
    else:
        letter = "e" if scientific else "g" if shortest else "f"
        digits = f".{precision}" if precision > -1 else ""
        one = _real_writer(padding, digits + letter)
        written = [one(item) for item in items] if T not in COMPLEX else [
            b"(" + one(item.real) + b"," + one(item.imag) + b")" for item in items
        ]  # fmt: skip
    return as_string_tensor(written, box(input).shape)


def _real_writer(padding: str, rest: str) -> Callable[[float], bytes]:
    finite = f"%{padding}{rest}".encode()
    # printf never fills infinities and NaN with zeros.
    words = f"%{padding.removeprefix('0')}s".encode()
    sign = {"+": b"+", " ": b" "}.get(padding[:1], b"")

    def write(value: float) -> bytes:
        if math.isfinite(value):
            return finite % value
        word = b"nan" if math.isnan(value) else b"inf"
        return words % ((b"-" if math.copysign(1.0, value) < 0 else sign) + word)

    return write


def _check_format(
    data_type: DataType, precision: int, scientific: bool, shortest: bool, fill: str
) -> None:
    is_real = data_type.is_floating or data_type in COMPLEX or data_type is DataType.STRING
    if not is_real and (scientific or shortest):
        raise InvalidArgumentError(
            f"scientific and shortest format not supported for datatype {data_type.tf_name}"
        )
    if not is_real and precision > -1:
        raise InvalidArgumentError(f"precision not supported for datatype {data_type.tf_name}")
    if len(fill) > 1:
        raise InvalidArgumentError("Fill string must be one or fewer characters")
    if fill not in _FILLS:
        raise InvalidArgumentError(f'Fill argument not supported: "{fill}"')
    if scientific and shortest:
        raise InvalidArgumentError("Cannot select both scientific and shortest notation")


def string_to_number(string_tensor: np.ndarray, *, out_type: DataType) -> np.ndarray:
    """StringToNumber: return the number that each string contains, as `out_type`.

    Raises InvalidArgumentError if a string is not a number.
    """
    items = items_of(string_tensor)
    numbers = np.empty(len(items), out_type.numpy)
    with np.errstate(over="ignore"):  # 1e39 becomes infinity in float32
        plain = parse_plain_numbers(items, out_type)
        if plain is not None:
            return plain.reshape(np.shape(np.asarray(string_tensor, object)))
        for index, text in enumerate(items):
            try:
                numbers[index] = parse_number(text, out_type)
            except (ValueError, OverflowError):
                raise InvalidArgumentError(
                    f"StringToNumberOp could not correctly convert string: {readable(text)}"
                ) from None
    return numbers.reshape(np.shape(np.asarray(string_tensor, object)))


KERNELS = (
    KernelDef("AsString", as_string),
    KernelDef("StringToNumber", string_to_number),
)
