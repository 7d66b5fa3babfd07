"""The normal forms of Unicode, of UTF-8 text that may be malformed.

Malformed bytes remain as they are, and nothing composes with them. Inside of Python a malformed
byte is a surrogate, which normalization does not change either.

ICU: Normalizer2::normalizeUTF8 of version 77, with Unicode 16
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

from runtime.foundation.running_task import check_task, checked
from runtime.op_packages.text.character_table import (
    SEPARATOR,
    CharacterTable,
    code_points,
    groups,
    text_of,
)
from runtime.op_packages.text.unicode_properties import folds, later_characters

Form: TypeAlias = Literal["NFC", "NFD", "NFKC", "NFKD"]
FORMS: tuple[Form, ...] = ("NFC", "NFD", "NFKC", "NFKD")
_MALFORMED = "surrogateescape"
# characters that are normalized at a time, between two looks at whether the step has ended
_BLOCK = 1 << 20
_MANY_MARKS = 200
_KEPT = 1 << 14  # characters of which properties are kept


def decoded(text: bytes) -> str:
    """Return UTF-8 text as a str in which each malformed byte is a surrogate."""
    if len(text) <= _BLOCK:
        return text.decode("utf-8", _MALFORMED)
    parts: list[str] = []
    start = 0
    while start < len(text):
        end = min(start + _BLOCK, len(text))
        # not inside of a character, which has at most three bytes behind its first
        for place in range(end, max(end - 4, start), -1):
            if place == len(text) or not 0x80 <= text[place] < 0xC0:
                end = place
                break
        parts.append(text[start:end].decode("utf-8", _MALFORMED))
        start = end
        check_task()
    return "".join(parts)


def encoded(text: str) -> bytes:
    """Undo `decoded`."""
    parts: list[bytes] = []
    for start in range(0, len(text), _BLOCK):
        parts.append(text[start : start + _BLOCK].encode("utf-8", _MALFORMED))
        check_task()
    return b"".join(parts)


def normalized(texts: list[bytes], form: Form) -> list[bytes]:
    """Return UTF-8 texts in a normal form."""
    return _each_changed(texts, bytes, lambda text: normalized_str(text, form))


def case_folded(texts: list[bytes]) -> list[bytes]:
    """Return UTF-8 texts in the form NFKC_Casefold, which ignores case and invisible characters."""
    return _each_changed(texts, bytes.lower, _folded)


def _folded(text: str) -> str:
    parts = (_folds().replaced(code_points(part))[0] for part in parts_of(text))
    return "".join(normalized_str(text_of(part), "NFC") for part in parts)


@functools.cache
def _folds() -> CharacterTable:
    return CharacterTable(lambda point: folds().get(point, chr(point)))


def _each_changed(
    texts: list[bytes], change_ascii: Callable[[bytes], bytes], change: Callable[[str], str]
) -> list[bytes]:
    """Return each text as `change` leaves it, which must not change separators."""
    found = [change_ascii(text) if text.isascii() else None for text in checked(texts)]
    others = [index for index, each in enumerate(found) if each is None]
    position = 0
    for group in groups([decoded(texts[index]) for index in checked(others)]):
        answers = change(SEPARATOR.join(group)).split(SEPARATOR)
        for text in answers:
            found[others[position]] = encoded(text)
            position += 1
    return [text for text in found if text is not None]


def normalized_str(text: str, form: Form) -> str:
    """Return a text in a normal form."""
    if len(text) <= _BLOCK:
        return _normalized_part(text, form)
    return "".join(_normalized_part(part, form) for part in parts_of(text))


# characters that compose with nothing before them, of which most writing has one soon
_BOUNDARY = re.compile(f"[\\0-\x7f\u0410-\u0418\u4e00-\u9fff\uac00-\ud7a3{SEPARATOR}]")


def parts_of(text: str) -> Iterator[str]:
    """Divide a long text where normal forms may be divided; call `check_task` before each part."""
    start = 0
    while len(text) - start > _BLOCK:
        found = _BOUNDARY.search(text, start + _BLOCK)
        if found is None:
            break
        yield text[start : found.start()]
        start = found.start()
        check_task()
    yield text[start:]


def _normalized_part(text: str, form: Form) -> str:
    if not _has_later(text):
        if unicodedata.is_normalized(form, text):
            return text
        # unicodedata takes time in the square of the number of marks that follow each other
        if _long_marks().search(text) is None:
            # it looks at each text first, and most of them may be normalized already
            return SEPARATOR.join(
                unicodedata.normalize(form, each) for each in checked(text.split(SEPARATOR))
            )
    characters = _ordered(text, form)
    return "".join(characters if form.endswith("D") else _composed(characters))


@functools.cache
def _long_marks() -> re.Pattern[str]:
    points = range(0x300, 0x10000)
    marks = "".join(chr(each) for each in points if unicodedata.combining(chr(each)))
    return re.compile(f"[{marks}\\U00010000-\\U0010ffff]{{{_MANY_MARKS}}}")


def _has_later(text: str) -> bool:
    """Return whether a text has a character that unicodedata normalizes differently."""
    pattern, others = _later_pattern()
    if any(each in text for each in others):
        return True
    # Few texts have characters that need four bytes, and looking at each character takes longer.
    is_wide = b"\xf0" in text.encode("utf-8", "surrogatepass")
    return is_wide and pattern.search(text) is not None


@functools.cache
def _later_pattern() -> tuple[re.Pattern[str], list[str]]:
    """Return (a pattern for the later characters of four bytes, all others)."""
    # a pair of later characters may compose where neither is normalized differently
    parts = {*later_characters(), *(pair[0] for pair in _later_pairs())}
    wide = "".join(sorted(each for each in parts if each > "\uffff"))
    return re.compile(f"[{wide}]"), [each for each in parts if each <= "\uffff"]


@functools.lru_cache(maxsize=_KEPT)
def combining_class(character: str) -> int:
    """Return the canonical combining class of a character; 0 if it is a starter."""
    later = later_characters().get(character)
    return unicodedata.combining(character) if later is None else later.combining_class


@functools.lru_cache(maxsize=_KEPT)
def decomposition(character: str, form: Form) -> str:
    """Return the full decomposition of a character, canonical or, for NFKC and NFKD, compatible."""
    later = later_characters().get(character)
    if later is None:
        return unicodedata.normalize("NFKD" if "K" in form else "NFD", character)
    return later.compatible if "K" in form else later.canonical


def _ordered(text: str, form: Form) -> list[str]:
    """Return the characters of the decomposition in canonical order."""
    found: list[str] = []
    marks: list[str] = []
    for character in checked(text):
        for part in decomposition(character, form):
            if combining_class(part):
                marks.append(part)
                continue
            found += sorted(marks, key=combining_class)
            marks = []
            found.append(part)
    return found + sorted(marks, key=combining_class)


def _composed(characters: list[str]) -> list[str]:
    """Compose characters in canonical order. Unicode: the canonical composition algorithm."""
    found: list[str] = []
    starter, last_class = -1, 0
    for character in checked(characters):
        number = combining_class(character)
        is_near = starter >= 0 and (last_class < number or starter == len(found) - 1)
        joint = composite(found[starter], character) if is_near else None
        if joint is not None:
            found[starter] = joint
            continue
        if number == 0:
            starter = len(found)
        last_class = number
        found.append(character)
    return found


def composite(first: str, second: str) -> str | None:
    """Return the character that two characters compose to, or None."""
    later = later_characters()
    joint = _later_pairs().get(first + second)
    if joint is not None or first in later or second in later:
        return joint
    both = unicodedata.normalize("NFC", first + second)
    return both if len(both) == 1 else None


@functools.cache
def _later_pairs() -> dict[str, str]:
    """Return what pairs of characters compose to, with a later one among them."""
    later = {key: each for key, each in later_characters().items() if each.composes}
    found = {each.canonical: key for key, each in later.items() if len(each.canonical) == 2}
    # A longer decomposition is that of the first character of the pair, and a second.
    for key, each in later.items():
        if len(each.canonical) > 2:
            found[found[each.canonical[:-1]] + each.canonical[-1]] = key
    return found
