"""Read vocabulary files, in which columns of text lines are the keys and values of a table.

TF: tensorflow/core/kernels/lookup_util.cc (TextFileLineIterator)
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence

import numpy as np

from runtime.foundation.errors import (
    InvalidArgumentError,
    OutOfRangeError,
)
from runtime.framework.dtypes import DataType
from runtime.framework.io.file_errors import file_error

# Column indices that have a special meaning.
WHOLE_LINE = -2
LINE_NUMBER = -1

Column = tuple[int, DataType]


def read_text_file(
    path: str, columns: Sequence[Column], vocab_size: int, delimiter: bytes, offset: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys and values in the first `vocab_size` lines; −1 means all lines.

    `offset` is added to line numbers. Raises InvalidArgumentError, with TensorFlow's message, if a
    line is invalid; OutOfRangeError if the file is empty; NotFoundError if there is no such file.
    """
    for what, (index, data_type) in zip(("Key", "Value"), columns, strict=True):
        _check_column(what, index, data_type)
    lines = _lines(path)
    if vocab_size >= 0:
        if not vocab_size:
            raise OutOfRangeError(f"Finished reading 0 of lines from {path}")
        if len(lines) < vocab_size:
            raise InvalidArgumentError(
                f"Invalid vocab_size in {path}: expected {vocab_size} but got {len(lines)}"
            )
        lines = lines[:vocab_size]
    needed = max(index for index, _ in columns) + 1
    _check_lines(lines, path, needed, delimiter)
    split = [line.split(delimiter) for line in lines] if needed > 0 else []
    keys, values = (_column(column, lines, split, offset) for column in columns)
    return keys, values


def _check_column(what: str, index: int, data_type: DataType) -> None:
    if index == LINE_NUMBER and data_type is not DataType.INT64:
        raise InvalidArgumentError(
            f"{what} index for line number requires table {what.lower()} dtype of int64, "
            f"got {data_type.tf_name}"
        )


def _lines(path: str) -> list[bytes]:
    try:
        content = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise file_error(error, path) from None
    if not content:
        raise OutOfRangeError("Read less bytes than requested")
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def _check_lines(lines: Sequence[bytes], path: str, needed: int, delimiter: bytes) -> None:
    position = 0
    for number, line in enumerate(lines):
        position += len(line) + 1
        if not line:
            raise InvalidArgumentError(
                f"Invalid content in {path}: empty line found at position {position}."
            )
        found = line.count(delimiter) + 1
        if found < needed:
            raise InvalidArgumentError(
                f"Invalid number of columns in {path} line {number} ({_show(line)}) : "
                f"expected at least {needed} got {found}"
            )


_PARSERS: dict[DataType, tuple[Callable[[bytes], int | float], str]] = {
    DataType.INT32: (int, "int32"),
    DataType.INT64: (int, "int64"),
    DataType.FLOAT: (float, "float"),
    DataType.DOUBLE: (float, "double"),
}


def _column(
    column: Column, lines: Sequence[bytes], split: Sequence[Sequence[bytes]], offset: int
) -> np.ndarray:
    index, data_type = column
    if index == LINE_NUMBER:
        return np.arange(len(lines), dtype=np.int64) + offset
    array = np.empty(len(lines), data_type.numpy)
    fields = lines if index == WHOLE_LINE else [parts[index] for parts in split]
    if data_type is DataType.STRING:
        array[:] = fields
        return array
    if data_type not in _PARSERS:
        raise InvalidArgumentError(f"Data type {data_type.tf_name} not supported.")
    parse, name = _PARSERS[data_type]
    for number, field in enumerate(fields):
        try:
            array[number] = parse(field)
        except (ValueError, OverflowError):
            raise InvalidArgumentError(
                f"Field {_show(field)} in line {number} is not a valid {name}."
            ) from None
    return array


def _show(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")
