"""Read record files: text lines, fixed-length records and TFRecords, plain or compressed.

Every reader yields (key, record) pairs. The key is the text that TensorFlow's Reader ops append to
the name of the file: a line number, a record number or an offset.

TF: tensorflow/core/kernels/text_line_reader_op.cc, fixed_length_record_reader_op.cc,
tsl/lib/io/record_reader.cc
"""

from __future__ import annotations

import gzip
import io
import struct
import weakref
import zlib
from collections.abc import Callable, Iterator
from typing import IO

from runtime.foundation.errors import (
    DataLossError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
)
from runtime.framework.allocation import tensor_limit
from runtime.framework.io.bounded_reads import read_at_most
from runtime.framework.io.file_errors import file_error
from runtime.framework.io.masked_crc32c import crc32c, mask
from runtime.framework.io.snappy import decompress_framed

Records = Iterator[tuple[str, bytes]]
_HEADER = struct.Struct("<QI")  # length of the data, masked checksum of the length
_CHECKSUM = struct.Struct("<I")


def open_records(path: str, compression_type: str = "") -> IO[bytes]:
    """Open a file for reading its decompressed bytes; the caller must close it.

    Raises the OpError of `file_error` if the file can't be opened, InvalidArgumentError if `path`
    contains a NUL byte, DataLossError if ZLIB or SNAPPY data is damaged, ResourceExhaustedError if
    SNAPPY data is larger than `tensor_limit()`.
    """
    opener = gzip.open if compression_type == "GZIP" else open
    try:
        file: IO[bytes] = opener(path, "rb")  # type: ignore[assignment] # both read bytes
    except OSError as error:
        raise file_error(error, path) from None
    except ValueError as error:  # open raises it if the path contains a NUL byte
        raise InvalidArgumentError(f"{path!r}; {error}") from None
    if compression_type in _DECOMPRESS:
        with file:
            return io.BytesIO(_DECOMPRESS[compression_type](read_at_most(file, tensor_limit())))
    return file


def _zlib_decompress(data: bytes) -> bytes:
    decompressor = zlib.decompressobj()
    try:
        return decompressor.decompress(data, tensor_limit())
    except zlib.error as error:
        raise DataLossError(f"inflate() failed: {error}") from None


def _snappy_decompress(data: bytes) -> bytes:
    return decompress_framed(data, tensor_limit())


_DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "ZLIB": _zlib_decompress,
    "SNAPPY": _snappy_decompress,
}


def _close_with(file: IO[bytes], records: Records) -> Records:
    """Close `file` when the iterator `records` is deleted, and return `records`.

    This is for a generator that is never started: its `finally` clause, which would close the file,
    does not run.
    """
    weakref.finalize(records, file.close)
    return records


def text_lines(path: str, skip_header_lines: int, compression_type: str = "") -> Records:
    """Yield (line number, line) pairs; numbers start at 1, lines come without their line ends."""
    file = open_records(path, compression_type)
    return _close_with(file, _text_lines(file, skip_header_lines))


def _text_lines(file: IO[bytes], skip_header_lines: int) -> Records:
    with file:
        number = 0
        while line := _checked(lambda: file.readline(tensor_limit()), f"line {number + 1}"):
            number += 1
            if number > skip_header_lines:
                yield str(number), line.removesuffix(b"\n").removesuffix(b"\r")


def fixed_length_records(
    path: str,
    header_bytes: int,
    record_bytes: int,
    footer_bytes: int,
    hop_bytes: int,
    encoding: str,
) -> Records:
    """Yield (record number, record) pairs; a record of `record_bytes` begins every `hop_bytes`.

    Numbers start at 0. `hop_bytes` 0 means `record_bytes`. `encoding` is the compression type, as
    in `open_records`.
    """
    with open_records(path, encoding) as file:
        data = _checked(lambda: read_at_most(file, tensor_limit()), "0")
    end = len(data) - footer_bytes
    starts = range(header_bytes, end - record_bytes + 1, hop_bytes or record_bytes)
    for number, start in enumerate(starts):
        yield str(number), data[start : start + record_bytes]


def whole_file(path: str) -> Records:
    """Yield the whole file as one record, whose key is "".

    Raises ResourceExhaustedError if the file is larger than `tensor_limit()`.
    """
    with open_records(path) as file:
        data = _checked(lambda: read_at_most(file, tensor_limit() + 1), "0")
    if len(data) > tensor_limit():
        raise ResourceExhaustedError(f"{path}; larger than the {tensor_limit()} bytes of a tensor")
    return iter([("", data)])


def tf_records(path: str, compression_type: str) -> Records:
    """Yield (offset, record) pairs of a TFRecord file; offsets count decompressed bytes.

    Raises DataLossError if a record is damaged or truncated, ResourceExhaustedError if a record is
    larger than `tensor_limit()`.
    """
    file = open_records(path, compression_type)
    return _close_with(file, _tf_records(file))


def _tf_records(file: IO[bytes]) -> Records:
    with file:
        offset = 0
        while header := _read(file, _HEADER.size, offset):
            length = _record_length(header, offset)
            data = _read(file, length + _CHECKSUM.size, offset)
            if len(data) != length + _CHECKSUM.size:
                raise _truncated_record_error(offset)
            record, (checksum,) = data[:length], _CHECKSUM.unpack(data[length:])
            if mask(crc32c(record)) != checksum:
                raise DataLossError(f"corrupted record at {offset}")
            yield str(offset), record
            offset += _HEADER.size + len(data)


def _read(file: IO[bytes], count: int, offset: int) -> bytes:
    return _checked(lambda: read_at_most(file, count), str(offset))


def _checked(read: Callable[[], bytes], where: str) -> bytes:
    """Call `read` and return its result.

    Raises DataLossError if compressed data is damaged or the read fails.
    """
    try:
        return read()
    except (OSError, EOFError, zlib.error) as error:
        raise DataLossError(f"corrupted record at {where}: {error}") from None


def _record_length(header: bytes, offset: int) -> int:
    if len(header) != _HEADER.size:
        raise _truncated_record_error(offset)
    length, checksum = _HEADER.unpack(header)
    if mask(crc32c(header[:8])) != checksum:
        raise DataLossError(f"corrupted record at {offset}")
    if length > tensor_limit():
        raise ResourceExhaustedError(
            f"A record of {length} bytes at {offset}; a tensor takes at most {tensor_limit()}"
        )
    return int(length)


def _truncated_record_error(offset: int) -> OpError:
    return DataLossError(f"truncated record at {offset} failed with Read less bytes than requested")
