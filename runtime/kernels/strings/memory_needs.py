"""What the kernels of this room allocate: the bytes of strings, and the objects that hold them.

`MEMORY_NEEDS` has the bound of each op that may need more than a small multiple of its inputs (see
`KernelDef.memory`); for all others `INPUT_MULTIPLES` has that multiple.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from runtime.framework.attr_value import raw_bytes
from runtime.framework.dtypes import DataType
from runtime.framework.memory_account import distinct
from runtime.framework.op_kernel import MemoryNeed
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import (
    NUMBER,
    POINTER,
    STRING,
    broadcast_elements,
    broadcast_text,
    elements,
    longest_in,
    number,
    shape_of,
    size_of,
    text_in,
)

V = TensorValue
INDEX = 8
# "%f" of the largest double has 309 digits before the point.
LONGEST_REAL = 400
HASH = 400  # bytes for each string while a vector of them is hashed
POINT = 280  # bytes for a code point that is decoded one by one: a tuple of two numbers in lists
TOKEN = STRING + 14 * INDEX  # a string, its place in lists, and its row and column


def _items(value: V) -> tuple[list[bytes], int]:
    """Return (strings of a tensor, how often they repeat)."""
    if isinstance(value, bytes):
        return [value], 1
    if not isinstance(value, np.ndarray):
        return [], 1
    part, times = distinct(value)
    return [each for each in part.ravel().tolist() if isinstance(each, bytes)], times


def _join(*inputs: V, separator: str) -> int:
    rest = len(raw_bytes(separator)) * max(len(inputs) - 1, 0) + len(inputs) * 3 * POINTER
    return broadcast_text(*inputs) + rest * broadcast_elements(*inputs)


def _reduce_join(inputs: V, reduction_indices: V, *, separator: str) -> int:
    return 2 * size_of(inputs) + (len(raw_bytes(separator)) + 4 * POINTER) * elements(inputs)


def _segment_join(inputs: V, segment_ids: V, num_segments: V, *, separator: str) -> int:
    inner = math.prod(shape_of(inputs)[len(shape_of(segment_ids)) :])
    segments = max(number(num_segments), 0) * inner * 2 * POINTER
    each = len(raw_bytes(separator)) + 4 * STRING + NUMBER
    return segments + 2 * size_of(inputs) + each * elements(inputs)


def _ngrams(
    data: V, data_splits: V, *, separator: str, ngram_widths: Sequence[int], left_pad: str,
    right_pad: str, pad_width: int, preserve_short_sequences: bool,
) -> int:  # fmt: skip
    tokens, rows = elements(data), max(elements(data_splits) - 1, 0)
    longest = max(longest_in(data), len(raw_bytes(left_pad)), len(raw_bytes(right_pad)))
    joint = len(raw_bytes(separator))
    pads = len(raw_bytes(left_pad)) + len(raw_bytes(right_pad))
    result = 0
    for width in ngram_widths:
        padding = width - 1 if pad_width < 0 else min(pad_width, width - 1)
        grams = tokens + rows * max(2 * padding - width + 2, 1)
        # each token is in at most `width` n-grams, and so is each pad
        text = width * (text_in(data) + rows * padding * pads)
        result += min(text, grams * width * longest) + grams * (
            STRING + 3 * POINTER + joint * width
        )
        result += 3 * POINTER * (tokens + 2 * max(padding, 0) + width)
    if preserve_short_sequences and pad_width > 0:
        result += rows * (pad_width * (pads + 2 * joint) + STRING) + 6 * POINTER * pad_width
        result += text_in(data) + joint * tokens
    return result + 6 * INDEX * rows


_GROUP = re.compile(rb"\\([0-9])")
_COUNTED_FROM = 1 << 16  # bytes of text from which matches are counted instead of estimated
MATCH = 2 * STRING + 4 * POINTER  # the text before a match, and what replaces it


def _replaced(text: V, rewrite: bytes, replace_global: bool) -> int:
    groups = len(_GROUP.findall(rewrite))
    matches = text_in(text) + elements(text) if replace_global else elements(text)
    return (1 + groups) * size_of(text) + matches * (len(rewrite) + MATCH)


def _regex_replace(input: V, pattern: V, rewrite: V, *, replace_global: bool) -> int:
    items, _ = _items(rewrite)
    return _replaced(input, items[0], replace_global) if items else 0


def _static_regex_replace(input: V, *, rewrite: str, replace_global: bool) -> int:
    return _replaced(input, raw_bytes(rewrite), replace_global)


def _split(input: V, delimiter: V) -> int:
    separators, _ = _items(delimiter)
    return _tokens(input, [bytes((each,)) for each in b"".join(separators)])


def _split_v2(input: V, sep: V) -> int:
    separators, _ = _items(sep)
    return _tokens(input, [each for each in separators if each])


def _tokens(input: V, separators: Sequence[bytes]) -> int:
    items, times = _items(input)
    if separators:
        count = sum(text.count(each) for text in items for each in separators) + len(items)
    else:
        count = sum(map(len, items)) + len(items)
    return times * count * TOKEN + 2 * size_of(input)


def _substrings(input: V, pos: V, len: V) -> int:
    count = broadcast_elements(input, pos)
    return broadcast_text(input, pos) + count * (4 * NUMBER + STRING) + 8 * longest_in(input)


def _as_string(input: V, *, T: DataType, precision: int, width: int) -> int:
    if T is DataType.STRING:
        text = text_in(input)
    else:
        text = elements(input) * (2 * LONGEST_REAL if T.is_floating else 64)
    wide = max(width, precision, 0) * (2 if T.name.startswith("COMPLEX") else 1)
    return text + elements(input) * (wide + 2 * STRING + NUMBER + 4 * POINTER)


def _to_number(string_tensor: V) -> int:
    return elements(string_tensor) * 3 * NUMBER + 3 * text_in(string_tensor)


def _hashed(input: V) -> int:
    return elements(input) * HASH + 2 * text_in(input)


def _fingerprint(data: V, method: V) -> int:
    rows = (shape_of(data) or (0,))[0]
    return max(rows, elements(data) if text_in(data) else 0) * HASH + 3 * size_of(data)


def _is_ascii(items: Sequence[bytes]) -> bool:
    return all(each.isascii() for each in items)


def _decode(input: V) -> int:
    items, times = _items(input)
    text, count = sum(map(len, items)), len(items)
    each = 8 * INDEX if _is_ascii(items) else POINT + 8 * INDEX
    return times * (text * each + count * 12 * INDEX)


def _decode_controlled(input: V, *, replace_control_characters: bool, input_encoding: str) -> int:
    items, times = _items(input)
    text, count = sum(map(len, items)), len(items)
    plain = _is_ascii(items) and not replace_control_characters
    each = 8 * INDEX if plain and "16" not in input_encoding and "32" not in input_encoding else 0
    return times * (text * (each or POINT + 8 * INDEX) + count * 12 * INDEX)


def _transcode(input: V, *, replace_control_characters: bool, input_encoding: str) -> int:
    items, times = _items(input)
    text, longest = sum(map(len, items)), max(map(len, items), default=0)
    plain = _is_ascii(items) and not replace_control_characters
    one_by_one = 0 if plain and "UTF" not in input_encoding[3:] else 3 * NUMBER * longest
    # UTF-32 has four bytes, and a text may begin with a byte order mark
    return times * (6 * text + len(items) * 2 * STRING) + one_by_one + 16 * longest


def _encode(input_values: V, input_splits: V) -> int:
    return elements(input_values) * (3 * NUMBER + 24) + elements(input_splits) * 2 * STRING


def _cased(input: V) -> int:
    return 6 * size_of(input)


def _scripts(input: V) -> int:
    classes = 1 << 23  # classes of all code points, and the texts that find them
    return classes + elements(input) * 8 * INDEX


MEMORY_NEEDS: dict[str, MemoryNeed] = {
    "StringJoin": _join,
    "ReduceJoin": _reduce_join,
    "UnsortedSegmentJoin": _segment_join,
    "StringNGrams": _ngrams,
    "RegexReplace": _regex_replace,
    "StaticRegexReplace": _static_regex_replace,
    "StringSplit": _split,
    "StringSplitV2": _split_v2,
    "Substr": _substrings,
    "AsString": _as_string,
    "StringToNumber": _to_number,
    **dict.fromkeys(
        ("StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong"), _hashed
    ),
    "Fingerprint": _fingerprint,
    "UnicodeDecode": _decode_controlled,
    "UnicodeDecodeWithOffsets": _decode_controlled,
    "UnicodeTranscode": _transcode,
    "UnicodeEncode": _encode,
    "UnicodeScript": _scripts,
}

INPUT_MULTIPLES: dict[str, int] = {
    **dict.fromkeys(
        (
            "DecodeBase64", "EncodeBase64", "RegexFullMatch", "StaticRegexFullMatch",
            "StringLength", "StringStrip",
        ),
        4,
    ),
    **dict.fromkeys(("StringLower", "StringUpper"), 8),
}  # fmt: skip
