"""What NFD and NFKD replace, as ICU notes it.

Most texts have no marks of their own; each character of such a text that has a decomposition is
replaced alone, and all are found at once.

ICU: Normalizer2Impl::decomposeUTF8
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import numpy as np

from runtime.foundation.running_task import check_task
from runtime.op_packages.text.character_table import (
    SEPARATOR,
    CharacterTable,
    code_points,
    text_of,
    utf8_sizes,
)
from runtime.op_packages.text.normal_forms import (
    Form,
    combining_class,
    decomposition,
    normalized_str,
)
from runtime.op_packages.text.offsets_maps.special_characters import any_of, special_characters
from runtime.op_packages.text.unicode_properties import CODE_POINTS

# A part of a text that is replaced: where it begins and ends, and what replaces it.
Edit = tuple[int, int, str]


def texts_with_marks(texts: list[str], form: Form) -> np.ndarray:
    """Return for each text `[n]` whether it has marks, which may move behind other marks."""
    points = code_points(SEPARATOR.join(texts))
    ends = np.append(np.flatnonzero(points == ord(SEPARATOR)), len(points))
    found = np.zeros(len(texts), np.bool_)
    found[np.searchsorted(ends, np.flatnonzero(_begins_with_mark(form)[points]))] = True
    return found


def decomposed_without_marks(text: str, form: Form) -> tuple[str, np.ndarray]:
    """Return the decomposition of a text without marks, and what is replaced.

    That is, int64 `[n, 3]`, where each part begins and ends in characters, and how many bytes
    replace it.
    """
    points = code_points(text)
    found, counts = _decompositions(form).replaced(points)
    limits = np.cumsum(counts)
    written = np.append(0, np.cumsum(utf8_sizes(found)))
    changed = np.flatnonzero((counts != 1) | (found[limits - 1] != points))
    sizes = written[limits[changed]] - written[limits[changed] - counts[changed]]
    return text_of(found), np.stack([changed, changed + 1, sizes], axis=1)


@functools.cache
def _decompositions(form: Form) -> CharacterTable:
    return CharacterTable(lambda point: decomposition(chr(point), form))


@functools.cache
def _begins_with_mark(form: Form) -> np.ndarray:
    """Return for each code point whether its decomposition begins with a mark."""
    found = np.zeros(CODE_POINTS, np.bool_)
    for character in special_characters():
        found[ord(character)] = combining_class(decomposition(character, form)[0]) != 0
    return found


def decomposing_edits(text: str, form: Form) -> Iterator[Edit]:
    """Yield what NFD or NFKD replaces."""
    pattern = _decomposed_pattern(form)
    boundary = place = 0  # all before the boundary is settled
    last = 0
    while (found := pattern.search(text, place)) is not None:
        check_task()
        start, end = found.span()
        if start != place:
            boundary, last = start, 0
        character = text[start]
        whole = decomposition(character, form)
        if whole == character and character > "\uffff" and not combining_class(character):
            boundary, last, place = end, 0, end
            continue
        if whole == character:
            number = combining_class(character)
            if last <= number:
                last, place = number, end
                if number <= 1:
                    boundary = end
                continue
        if not combining_class(whole[0]):
            boundary = start
        new, place = _decomposed_part(text, boundary, end, form)
        if whole != character or new != text[boundary:place]:
            yield boundary, place, new
        boundary, last = place, 0


def _decomposed_part(text: str, start: int, end: int, form: Form) -> tuple[str, int]:
    """Return the decomposition of a part and of the marks behind it, and where these end."""
    # the last of marks in canonical order has the largest class
    new = decomposition(text[start], form) if end - start == 1 else ""
    last = combining_class((new or normalized_str(text[start:end], form))[-1])
    if new and last <= 1:
        return new, end
    while last > 1 and end < len(text):
        check_task()
        marks = decomposition(text[end], form)
        if not combining_class(marks[0]):
            break
        end += 1
        last = combining_class(marks[-1]) and max(last, combining_class(marks[-1]))
    return normalized_str(text[start:end], form), end


@functools.cache
def _decomposed_pattern(form: Form) -> re.Pattern[str]:
    found = {
        each
        for each in special_characters()
        if combining_class(each) or decomposition(each, form) != each
    }
    return any_of([*found, *map(chr, range(0xAC00, 0xD7A4))])
