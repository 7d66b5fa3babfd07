"""Writing of TFRecord files.

TF: tsl/lib/io/record_writer.cc
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Iterable

from runtime.framework.io.masked_crc32c import crc32c, mask

_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "ZLIB": zlib.compress,
    "GZIP": lambda data: gzip.compress(data, mtime=0),
}


def framed(record: bytes) -> bytes:
    """The bytes of one record in a file: length, checksum of the length, data, checksum."""
    length = struct.pack("<Q", len(record))
    checksum = struct.pack("<I", mask(crc32c(length)))
    return b"".join((length, checksum, record, struct.pack("<I", mask(crc32c(record)))))


def tf_record_bytes(records: Iterable[bytes], compression_type: str = "") -> bytes:
    """The contents of a TFRecord file with these records; compression is "", ZLIB or GZIP."""
    return _COMPRESS[compression_type](b"".join(framed(record) for record in records))
