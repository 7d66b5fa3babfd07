"""What NFC and NFKC replace, as ICU notes it.

ICU: Normalizer2Impl::composeUTF8
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from runtime.foundation.running_task import check_task
from runtime.op_packages.text.normal_forms import (
    Form,
    combining_class,
    composite,
    decomposition,
    normalized_str,
)
from runtime.op_packages.text.offsets_maps.decomposition_edits import Edit
from runtime.op_packages.text.offsets_maps.special_characters import any_of, special_characters
from runtime.op_packages.text.unicode_properties import ends_closed

_MARK, _MAYBE, _VOWEL, _TRAIL, _SIMPLE, _COMPLEX = range(6)
_LEADS = ("\u1100", "\u1112")  # the Hangul letters that begin a syllable
_VOWELS = ("\u1161", "\u1175")
_TRAILS = ("\u11a8", "\u11c2")
_SYLLABLE = 0xAC00
_VOWEL_COUNT, _TRAIL_COUNT = 21, 28


def _between(character: str, limits: tuple[str, str]) -> bool:
    return limits[0] <= character <= limits[1]


class CompositionEdits:
    """What NFC or NFKC replaces in a text."""

    def __init__(self, form: Form) -> None:
        self._form: Form = form
        self._closed = ends_closed(form)
        self._kinds, self._pattern = _kinds(form)

    def edits(self, text: str, _: Form) -> Iterator[Edit]:
        """Yield what is replaced."""
        self._text = text
        boundary = place = 0  # all before the boundary is settled
        while (found := self._pattern.search(text, place)) is not None:
            check_task()
            start, place = found.span()
            kind = self._kinds.get(text[start])
            edit = None
            if kind is None:
                continue
            if kind == _SIMPLE:
                if self._ends_closed(text[start]) or self._begins_closed(place):
                    edit = start, place, decomposition(text[start], self._form)
            elif kind in (_VOWEL, _TRAIL):
                edit = self._syllable(boundary, start, kind)
            elif kind == _MARK:
                place, is_settled = self._ordered_marks(start)
                if is_settled:
                    continue
            if edit is None:
                edit = self._recomposed(boundary, start, place)
                place = edit[1]
                if edit[2] == text[edit[0] : place]:
                    continue
            yield edit
            boundary = place = edit[1]

    def _begins_closed(self, place: int) -> bool:
        """Return whether what is at a place composes with nothing before it."""
        if place == len(self._text):
            return True
        kind = self._kinds.get(self._text[place])
        if kind == _COMPLEX:
            first = decomposition(self._text[place], self._form)[0]
            return not combining_class(first) and self._kinds.get(first) not in _BACKWARDS
        return kind is None or kind == _SIMPLE

    def _ends_closed(self, character: str) -> bool:
        return bool(self._closed[ord(character)]) or "\ud800" <= character <= "\udfff"

    def _syllable(self, boundary: int, start: int, kind: int) -> Edit | None:
        """Return the edit that composes letters of Hangul to a syllable, if it is that simple."""
        text = self._text
        before = text[start - 1] if start > boundary else ""
        end = start + 1
        if kind == _TRAIL:
            if not "\uac00" <= before <= "\ud7a3" or (ord(before) - _SYLLABLE) % _TRAIL_COUNT:
                return None
            return start - 1, end, chr(ord(before) + _trail(text[start]))
        if not before or not _between(before, _LEADS):
            return None
        trail = 0
        if end < len(text) and _between(text[end], _TRAILS):
            trail = _trail(text[end])
            end += 1
        elif not self._begins_closed(end):
            return None
        lead, vowel = ord(before) - ord(_LEADS[0]), ord(text[start]) - ord(_VOWELS[0])
        number = (lead * _VOWEL_COUNT + vowel) * _TRAIL_COUNT + trail
        return start - 1, end, chr(_SYLLABLE + number)

    def _ordered_marks(self, start: int) -> tuple[int, bool]:
        """Return the place behind marks in canonical order, and whether they may remain so."""
        text = self._text
        place, last = start + 1, combining_class(text[start])
        while place < len(text) and self._kinds.get(text[place]) == _MARK:
            check_task()
            number = combining_class(text[place])
            if number < last:
                return place, False
            last = number
            place += 1
        return place, self._begins_closed(place)

    def _recomposed(self, boundary: int, start: int, place: int) -> Edit:
        """Return the edit of everything between the next boundaries before and after a place."""
        text = self._text
        is_inside = start > boundary and not self._begins_closed(start)
        if is_inside and not self._ends_closed(text[start - 1]):
            start -= 1
        while place < len(text) and not self._begins_closed(place):
            check_task()
            place += 1
            if self._ends_closed(text[place - 1]):
                break
        return start, place, normalized_str(text[start:place], self._form)


_BACKWARDS = (_MARK, _MAYBE, _VOWEL, _TRAIL)  # what may compose with characters before


def _trail(character: str) -> int:
    return ord(character) - ord(_TRAILS[0]) + 1


@functools.cache
def _kinds(form: Form) -> tuple[dict[str, int], re.Pattern[str]]:
    """Return the characters that NFC or NFKC may change, with a pattern that finds them."""
    backwards = _backwards()
    found: dict[str, int] = {}
    for character in special_characters():
        whole = normalized_str(character, form)
        if _between(character, _VOWELS):
            found[character] = _VOWEL
        elif _between(character, _TRAILS):
            found[character] = _TRAIL
        elif decomposition(character, form)[0] in backwards and whole == character:
            found[character] = _MAYBE
        elif whole == character:
            if combining_class(character):
                found[character] = _MARK
        elif whole != decomposition(character, form):
            found[character] = _COMPLEX
        else:
            is_start = not combining_class(whole[0]) and whole[0] not in backwards
            found[character] = _SIMPLE if is_start else _COMPLEX
    return found, any_of(found)


@functools.cache
def _backwards() -> frozenset[str]:
    """Return the characters that compose with one before them."""
    found = {chr(each) for each in range(ord(_VOWELS[0]), ord(_VOWELS[1]) + 1)}
    found.update(chr(each) for each in range(ord(_TRAILS[0]), ord(_TRAILS[1]) + 1))
    for character in special_characters():
        whole = decomposition(character, "NFD")
        if len(whole) > 1:
            first = normalized_str(whole[:-1], "NFC")
            if composite(first, whole[-1]) == character:
                found.add(whole[-1])
    return frozenset(found)
