"""Which parts of a text its normal form replaces, as ICU notes them.

The replaced parts are those that ICU's functions find between boundaries, not the smallest ones;
they decide what offsets in the normal form mean in the text.

ICU: normalizer2impl.cpp (composeUTF8, decomposeUTF8), edits.cpp
"""

from __future__ import annotations

import functools
import itertools
import re
from array import array
from collections.abc import Callable, Iterator

import numpy as np

from runtime.foundation.running_task import check_task, checked
from runtime.op_packages.text.character_table import SEPARATOR, code_points, groups, utf8_sizes
from runtime.op_packages.text.decomposition_edits import (
    Edit,
    decomposed_without_marks,
    decomposing_edits,
    texts_with_marks,
)
from runtime.op_packages.text.normal_forms import (
    Form,
    combining_class,
    composite,
    decoded,
    decomposition,
    encoded,
    normalized_str,
)
from runtime.op_packages.text.special_characters import any_of, special_characters
from runtime.op_packages.text.unicode_properties import ends_closed

_MARK, _MAYBE, _VOWEL, _TRAIL, _SIMPLE, _COMPLEX = range(6)
_LEADS = ("\u1100", "\u1112")  # the Hangul letters that begin a syllable
_VOWELS = ("\u1161", "\u1175")
_TRAILS = ("\u11a8", "\u11c2")
_SYLLABLE = 0xAC00
_VOWEL_COUNT, _TRAIL_COUNT = 21, 28
_NO_EDITS = np.zeros((0, 3), np.int64)


class OffsetsMap:
    """Where the bytes of a normal form come from.

    Part i of the normal form, bytes `targets[i]` to `targets[i + 1]`, comes from the bytes
    `sources[i]` to `sources[i + 1]`, and `changed[i]` says whether it differs from them.
    TF: normalize_kernels.cc (OffsetMapVariant)
    """

    def __init__(self, size: int, edits: np.ndarray) -> None:
        """Keep the edits of a text of `size` bytes.

        `edits`, int64 `[n, 3]`, has where replaced parts begin and end, and how many bytes replace
        them.
        """
        self._size = size
        self._edits = edits

    @functools.cached_property
    def _parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return targets, sources and changed; few maps are looked at."""
        edits = self._edits
        old = np.zeros(2 * len(edits) + 1, np.int64)
        old[1::2] = edits[:, 1] - edits[:, 0]
        old[0::2] = np.append(edits[:, 0], self._size) - np.append(0, edits[:, 1])
        new = old.copy()
        new[1::2] = edits[:, 2]
        changed = np.arange(len(old)) % 2 == 1
        kept = (old > 0) | (new > 0)
        targets, sources = (np.append(0, np.cumsum(each[kept])) for each in (new, old))
        return targets, sources, changed[kept]

    def sources_of(self, offsets: np.ndarray) -> np.ndarray:
        """Return the offsets int64 `[n]` in the text of offsets in the normal form.

        An offset inside of a replacement becomes the end of the part that it replaces. ICU:
        Edits::Iterator::sourceIndexFromDestinationIndex
        """
        targets, sources, changed = self._parts
        if not len(changed):
            return np.zeros(len(offsets), np.int64)
        wanted = offsets.astype(np.int32)  # as ICU's function gets them
        part = np.searchsorted(targets[1:], wanted, side="right")
        inside = part < len(changed)
        place = np.where(inside, part, 0)
        within = wanted - targets[place]
        is_end = changed[place] & (within > 0)
        moved = np.where(is_end, sources[place + 1], sources[place] + within)
        found = np.where(inside, moved, sources[-1])
        return np.where(wanted < 0, 0, found).astype(np.int64)


def normalized_with_maps(texts: list[bytes], form: Form) -> tuple[list[bytes], list[OffsetsMap]]:
    """Return UTF-8 texts in a normal form, and where their bytes come from."""
    found = list(texts)
    maps = [OffsetsMap(len(text), _NO_EDITS) for text in checked(texts)]
    others = [index for index, text in enumerate(texts) if not text.isascii()]
    position = 0
    for group in groups([decoded(texts[index]) for index in checked(others)]):
        new, edits = _group_edits(group, form)
        for text, one in zip(new, edits, strict=True):
            index = others[position]
            if len(one):
                found[index] = encoded(text)
                maps[index] = OffsetsMap(len(texts[index]), one)
            position += 1
    return found, maps


def _group_edits(texts: list[str], form: Form) -> tuple[list[str], list[np.ndarray]]:
    """Return texts in a normal form, and the edits of each as `OffsetsMap` takes them."""
    if not form.endswith("D"):
        return _found_edits(texts, form, _Composing(form).edits)
    has_marks = texts_with_marks(texts, form)
    plain = [texts[index] for index in np.flatnonzero(~has_marks)]
    others = [texts[index] for index in np.flatnonzero(has_marks)]
    # of no texts there is an empty one, which is not asked for
    answers = (
        zip(*_plain_edits(plain, form), strict=False),
        zip(*_found_edits(others, form, decomposing_edits), strict=False),
    )
    pairs = [next(answers[each]) for each in has_marks.tolist()]
    return [text for text, _ in pairs], [edits for _, edits in pairs]


def _plain_edits(texts: list[str], form: Form) -> tuple[list[str], list[np.ndarray]]:
    """Return decompositions of texts without marks, and the edits of each."""
    source = SEPARATOR.join(texts)
    found, edits = decomposed_without_marks(source, form)
    return found.split(SEPARATOR), _edits_of_texts(texts, source, edits)


def _found_edits(
    texts: list[str], form: Form, find: Callable[[str, Form], Iterator[Edit]]
) -> tuple[list[str], list[np.ndarray]]:
    """Return texts with what `find` replaces, and the edits of each."""
    source = SEPARATOR.join(texts)
    parts: list[str] = []
    position = 0
    rows = array("q")
    for start, end, new in find(source, form):
        parts += (source[position:start], new)
        position = end
        rows.extend((start, end, len(new.encode())))
    parts.append(source[position:])
    edits = np.array(rows, np.int64).reshape(-1, 3)
    return "".join(parts).split(SEPARATOR), _edits_of_texts(texts, source, edits)


def _edits_of_texts(texts: list[str], source: str, edits: np.ndarray) -> list[np.ndarray]:
    """Return the edits of each text, in its bytes, of those in the characters of them joined."""
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    starts = np.cumsum(sizes + 1) - sizes - 1  # of the texts, in characters
    limits = np.searchsorted(edits[:, 0], np.append(starts, len(source) + 1)).tolist()
    places = np.append(0, np.cumsum(utf8_sizes(code_points(source))))
    edits[:, :2] = places[edits[:, :2]]
    begins = np.repeat(places[starts], np.diff(limits))
    edits[:, :2] -= begins[:, None]
    return [edits[first:last] for first, last in itertools.pairwise(limits)]


def _between(character: str, limits: tuple[str, str]) -> bool:
    return limits[0] <= character <= limits[1]


class _Composing:
    """What NFC or NFKC replaces. ICU: Normalizer2Impl::composeUTF8"""

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
