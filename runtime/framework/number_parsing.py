"""Numbers written in text, as TensorFlow's kernels accept them.

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
_MAX_INTEGER_TEXT = 1000  # characters: enough for leading zeros, bounded for what anybody sends


def parse_number(text: bytes, data_type: DataType) -> int | float:
    """The number that `text` writes; ValueError unless `data_type` can hold it."""
    if data_type.is_integer:
        return _parse_integer(text, data_type)
    match = _REAL.fullmatch(text)
    if match is None:
        raise ValueError("not a number")
    return float.fromhex(match[2].decode()) if match[2] else float(match[1])


def _parse_integer(text: bytes, data_type: DataType) -> int:
    match = _INTEGER.fullmatch(text)
    if match is None or len(text) > _MAX_INTEGER_TEXT:
        raise ValueError("not an integer")
    value = int(match[1])
    limits = np.iinfo(data_type.numpy)
    if not limits.min <= value <= limits.max or (limits.min == 0 and match[1][:1] == b"-"):
        raise ValueError("out of range")
    return value
