"""The kernel of DecodeCSV, which converts lines of delimited fields to columns.

TF: tensorflow/core/kernels/decode_csv_op.cc
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.attr_value import raw_bytes
from runtime.framework.dtypes import DataType
from runtime.framework.number_parsing import parse_number, parse_plain_numbers
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import as_strings
from runtime.framework.tensor_text import readable

_QUOTE = ord('"')
_LINE_ENDS = b"\r\n"


def decode_csv(
    records: np.ndarray,
    *record_defaults: np.ndarray,
    OUT_TYPE: Sequence[DataType],  # noqa: N803
    field_delim: str,
    use_quote_delim: bool,
    na_value: str,
    select_cols: Sequence[int],
) -> list[np.ndarray]:
    """DecodeCSV: return one tensor, of the shape of `records`, for each column.

    If `select_cols` is not empty, only these columns are returned.
    """
    delimiter = raw_bytes(field_delim)
    if len(delimiter) != 1:
        raise InvalidArgumentError("field_delim should be only 1 char")
    _check_selection(select_cols, len(OUT_TYPE))
    defaults = [
        _default(given, index, kind)
        for index, (given, kind) in enumerate(zip(record_defaults, OUT_TYPE, strict=True))
    ]
    lines = as_strings(records)
    rows = []
    for number, line in enumerate(lines.ravel().tolist()):
        check_task()
        fields = _split(line, delimiter[0], use_quote_delim)
        if select_cols:
            fields = [fields[column] for column in select_cols if column < len(fields)]
        if len(fields) != len(OUT_TYPE):
            raise InvalidArgumentError(
                f"Expect {len(OUT_TYPE)} fields but have {len(fields)} in record {number}"
            )
        rows.append(fields)
    missing = (b"", raw_bytes(na_value))
    return [
        _column([row[index] for row in rows], index, kind, default, missing).reshape(lines.shape)
        for index, (kind, default) in enumerate(zip(OUT_TYPE, defaults, strict=True))
    ]


def _default(given: np.ndarray, index: int, kind: DataType) -> np.ndarray:
    default = np.asarray(given, kind.numpy)
    if default.ndim > 1:
        raise InvalidArgumentError(
            f"record defaults should be either a scalar or vector, got rank {default.ndim}"
        )
    if default.size > 1:
        raise InvalidArgumentError(
            f"There should only be 1 default per field but field {index} has {default.size}"
        )
    return default


def _check_selection(select_cols: Sequence[int], columns: int) -> None:
    if select_cols and len(select_cols) != columns:
        raise InvalidArgumentError("select_cols should match output size")
    if any(after <= before for before, after in itertools.pairwise(select_cols)):
        raise InvalidArgumentError("select_cols should be strictly increasing indices")
    if select_cols and select_cols[0] < 0:
        raise InvalidArgumentError("select_cols should be non-negative indices")


def _split(line: bytes, delimiter: int, use_quotes: bool) -> list[bytes]:
    """Split one line into fields."""
    if line and not any(byte in line for byte in (*_LINE_ENDS, _QUOTE)):
        return line.split(bytes((delimiter,)))
    fields: list[bytes] = []
    position = 0
    while position < len(line):
        if line[position] in _LINE_ENDS:
            position += 1
            continue
        if use_quotes and line[position] == _QUOTE:
            field, position = _quoted_field(line, position + 1, delimiter)
        else:
            end = line.find(delimiter, position)
            end = len(line) if end < 0 else end
            field = line[position:end]
            if any(byte in field for byte in _LINE_ENDS) or (use_quotes and _QUOTE in field):
                raise InvalidArgumentError("Unquoted fields cannot have quotes/CRLFs inside")
            position = end + 1
        fields.append(field)
    if line and line[-1] == delimiter:
        fields.append(b"")
    return fields


def _quoted_field(line: bytes, position: int, delimiter: int) -> tuple[bytes, int]:
    """Read the quoted field that begins at `position`.

    Return (content, position of the next field).
    """
    field = bytearray()
    while True:
        quote = line.find(_QUOTE, position)
        if quote < 0:
            raise InvalidArgumentError(
                "Quoted field has to end with quote followed by delim or end"
            )
        field += line[position:quote]
        if quote + 1 == len(line) or line[quote + 1] == delimiter:
            return bytes(field), quote + 2
        if line[quote + 1] != _QUOTE:
            raise InvalidArgumentError("Quote inside a string has to be escaped by another quote")
        field.append(_QUOTE)
        position = quote + 2


def _column(
    fields: Sequence[bytes],
    index: int,
    kind: DataType,
    default: np.ndarray,
    missing: tuple[bytes, bytes],
) -> np.ndarray:
    column = np.empty(len(fields), kind.numpy)
    with np.errstate(over="ignore"):  # 1e39 becomes infinity in float32
        plain = parse_plain_numbers([*fields], kind) if kind is not DataType.STRING else None
        if plain is not None and missing[1] not in fields:
            return plain
        for record, field in enumerate(fields):
            if field in missing:
                if not default.size:
                    raise InvalidArgumentError(
                        f"Field {index} is required but missing in record {record}!"
                    )
                column[record] = default.item()
            elif kind is DataType.STRING:
                column[record] = field
            else:
                column[record] = _number(field, kind, index, record)
    return column


def _number(field: bytes, kind: DataType, index: int, record: int) -> int | float:
    try:
        return parse_number(field, kind)
    except (ValueError, OverflowError):
        raise InvalidArgumentError(
            f"Field {index} in record {record} is not a valid {kind.tf_name}: {readable(field)}"
        ) from None


KERNELS = (KernelDef("DecodeCSV", decode_csv),)
