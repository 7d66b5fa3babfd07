"""Records of CSV files: their fields do not depend on how the file is read."""

from __future__ import annotations

import gzip
import io
import pathlib
import zlib
from typing import IO

import pytest

from runtime.foundation.errors import DataLossError, ResourceExhaustedError
from runtime.framework.allocation import set_tensor_limit, tensor_limit
from runtime.framework.io import csv_records
from runtime.framework.io.csv_records import UNCLOSED_QUOTE, CsvRecord, CsvRecords
from runtime.framework.io.record_files import open_records

TEXT = b'a,"b ""c""\r\nd",\r\ne\n\n"f",g\rh"i,j\n"k"l,"m\n'


def records_of(file: IO[bytes], delimiter: bytes = b",", quotes: bool = True) -> list[CsvRecord]:
    records = CsvRecords(file, delimiter, quotes)
    found = []
    while (record := records.next_record()) is not None:
        found.append(record)
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 1 << 18])
def test_records_do_not_depend_on_the_blocks(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "_BLOCK_BYTES", size)
    assert records_of(io.BytesIO(TEXT)) == [
        CsvRecord([b"a", b'b "c"\r\nd', b""]),
        CsvRecord([b"e"]),
        CsvRecord([b""]),
        CsvRecord([b"f", b"g"]),
        CsvRecord([], "Unquoted fields cannot have quotes inside"),
        CsvRecord([], UNCLOSED_QUOTE),
    ]


@pytest.mark.parametrize("size", [1, 4, 1 << 18])
def test_reading_goes_on_at_an_offset(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "_BLOCK_BYTES", size)
    expected = records_of(io.BytesIO(TEXT))
    records = CsvRecords(io.BytesIO(TEXT), b",", True)
    for number in range(len(expected) + 1):
        file = io.BytesIO(TEXT)
        file.seek(records.offset)
        assert records_of(file) == expected[number:]
        records.next_record()


def test_a_long_field_of_quotes_is_one_field() -> None:
    quotes = 1 << 20
    (record,) = records_of(io.BytesIO(b'"' + b'""' * quotes + b'",x'))
    assert record == CsvRecord([b'"' * quotes, b"x"])


def test_a_record_larger_than_a_tensor_is_refused() -> None:
    limit = tensor_limit()
    set_tensor_limit(1 << 20)
    try:
        records = CsvRecords(io.BytesIO(b"a" * (4 << 20)), b",", True)
        with pytest.raises(ResourceExhaustedError, match="a tensor takes at most 1048576"):
            records.next_record()
    finally:
        set_tensor_limit(limit)


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_damaged_compressed_data_is_data_loss(compression: str, tmp_path: pathlib.Path) -> None:
    path = f"{tmp_path}/table"
    pack = gzip.compress if compression == "GZIP" else zlib.compress
    data = bytearray(pack(b"some,words\n" * 1000))
    data[20:40] = b"\xff" * 20
    with open(path, "wb") as file:
        file.write(data)
    with pytest.raises(DataLossError), open_records(path, compression) as file:
        records_of(file)
