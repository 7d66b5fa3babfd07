"""Unicode decoding, encoding and transcoding: encodings, malformed input, errors."""

from __future__ import annotations

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import case

TEXT = "aé日\U0001f600\x00\x07z"
MALFORMED = [
    b"\xff",
    b"a\xc3",
    b"\xe6\x97z",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98",
    b"\x80\x80",
    b"\xc0\xaf",
]
ERRORS = ("replace", "ignore", "strict")
UTF8 = np.array([TEXT.encode(), b"", *MALFORMED], object)
UTF16 = np.array([TEXT.encode("utf-16-be"), b"\xd8\x00\x00a", b"\x00", b"\xdc\x00"], object)
UTF32 = np.array([TEXT.encode("utf-32-be"), b"\x00\x11\x00\x00", b"\x00\x00"], object)
POINTS = np.array([97, 233, 0x65E5, 0x1F600, 0xD800, 0x110000, -1, 0xFFFE, 0xFDD0, 122], np.int32)
SPLITS = np.array([0, 4, 4, 10], np.int64)

# Strings with and without a byte order mark, which only UTF-16 and UTF-32 recognise (not -BE, -LE).
# TensorFlow's converter keeps the byte order for the next string: so there is one case for each.
MARKED = (
    b"\xfe\xff\0*",
    b"\xff\xfe*\0",
    b"\0*",
    b"\xff\xfe*\0\xff\xfe>\0",
    b"\xfe\xff\0*\xd8",
    b"\0\0\xfe\xff\0\0\0*",
    b"\xff\xfe\0\0*\0\0\0",
)

CASES = (
    *(
        case(op, given, input_encoding=encoding, errors=errors, replace_control_characters=controls)
        for op in ("UnicodeDecode", "UnicodeDecodeWithOffsets")
        for encoding, given in (("UTF-8", UTF8), ("UTF-16-BE", UTF16), ("UTF-32-BE", UTF32))
        for errors in ERRORS
        for controls in (False, True)
    ),
    *(
        case("UnicodeDecodeWithOffsets", text, input_encoding="UTF-8", replacement_char=0x3F)
        for text in MALFORMED
    ),
    case("UnicodeDecode", "é", input_encoding="UTF-8", Tsplits=DataType.INT32),
    case("UnicodeDecode", [["a", "b"], ["c", "é"]], input_encoding="UTF-8"),
    case("UnicodeDecode", np.empty((0, 2), object), input_encoding="UTF-8"),
    case("UnicodeDecode", "a", input_encoding="NO-SUCH", message=True),
    case("UnicodeDecode", b"\xff", input_encoding="UTF-8", errors="strict", message=True),
    *(
        case("UnicodeEncode", points, splits, output_encoding=encoding, errors=errors)
        for encoding in ("UTF-8", "UTF-16-BE", "UTF-32-BE")
        for errors in ERRORS
        for points, splits in ((POINTS, SPLITS), (POINTS[:4], np.array([0, 1, 4], np.int64)))
    ),
    case(
        "UnicodeEncode",
        POINTS[6:7],
        np.array([0, 1], np.int64),
        output_encoding="UTF-8",
        errors="strict",
        message=True,
    ),
    *(
        case(
            "UnicodeEncode",
            POINTS,
            SPLITS,
            output_encoding=encoding,
            errors=errors,
            replacement_char=replacement,
            message=True,
            name=f"UnicodeEncode_{encoding}_{errors}_{replacement:x}",
        )
        for encoding in ("UTF-8", "UTF-16-BE", "UTF-32-BE")
        for errors in ERRORS
        for replacement in (-1, 0xD800, 0x110000)
    ),
    case("UnicodeEncode", POINTS[:4], np.array([0, 9], np.int64), output_encoding="UTF-8"),
    case("UnicodeEncode", POINTS[:4], np.array([1, 2], np.int64), output_encoding="UTF-8"),
    case("UnicodeEncode", POINTS[:4], np.array([0, 3, 1], np.int64), output_encoding="UTF-8"),
    *(
        case("UnicodeTranscode", given, input_encoding=source, output_encoding=target, errors=rule)
        for source, given in (("UTF-8", UTF8), ("UTF-16-BE", UTF16), ("UTF-32-BE", UTF32))
        for target in ("UTF-8", "UTF-16-BE", "UTF-32-BE")
        for rule in ERRORS
    ),
    *(
        case("UnicodeTranscode", "abc", input_encoding=encoding, output_encoding="UTF-8")
        for encoding in ("ISO-8859-1", "US-ASCII", "NO-SUCH")
    ),
    case(
        "UnicodeTranscode",
        "a\x07b",
        input_encoding="UTF-8",
        output_encoding="UTF-8",
        replace_control_characters=True,
    ),
    case("UnicodeScript", np.arange(0x250, dtype=np.int32).reshape(2, -1)),
    case("UnicodeScript", np.arange(0x370, 0x61C, dtype=np.int32)),
    case("UnicodeScript", np.array([0x4E00, 0xAC00, 0x3042, 0x30A2, 0x1F600, 0x10400], np.int32)),
    case("UnicodeScript", np.array([-1, 0xD800, 0x10FFFF, 0x110000, 2**31 - 1, -5], np.int32)),
    case("UnicodeScript", np.array(65, np.int32)),
    case("UnicodeScript", np.zeros((2, 0), np.int32)),
    *(
        case("UnicodeDecodeWithOffsets", [text], input_encoding=encoding)
        for encoding in ("UTF-16", "UTF-16-BE", "UTF-32")
        for text in MARKED
    ),
    *(
        case("UnicodeTranscode", text, input_encoding=encoding, output_encoding="UTF-8")
        for encoding in ("UTF-16", "UTF-16-LE", "utf-16")
        for text in MARKED
    ),
)
