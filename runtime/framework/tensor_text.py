"""Tensors as text, for Assert, Print, StringFormat and error messages.

TF: tensorflow/core/framework/tensor.cc (Tensor::SummarizeValue), strings/numbers.cc
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from runtime.framework.dtypes import COMPLEX, DataType
from runtime.framework.shapes import shape_text

# (few, many) significant digits of a floating-point type. Any number of `few` digits keeps its
# digits when it is stored as this type and printed again (C's DBL_DIG, FLT_DIG); `many` digits
# identify every value of the type.
_DIGITS = {DataType.DOUBLE: (15, 17)}
_FLOAT_DIGITS = (6, 9)

_ESCAPES = {
    ord("\n"): rb"\n",
    ord("\r"): rb"\r",
    ord("\t"): rb"\t",
    ord('"'): rb"\"",
    ord("'"): rb"\'",
    ord("\\"): rb"\\",
}


def escape(text: bytes) -> bytes:
    """Replace control characters, quotes and backslashes by C escapes; keep other bytes."""
    if text.isalnum():
        return text
    return b"".join(
        _ESCAPES.get(byte) or (b"\\%03o" % byte if byte < 32 or byte == 127 else bytes((byte,)))
        for byte in text
    )


def escape_bytes(text: bytes) -> str:
    """Return `escape(text)` as str, with every byte above 127 replaced by an octal escape too."""
    return "".join(f"\\{byte:03o}" if byte > 127 else chr(byte) for byte in escape(text))


def float_text(value: float, data_type: DataType) -> str:
    """Return the value as text, with more digits only if fewer would parse to another value."""
    if math.isnan(value) or math.isinf(value):
        return str(value)
    few, many = _DIGITS.get(data_type, _FLOAT_DIGITS)
    short = f"{value:.{few}g}"
    if data_type.numpy.type(short) == data_type.numpy.type(value):
        return short
    return f"{value:.{many}g}"


# Types whose tensors are written as one flat row of elements: `?` for each number, `<type>` for
# each object.
_TYPES_WITHOUT_TEXT = {
    *COMPLEX,
    DataType.QINT32,
    DataType.FLOAT8_E4M3FNUZ,
    DataType.FLOAT8_E5M2FNUZ,
    DataType.RESOURCE,
    DataType.VARIANT,
}


def _flat_text(array: np.ndarray, limit: int, is_object: bool) -> bytes:
    items = array.ravel()[:limit].tolist()
    written = [f"<{type(item).__name__}>".encode() if is_object else b"?" for item in items]
    return b" ".join(written) + (b"..." if limit < array.size else b"")


def _element_writer(data_type: DataType, quoted: bool) -> Callable[[Any], bytes]:
    if data_type is DataType.STRING:
        if quoted:
            return lambda item: b'"' + escape(item) + b'"'
        return escape
    if data_type.is_floating:
        exact = data_type if data_type is DataType.DOUBLE else DataType.FLOAT
        return lambda item: float_text(float(item), exact).encode()
    return lambda item: b"%d" % int(item)


def summarize(value: object, data_type: DataType, max_entries: int) -> bytes:
    """Return the text of the first `max_entries` elements, with brackets around rows.

    If `max_entries` is negative, the text has all elements.

    TF: Tensor::SummarizeValue
    """
    array = _as_array(value)
    limit = array.size if max_entries < 0 else min(max_entries, array.size)
    if data_type in _TYPES_WITHOUT_TEXT:
        return _flat_text(array, limit, array.dtype.hasobject)
    write = _element_writer(data_type, quoted=False)
    if array.ndim == 0:
        return write(array.item()) if limit else b"..."
    written = [write(item) for item in array.ravel()[:limit].tolist()]
    out: list[bytes] = []
    _write_rows(array.shape, 0, iter(written), limit, [0], out)
    if array.size > limit:
        out.append(b"...")
    return b"".join(out)


def debug_text(value: np.ndarray | np.generic, data_type: DataType) -> str:
    """Return the type, shape and first three elements of a tensor as text for error messages."""
    elements = readable(summarize(value, data_type, 3))
    return (
        f"Tensor<type: {data_type.tf_name} shape: {shape_text(np.shape(value))} values: {elements}>"
    )


def _write_rows(
    shape: tuple[int, ...],
    dim: int,
    items: Iterator[bytes],
    limit: int,
    done: list[int],
    out: list[bytes],
) -> None:
    if done[0] >= limit:
        return
    if dim == len(shape) - 1:
        for column in range(shape[dim]):
            if done[0] >= limit:
                if dim:
                    out.append(b"...")
                return
            out.append(b" " + next(items) if column else next(items))
            done[0] += 1
        return
    for _ in range(shape[dim]):
        if done[0] >= limit:
            return
        out.append(b"[")
        _write_rows(shape, dim + 1, items, limit, done, out)
        out.append(b"]")


def summarize_ends(value: object, data_type: DataType, max_entries: int) -> bytes:
    """Return the text of the first and last `max_entries` elements of every dimension.

    If `max_entries` is negative, the text has all elements. Each row is on a separate line, and
    strings are quoted. TF: SummarizeValue with `print_v2`
    """
    array = _as_array(value)
    limit = array.size if max_entries < 0 else min(max_entries, array.size)
    if data_type in _TYPES_WITHOUT_TEXT:
        flat = _flat_text(array, limit, array.dtype.hasobject)
        return b"[" + flat + b"]" if array.ndim else flat
    write = _element_writer(data_type, quoted=True)
    if array.ndim == 0:
        return write(array.item()) if limit else b"..."
    return _summarize_ends(array, 0, limit, write)


def _summarize_ends(
    array: np.ndarray, dim: int, limit: int, write: Callable[[Any], bytes]
) -> bytes:
    is_last = array.ndim == 1
    separator = b" " if is_last else b"\n" * (array.ndim - 1) + b" " * (dim + 1)

    def parts(rows: np.ndarray) -> list[bytes]:
        if is_last:
            return [write(item) for item in rows.tolist()]
        return [_summarize_ends(row, dim + 1, limit, write) for row in rows]

    count = len(array)
    written = separator.join(parts(array[:limit]))
    if count > 2 * limit:
        written += separator + b"..."
    for part in parts(array[max(limit, count - limit) :]):
        written += separator + part
    return b"[" + written + b"]"


def _as_array(value: object) -> np.ndarray:
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    array = np.empty((), object)
    array[()] = value
    return array


def readable(text: bytes) -> str:
    """Decode UTF-8 bytes for a message or a log; replace malformed bytes by escapes."""
    return text.decode("utf-8", "backslashreplace")
