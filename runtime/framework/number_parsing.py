"""Parsing of numbers in text, with the syntax that TensorFlow's kernels accept.

TF: tensorflow/core/lib/strings/numbers.cc (safe_strto32 … safe_strtod)
"""

from __future__ import annotations

import re

import numpy as np

from runtime.framework.dtypes import DataType

_INTEGER = re.compile(rb"[ \t\n\v\f\r]*([+-]?[0-9]+)[ \t\n\v\f\r]*")
_REAL = re.compile(
    rb"[ \t\n\v\f\r]*("
    rb"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)"
    rb"|([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?)"
    rb")[ \t\n\v\f\r]*",
    re.IGNORECASE,
)
# If a short number has only these characters, Python and TensorFlow parse it to the same value.
_PLAIN = b"0123456789+-.eE"
_PLAIN_LENGTH = 18  # maximum characters of a short number; such an integer fits in 64 bits
_MAX_INTEGER_TEXT = 1000  # characters, including leading zeros; limits the time of parsing


def parse_number(text: bytes, data_type: DataType) -> int | float:
    """Parse the number in `text`.

    Raises ValueError if `text` is not a number, or if `data_type` is an integer type that can't
    hold the number.
    """
    if data_type.is_integer:
        return _parse_integer(text, data_type)
    match = _REAL.fullmatch(text)
    if match is None:
        raise ValueError("not a number")
    return float.fromhex(match[2].decode()) if match[2] else float(match[1])


def parse_plain_numbers(items: list[bytes], data_type: DataType) -> np.ndarray | None:
    """Parse `items`, n texts, at once into an array `[n]`, if all are short plain numbers.

    Return None if an item has a character that is not in `_PLAIN`, is longer than `_PLAIN_LENGTH`,
    is not a number or is out of range; the caller must then call `parse_number` for each item.
    """
    if b"".join(items).translate(None, _PLAIN) or max(map(len, items), default=0) > _PLAIN_LENGTH:
        return None
    try:
        numbers = np.array(list(map(int if data_type.is_integer else float, items)))
    except ValueError:
        return None
    if data_type.is_integer and items:
        limits = np.iinfo(data_type.numpy)
        if numbers.min() < limits.min or numbers.max() > limits.max:
            return None
        if limits.min == 0 and any(item[:1] == b"-" for item in items):
            return None
    return numbers.astype(data_type.numpy)


def _parse_integer(text: bytes, data_type: DataType) -> int:
    match = _INTEGER.fullmatch(text)
    if match is None or len(text) > _MAX_INTEGER_TEXT:
        raise ValueError("not an integer")
    value = int(match[1])
    limits = np.iinfo(data_type.numpy)
    if not limits.min <= value <= limits.max or (limits.min == 0 and match[1][:1] == b"-"):
        raise ValueError("out of range")
    return value
