"""Characters of UTF-8 text as the tokenizers of TF Text see them, and two of their properties.

Malformed bytes form characters too: each sequence that could have been the beginning of a
well-formed one, or else each byte, is a character without a code point (`NO_CODE_POINT`).

ICU: U8_NEXT (utf8.h), u_isUWhiteSpace and u_ispunct (uchar.h), version 77, with Unicode 16
"""

from __future__ import annotations

import codecs
import functools
import unicodedata

from runtime.foundation.running_task import check_task

NO_CODE_POINT = -1

# Unicode: PropList.txt, White_Space; no version has changed it since 6.3
WHITE_SPACE = frozenset(
    (*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B),
    0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
)  # fmt: skip
# Punctuation (General_Category P) of Unicode 15 and 16; Python 3.11 has the data of Unicode 14.
_LATER_PUNCTUATION = frozenset(
    (0x1B4E, 0x1B4F, 0x1B7F, 0x10D6E, 0x113D4, 0x113D5, 0x113D7, 0x113D8, *range(0x11B00, 0x11B0A),
    0x11BE1, *range(0x11F43, 0x11F50), 0x16D6D, 0x16D6E, 0x16D6F, 0x1E5FF)
)  # fmt: skip
# Chinese ideographs, and the ASCII characters `$+<=>^`|~`, count as punctuation.
# TF: fast_wordpiece_tokenizer_utils.h (IsPunctuationOrChineseChar)
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip
_ASCII_SYMBOLS = frozenset(map(ord, "$+<=>^`|~"))


def _mark_malformed(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)  # the handler is for decoding alone
    check_task()
    return chr(_MALFORMED + error.end - error.start), error.end


_HANDLER = "runtime.op_packages.text.malformed"
# n malformed bytes are decoded to the n-th code point after this one, a surrogate, which no
# well-formed UTF-8 text has
_MALFORMED = 0xDC00
codecs.register_error(_HANDLER, _mark_malformed)


def characters(text: bytes) -> str:
    """Return the characters of `text`, of which `code_point_and_size` says what they are."""
    return text.decode("utf-8", _HANDLER)


def code_point_and_size(character: str) -> tuple[int, int]:
    """Return the code point of one of `characters`, and the number of its bytes."""
    code_point = ord(character)
    if code_point < 0x80:
        return code_point, 1
    if code_point < 0x800:
        return code_point, 2
    if code_point >= 0x10000:
        return code_point, 4
    if _MALFORMED <= code_point <= _MALFORMED + 3:
        return NO_CODE_POINT, code_point - _MALFORMED
    return code_point, 3


@functools.lru_cache(maxsize=1 << 13)
def is_punctuation(code_point: int) -> bool:
    """Return whether a character is a word of its own: punctuation, or an ideograph."""
    if code_point == NO_CODE_POINT:
        return False
    return (
        unicodedata.category(chr(code_point)).startswith("P")
        or code_point in _ASCII_SYMBOLS
        or code_point in _LATER_PUNCTUATION
        or any(first <= code_point <= last for first, last in _IDEOGRAPHS)
    )
