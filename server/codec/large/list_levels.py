"""The shape of a large list, and where it can be cut, from its brackets and commas alone.

A level has the lists at the same depth. A list is regular if all lists of a level have as many
elements and either all elements of a level are lists or none is.

Guarantees: time is linear in the body, however deep its lists are.
"""

from __future__ import annotations

import dataclasses
import re
from typing import NamedTuple

import numpy as np

from runtime.api import MAX_RANK
from server.codec.large.slices import STEP_BYTES, pause_if_due
from server.codec.large.structure import COMMA, list_depths, marks, outside_objects

CUT_BYTES = 1 << 16  # a list may be cut about so often
# Lists inside each other: a list of as many tensors as there may be, each of the highest rank. What
# is deeper is no tensor, so nothing after its first bracket is looked at.
MAX_LEVELS = MAX_RANK + 1
_OPEN, _CLOSE = b"[]"
_IS_SPACE = np.zeros(256, np.bool_)
_IS_SPACE[list(b" \t\r\n")] = True
_SPACE = re.compile(rb"[ \t\r\n]*")
_OPENING = re.compile(rb"[\[ \t\r\n]*")


@dataclasses.dataclass(slots=True)
class Level:
    """The lists at one depth; `opened` counts those that have begun, `elements` is in all."""

    opened: int = 0
    elements: int = 0
    size: int = -1  # of the first list
    sizes: set[int] = dataclasses.field(default_factory=set)
    commas: int = 0  # of the list that is open


