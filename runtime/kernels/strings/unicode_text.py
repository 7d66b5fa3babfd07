"""Unicode ops: decoding strings to code points, encoding, and transcoding.

The attribute `errors` says what happens to malformed input: `strict` raises InvalidArgumentError,
`replace` replaces each malformed sequence by `replacement_char`, and `ignore` omits it.

TF: tensorflow/core/kernels/unicode_ops.cc
"""

from __future__ import annotations

import codecs
import itertools
import re
from collections.abc import Iterator

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import as_strings, items_of, map_strings, string_tensor

_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = re.compile("[\ud800-\udfff]")
_LAST_CONTROL = 0x1F  # the last of the C0 control characters
# As in ICU, UTF-16 and UTF-32 text is big-endian if it does not begin with a byte order mark.
_CODEC = {"UTF-16": "UTF-16-BE", "UTF-32": "UTF-32-BE", "US-ASCII": "ASCII"}
# For each default codec: the codec of the text after each byte order mark.
_BYTE_ORDER_MARKS = {
    "utf-16-be": {codecs.BOM_UTF16_BE: "utf-16-be", codecs.BOM_UTF16_LE: "utf-16-le"},
    "utf-32-be": {codecs.BOM_UTF32_BE: "utf-32-be", codecs.BOM_UTF32_LE: "utf-32-le"},
}
_WITHOUT_BYTE_ORDER = ("UTF-16", "UTF-32")

_ASCII_COMPATIBLE = frozenset(
    ("utf-8", "ascii", "iso8859-1")
)  # codecs in which each ASCII byte is one character


def _codec(encoding: str) -> str:
    try:
        return codecs.lookup(_CODEC.get(encoding.upper(), encoding)).name
    except (LookupError, ValueError):
        raise InvalidArgumentError(
            f"Could not create converter for input encoding: {encoding}"
        ) from None


def _check_replacement(point: int) -> None:
    if not 0 <= point <= _LAST_CODE_POINT:
        raise InvalidArgumentError("replacement_char out of unicode codepoint range")


def _encoded(text: str, codec: str) -> bytes:
    """Encode `text` with `codec`; surrogates are kept, except in UTF-8, where they are replaced."""
    if codec == "utf-8":
        text = _SURROGATES.sub("\ufffd", text)
    return text.encode(codec, "surrogatepass")


