"""Normal forms of texts, and where their bytes come from.

The replaced parts of a text are those that ICU's functions find between boundaries, not the
smallest ones; they decide what offsets in the normal form mean in the text.

ICU: normalizer2impl.cpp (composeUTF8, decomposeUTF8), edits.cpp
"""

from __future__ import annotations

import functools
import itertools
from array import array
from collections.abc import Callable, Iterator

import numpy as np

from runtime.foundation.running_task import checked
from runtime.op_packages.text.character_table import SEPARATOR, code_points, groups, utf8_sizes
from runtime.op_packages.text.normal_forms import Form, decoded, encoded
from runtime.op_packages.text.offsets_maps.composition_edits import CompositionEdits
from runtime.op_packages.text.offsets_maps.decomposition_edits import (
    Edit,
    decomposed_without_marks,
    decomposing_edits,
    texts_with_marks,
)

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
        return _found_edits(texts, form, CompositionEdits(form).edits)
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
