"""DecodeRaw, DecodePaddedRaw and DecodeCompressed."""

from __future__ import annotations

import zlib

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import case

BYTES = bytes(range(200, 232))
_GZIP = 31  # of `wbits`; the module gzip writes another header in each version of Python
MEMBER = zlib.compress(b"hello world " * 2, 9, _GZIP)
TYPES = (
    DataType.HALF,
    DataType.FLOAT,
    DataType.DOUBLE,
    DataType.INT32,
    DataType.UINT16,
    DataType.UINT8,
    DataType.INT16,
    DataType.INT8,
    DataType.INT64,
    DataType.COMPLEX64,
    DataType.COMPLEX128,
    DataType.BFLOAT16,
)
PADDED_TYPES = tuple(kind for kind in TYPES if kind.name not in ("HALF", "COMPLEX64", "COMPLEX128"))


def texts(*items: object) -> np.ndarray:
    return np.array(items, object)


CASES = (
    *(
        case("DecodeRaw", given, out_type=kind, little_endian=little)
        for kind in TYPES
        for given in (BYTES, texts(BYTES[:16], BYTES[16:]))
        for little in (True, False)
    ),
    case("DecodeRaw", b"\x00\x01\x02", out_type=DataType.BOOL),
    case("DecodeRaw", np.empty((0, 2), object), out_type=DataType.INT32),
    case("DecodeRaw", texts("", ""), out_type=DataType.INT32),
    case("DecodeRaw", texts("ab", "c"), out_type=DataType.INT8, message=True),
    case("DecodeRaw", "abc", out_type=DataType.INT16, message=True),
    *(
        case("DecodePaddedRaw", given, 16, out_type=kind, little_endian=little)
        for kind in PADDED_TYPES
        for given in (BYTES, texts("ab", BYTES), np.empty((0, 2), object))
        for little in (True, False)
    ),
    case("DecodePaddedRaw", texts("a"), 5, out_type=DataType.INT16, message=True),
    case("DecodePaddedRaw", texts("a"), 0, out_type=DataType.INT16, message=True),
    case("DecodePaddedRaw", texts("a"), -2, out_type=DataType.INT16, message=True),
    case("DecodePaddedRaw", texts("a"), [2], out_type=DataType.INT16),
    case("DecodeCompressed", texts("as it is")),
    case("DecodeCompressed", texts(zlib.compress(b"abc" * 50)), compression_type="ZLIB"),
    case("DecodeCompressed", texts(zlib.compress(b"abc", 9, _GZIP)), compression_type="GZIP"),
    case("DecodeCompressed", texts("junk"), compression_type="ZLIB"),
    case("DecodeCompressed", texts("a"), compression_type="ZLIB"),
    case("DecodeCompressed", texts(zlib.compress(b"abc" * 50)[:9]), compression_type="ZLIB"),
    case("DecodeCompressed", texts(zlib.compress(b"abc") + b"junk"), compression_type="ZLIB"),
    *(
        case("DecodeCompressed", texts(MEMBER + tail), compression_type="GZIP")
        for tail in (b"j", b"junkjunk", b"\0" * 30, MEMBER, MEMBER[:15], MEMBER * 50)
    ),
    case("DecodeCompressed", texts("junk"), compression_type="SNAPPY", message=True),
)