class _Decoder:
    """A decoder of bytes to code points, configured by the attributes of an op."""

    def __init__(
        self, encoding: str, errors: str, replacement_char: int, replace_control_characters: bool
    ) -> None:
        _check_replacement(replacement_char)
        self._codec = _codec(encoding)
        self._marks = (
            _BYTE_ORDER_MARKS[self._codec] if encoding.upper() in _WITHOUT_BYTE_ORDER else {}
        )
        self._errors = errors
        self._replacement = replacement_char
        self.replaces_controls = replace_control_characters
        self.keeps_ascii = self._codec in _ASCII_COMPATIBLE

    def pairs(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield the code point and the offset of the first byte of each character of `text`."""
        codec, mark = self._detect_byte_order(text)
        skipped = len(mark)  # the first character's offset is 0, where the mark begins
        position = 0
        for decoded, malformed in self._runs(text[skipped:], codec):
            for character in decoded:
                point = ord(character)
                if not self.replaces_controls or point > _LAST_CONTROL:
                    yield point, position
                elif self._errors != "ignore":
                    yield self._replacement, position
                position += skipped + len(character.encode(codec, "surrogatepass"))
                skipped = 0
            if malformed:
                if self._errors == "strict":
                    raise InvalidArgumentError("Invalid formatting on input string")
                if self._errors == "replace":
                    yield self._replacement, position
                position += skipped + malformed
                skipped = 0

    def points(self, text: bytes) -> list[int]:
        """Return the code points of `text`."""
        return [point for point, _ in self.pairs(text)]

    def _detect_byte_order(self, text: bytes) -> tuple[str, bytes]:
        """Return the codec of `text`, and the byte order mark that `text` begins with, or b""."""
        for mark, codec in self._marks.items():
            if text.startswith(mark):
                return codec, mark
        return self._codec, b""

    def _runs(self, text: bytes, codec: str) -> Iterator[tuple[str, int]]:
        """Yield well-formed text and the number of malformed bytes after it, until `text` ends."""
        position = 0
        while position < len(text):
            try:
                yield text[position:].decode(codec), 0
                return
            except UnicodeDecodeError as error:
                good = text[position : position + error.start].decode(codec)
                yield good, error.end - error.start
                position += error.end


def unicode_decode(
    input: np.ndarray,
    *,
    input_encoding: str,
    errors: str,
    replacement_char: int,
    replace_control_characters: bool,
    Tsplits: DataType,  # noqa: N803 - the attribute's name
) -> tuple[np.ndarray, np.ndarray]:
    """UnicodeDecode: decode n strings; return the row splits [n + 1] and the code points."""
    decoder = _Decoder(input_encoding, errors, replacement_char, replace_control_characters)
    splits, points, _ = _decoded(decoder, items_of(input), Tsplits)
    return splits, points


def unicode_decode_with_offsets(
    input: np.ndarray,
    *,
    input_encoding: str,
    errors: str,
    replacement_char: int,
    replace_control_characters: bool,
    Tsplits: DataType,  # noqa: N803
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """UnicodeDecodeWithOffsets: decode n strings to code points.

    Returns the row splits [n + 1], the code points, and the offset of each code point's first byte
    in its string.
    """
    decoder = _Decoder(input_encoding, errors, replacement_char, replace_control_characters)
    return _decoded(decoder, items_of(input), Tsplits)


def _decoded(
    decoder: _Decoder, items: list[bytes], split_type: DataType
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ascii_rows = _decoded_ascii(decoder, items, split_type)
    if ascii_rows is not None:
        return ascii_rows
    rows = [list(decoder.pairs(item)) for item in items]
    splits = np.cumsum([0, *map(len, rows)]).astype(split_type.numpy)
    pairs = np.array([pair for row in rows for pair in row], np.int64).reshape(-1, 2)
    return splits, pairs[:, 0].astype(np.int32), pairs[:, 1].copy()


def _decoded_ascii(
    decoder: _Decoder, items: list[bytes], split_type: DataType
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Decode ASCII text without a loop over its characters; None if that is not possible.

    It is possible if the codec contains ASCII, every byte is ASCII, and no control character is to
    be replaced.
    """
    joined = b"".join(items)
    if not decoder.keeps_ascii or not joined.isascii():
        return None
    points = np.frombuffer(joined, np.uint8).astype(np.int32)
    if decoder.replaces_controls and (points <= _LAST_CONTROL).any():
        return None
    lengths = np.fromiter(map(len, items), np.int64, len(items))
    splits = np.concatenate([[0], np.cumsum(lengths)])
    offsets = np.arange(len(joined)) - np.repeat(splits[:-1], lengths)
    return splits.astype(split_type.numpy), points, offsets


def unicode_encode(
    input_values: np.ndarray,
    input_splits: np.ndarray,
    *,
    errors: str,
    output_encoding: str,
    replacement_char: int,
) -> np.ndarray:
    """UnicodeEncode: return one string for each row of code points.

    `input_values` has the code points, `input_splits` divides them into rows.
    """
    codec = _codec(output_encoding)
    _check_replacement(replacement_char)
    if np.ndim(input_values) != 1 or np.ndim(input_splits) != 1:
        raise InvalidArgumentError("Both the input_tensor and input_splits should be of rank 1. ")
    points, splits = input_values.tolist(), input_splits.tolist()
    if not splits or splits[0] != 0:
        raise InvalidArgumentError("First value in input_splits must be zero.")
    rows = []
    for begin, end in itertools.pairwise(splits):
        if end > len(points) or end < begin:
            raise InvalidArgumentError(
                f"Values in input_splits must be less than or equal to {len(points)} "
                "and in ascending order"
            )
        characters = (_character(point, errors, replacement_char) for point in points[begin:end])
        rows.append(_encoded("".join(characters), codec))
    if splits[-1] != len(points):
        raise InvalidArgumentError(
            "Last value in input_splits must be equal to length of input_tensor."
        )
    return string_tensor(rows)


def _character(point: int, errors: str, replacement_char: int) -> str:
    if 0 <= point <= _LAST_CODE_POINT and not 0xD800 <= point <= 0xDFFF:
        return chr(point)
    if errors == "strict":
        raise InvalidArgumentError("Code point is out of range for Unicode, or is a surrogate.")
    return chr(replacement_char) if errors == "replace" else ""


def unicode_transcode(
    input: np.ndarray,
    *,
    input_encoding: str,
    output_encoding: str,
    errors: str,
    replacement_char: int,
    replace_control_characters: bool,
) -> np.ndarray:
    """UnicodeTranscode: convert each string from `input_encoding` to `output_encoding`."""
    decoder = _Decoder(input_encoding, errors, replacement_char, replace_control_characters)
    codec = _codec(output_encoding)

    def transcode(text: bytes) -> bytes:
        if decoder.keeps_ascii and not decoder.replaces_controls and text.isascii():
            return text.decode().encode(codec)
        return _encoded("".join(map(chr, decoder.points(text))), codec)

    return map_strings(transcode, as_strings(input))


KERNELS = (
    KernelDef("UnicodeDecode", unicode_decode),
    KernelDef("UnicodeDecodeWithOffsets", unicode_decode_with_offsets),
    KernelDef("UnicodeEncode", unicode_encode),
    KernelDef("UnicodeTranscode", unicode_transcode),
)
