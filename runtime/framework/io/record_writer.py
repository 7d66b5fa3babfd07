"""Write TFRecord files.

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
    """Return one record as it is stored: length, its checksum, data, checksum of the data."""
    length = struct.pack("<Q", len(record))
    checksum = struct.pack("<I", mask(crc32c(length)))
    return b"".join((length, checksum, record, struct.pack("<I", mask(crc32c(record)))))


def tf_record_bytes(records: Iterable[bytes], compression_type: str = "") -> bytes:
    """Return the contents of a TFRecord file with `records`; compression is "", ZLIB or GZIP."""
    return _COMPRESS[compression_type](b"".join(framed(record) for record in records))
