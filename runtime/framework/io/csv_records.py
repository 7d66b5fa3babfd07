"""Read the records of a CSV file, one after the other, with the rules of CSVDataset.

A record ends at a line feed, a carriage return, both, or the end of the file. A field that begins
with a quote may contain delimiters and line ends; two quotes in it are one. DecodeCSV, whose input
is one record per string, has stricter rules.

TF: tensorflow/core/kernels/data/experimental/csv_dataset_op.cc
"""

from __future__ import annotations

import dataclasses
import re
import zlib
from typing import IO

from runtime.foundation.errors import DataLossError, ResourceExhaustedError
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import tensor_limit

_BLOCK_BYTES = 1 << 18  # what is read at least, so that few records lie in two blocks
_QUOTE = b'"'
_LINE_ENDS = b"\r\n"
# What a quoted field may have inside; possessive, so that a long field takes no memory.
_PAIRS = re.compile(rb'(?:[^"]++|"")*+')
_NO_QUOTE = re.compile(rb'[^"]*+')  # where the delimiter is a quote, a pair ends the field
UNCLOSED_QUOTE = "Reached end of file without closing quoted field in record"
_BARE_QUOTE = "Unquoted fields cannot have quotes inside"
_UNESCAPED_QUOTE = "Quote inside a string has to be escaped by another quote"


@dataclasses.dataclass(frozen=True, slots=True)
class CsvRecord:
    """The fields of a record; of a malformed record, those before the first malformed field."""

    fields: list[bytes]
    problem: str = ""  # why the field after the last of `fields` is malformed


class CsvRecords:
    """The records of an open file, which must be at a record's begin; not thread-safe.

    After a malformed record, `next_record` continues with the record after it.
    """

    def __init__(self, file: IO[bytes], delimiter: bytes, use_quotes: bool) -> None:
        self._file = file
        self._use_quotes = use_quotes
        self._delimiter = delimiter
        specials = _LINE_ENDS + (_QUOTE if use_quotes else b"")
        # If the delimiter is one of the other special characters, only `_field` has the right
        # order of the rules.
        self._may_split = delimiter not in specials
        self._special = re.compile(b"[" + specials + b"]")
        self._field_end = re.compile(b"[" + re.escape(delimiter) + _LINE_ENDS + b"]")
        self._data = b""
        self._position = 0  # in `_data`
        self._read = 0  # bytes read from the file before `_data`

    @property
    def offset(self) -> int:
        """The number of bytes from where reading began to the next record."""
        return self._read + self._position

    def next_record(self) -> CsvRecord | None:
        """Return the next record, or None at the end of the file.

        Raises DataLossError if compressed data is damaged, ResourceExhaustedError if a record is
        larger than `tensor_limit()`.
        """
        if 2 * self._position > len(self._data):  # so that more was read than is copied
            self._read += self._position
            self._data, self._position = self._data[self._position :], 0
        start = self._position
        if not self._has(start):
            return None
        if self._may_split:
            end = self._search(self._special, start)
            if end is None or self._data[end : end + 1] != _QUOTE:
                end = len(self._data) if end is None else end
                fields = self._data[start:end].split(self._delimiter)
                self._end_record(end)
                return CsvRecord(fields)
        return self._by_field()

    def _has(self, position: int) -> bool:
        """Whether `_data` has a byte at `position`, after another block was read if necessary."""
        while position >= len(self._data):
            if not self._read_block():
                return False
        return True

    def _read_block(self) -> bool:
        check_task()
        held = len(self._data) - self._position
        if held > tensor_limit():
            raise ResourceExhaustedError(
                f"A record of more than {held} bytes; a tensor takes at most {tensor_limit()}"
            )
        try:
            # as many as there are, so that a long record is not copied for every block of it
            block = self._file.read(max(len(self._data), _BLOCK_BYTES))
        except (OSError, EOFError, zlib.error) as error:
            raise DataLossError(f"corrupted record at {self.offset}: {error}") from None
        self._data += block
        return bool(block)

    def _search(self, pattern: re.Pattern[bytes], start: int) -> int | None:
        """Return the first position from `start` on that `pattern` matches, or None."""
        while (match := pattern.search(self._data, start)) is None:
            start = max(start, len(self._data))
            if not self._has(start):
                return None
        return match.start()

    def _end_record(self, end: int) -> None:
        """Set the position behind the line end at `end`, which may be the end of the file."""
        self._position = min(end + 1, len(self._data))
        if self._data[end : end + 1] == b"\r" and self._has(end + 1):
            self._position += self._data[end + 1] in b"\n"

    def _by_field(self) -> CsvRecord:
        fields: list[bytes] = []
        problem = ""
        while True:
            check_task()
            is_quoted = self._use_quotes and self._data[self._position : self._position + 1] == b'"'
            field, found, end = self._quoted() if is_quoted else self._unquoted()
            problem = problem or found
            if not problem:
                fields.append(field)
            if self._data[end : end + 1] != self._delimiter:
                self._end_record(end)
                return CsvRecord(fields, problem)
            self._position = end + 1
            if not self._has(self._position):
                fields += [] if problem else [b""]
                return CsvRecord(fields, problem)

    def _unquoted(self) -> tuple[bytes, str, int]:
        """Return the field at the position, what is wrong with it, and the position of its end."""
        end = self._search(self._field_end, self._position)
        end = len(self._data) if end is None else end
        field = self._data[self._position : end]
        return field, _BARE_QUOTE if self._use_quotes and _QUOTE in field else "", end

    def _quoted(self) -> tuple[bytes, str, int]:
        """Return the quoted field at the position, as `_unquoted` does."""
        problem = ""
        inside = _NO_QUOTE if self._delimiter == _QUOTE else _PAIRS
        position = self._position + 1
        while True:
            match = inside.match(self._data, position)
            position = position if match is None else match.end()
            if position == len(self._data):
                if self._has(position):
                    continue
                return b"", UNCLOSED_QUOTE, position
            end = position + 1  # behind a quote that is not the first of a pair, if `end` is known
            if not self._has(end) or self._data[end] in self._delimiter + _LINE_ENDS:
                field = self._data[self._position + 1 : position]
                return field.replace(b'""', b'"'), problem, end
            if self._data[end] not in _QUOTE:
                check_task()
                problem = _UNESCAPED_QUOTE
            position = end + 1