@dataclasses.dataclass(slots=True)
class ListLevels:
    """The levels of a list, outermost first, and the positions of commas at which it can be cut.

    A cut has the depth of its comma. `row_cuts` are commas between the elements of the outermost
    list, each with the number of elements before it.

    If lists are more than MAX_LEVELS deep, all this describes what is before the first list that is
    too deep: `depth` is how deep lists are open there, the last of `row_cuts` is before the element
    that has it, and the first level has as many elements as there are up to that one.
    """

    levels: list[Level] = dataclasses.field(default_factory=list)
    cuts: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    row_cuts: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    depth: int = 0  # 0 if no list is too deep

    @property
    def is_too_deep(self) -> bool:
        """Whether lists are more than MAX_LEVELS deep."""
        return self.depth > 0

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of the list; None if it is not regular or too deep."""
        if self.is_too_deep or self.fault() is not None:
            return None
        return tuple(level.size for level in self.levels)

    def fault(self) -> tuple[int, list[int]] | None:
        """Return the first level that is not regular, and the sizes of its lists.

        The sizes are empty if the level has lists beside other values; that is not known of lists
        that are too deep, which are still open.
        """
        for index, level in enumerate(self.levels):
            inner = self.levels[index + 1].opened if index + 1 < len(self.levels) else 0
            if len(level.sizes) > 1:
                return index, sorted(level.sizes)
            if not self.is_too_deep and inner not in (0, level.elements):
                return index + 1, []
        return None


def list_levels(body: bytes, start: int, end: int) -> ListLevels:
    """Return the levels of the list `body[start:end]`, which begins and ends with its brackets."""
    result = ListLevels()
    depth = in_objects = 0
    last_open = -1  # the position of the last mark, if it opens a list
    for positions, characters in marks(body, start, end):
        positions, characters, in_objects = outside_objects(positions, characters, in_objects)
        if not len(positions):
            continue
        if last_open >= 0:  # with the mark before, so that an empty list is seen as a whole
            positions = np.concatenate(([last_open], positions))
            characters = np.concatenate((np.array([_OPEN], np.uint8), characters))
            depth -= 1
        depths = list_depths(characters, depth)
        step = _Marks(positions, characters, depths)
        deep = np.flatnonzero(depths > MAX_LEVELS)
        if len(deep):
            here = int(deep[0])
            _note(result, body, step.before(here))
            _end_at(result, body, int(positions[here]), end)
            return result
        pending = characters[-1] == _OPEN
        last_open = int(positions[-1]) if pending else -1
        depth = int(depths[-1])
        _note(result, body, step.before(-1) if pending else step)
    return result


def _end_at(result: ListLevels, body: bytes, position: int, end: int) -> None:
    """Note that the list at a position is too deep."""
    opening = _OPENING.match(body, position, min(end, position + STEP_BYTES))
    opened = body.count(b"[", position, opening.end()) if opening else 1
    result.depth = MAX_LEVELS + opened
    result.levels[0].size = result.levels[0].commas + 1


class _Marks(NamedTuple):
    """Brackets and commas of a step: their positions in the body, characters and depths."""

    positions: np.ndarray
    characters: np.ndarray
    depths: np.ndarray

    def before(self, end: int) -> _Marks:
        """Return all marks before the one of an index."""
        return _Marks(self.positions[:end], self.characters[:end], self.depths[:end])


def _note(result: ListLevels, body: bytes, step: _Marks) -> None:
    """Add what a step has of the list."""
    if len(step.positions):
        _note_cuts(result, step)
        _note_levels(result, body, step)


def _note_cuts(result: ListLevels, step: _Marks) -> None:
    """Add where the list can be cut."""
    positions, characters, depths = step
    is_comma = characters == COMMA
    for places in _last_of_each_part(positions, np.flatnonzero(is_comma)):
        result.cuts.append((int(positions[places]), int(depths[places])))
    in_rows = np.flatnonzero(is_comma & (depths == 1))
    before = result.levels[0].commas if result.levels else 0
    for place in _last_of_each_part(positions, in_rows):
        count = before + int(np.searchsorted(in_rows, place)) + 1
        result.row_cuts.append((int(positions[place]), count))


def _last_of_each_part(positions: np.ndarray, places: np.ndarray) -> list[int]:
    """Return the last of the `places` in each CUT_BYTES of the text."""
    if not len(places):
        return []
    parts = positions[places] // CUT_BYTES
    is_last = np.append(parts[1:] != parts[:-1], True)
    last: list[int] = places[is_last].tolist()
    return last


def _note_levels(result: ListLevels, body: bytes, step: _Marks) -> None:
    """Add what a step has of each level."""
    positions, characters, depths = step
    is_open, is_close, is_comma = (characters == each for each in (_OPEN, _CLOSE, COMMA))
    is_empty = _are_empty(body, positions, is_open, is_close)
    # A closing bracket belongs to the level above its depth.
    of_level = (depths + is_close).astype(np.uint8)
    order = np.argsort(of_level, kind="stable")  # in linear time for integers of 8 bits
    ends = np.cumsum(np.bincount(of_level)).tolist()
    while len(result.levels) < len(ends) - 1:
        result.levels.append(Level())
    for level, begin, stop in zip(result.levels, ends, ends[1:], strict=False):
        if begin == stop:
            continue
        pause_if_due()
        here = order[begin:stop]
        is_end = is_close[here] | is_comma[here]
        here = here[is_end]
        level.opened += stop - begin - len(here)
        _note_sizes(level, is_close[here], is_empty[here])


def _note_sizes(level: Level, is_close: np.ndarray, is_empty: np.ndarray) -> None:
    """Add the closing brackets and the commas of a level, in order."""
    closes = np.flatnonzero(is_close)
    if not len(closes):
        level.commas += len(is_close)
        return
    sizes = np.diff(closes, prepend=-1)
    sizes[0] += level.commas
    sizes[is_empty[closes]] = 0
    level.commas = len(is_close) - 1 - int(closes[-1])
    if level.size < 0:
        level.size = int(sizes[0])
    level.sizes.update(np.unique(sizes).tolist())
    level.elements += int(sizes.sum())


def _are_empty(
    body: bytes, positions: np.ndarray, is_open: np.ndarray, is_close: np.ndarray
) -> np.ndarray:
    """Return which closing brackets end a list that has nothing but white space in it."""
    is_empty = np.zeros(len(positions), np.bool_)
    closes = np.flatnonzero(is_close[1:] & is_open[:-1]) + 1
    distances = positions[closes] - positions[closes - 1]
    is_empty[closes[distances == 1]] = True
    closes = closes[distances > 1]
    following = np.frombuffer(body, np.uint8)[positions[closes - 1] + 1]
    for place in closes[_IS_SPACE[following]].tolist():
        pause_if_due()
        match = _SPACE.match(body, int(positions[place - 1]) + 1)
        is_empty[place] = match is not None and match.end() == positions[place]
    return is_empty
