"""The shape of a large list, and where it can be cut, from its brackets and commas alone.

A level has the lists at the same depth. A list is regular if all lists of a level have as many
elements and either all elements of a level are lists or none is.
"""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from server.codec.large.slices import pause_if_due
from server.codec.large.structure import COMMA, list_depths, marks, outside_objects

CUT_BYTES = 1 << 16  # a list may be cut about so often
MAX_LEVELS = 256  # lists inside each other; numpy and TensorFlow permit fewer dimensions
_OPEN, _CLOSE = b"[]"
_IS_SPACE = np.zeros(256, np.bool_)
_IS_SPACE[list(b" \t\r\n")] = True
_SPACE = re.compile(rb"[ \t\r\n]*")


@dataclasses.dataclass(slots=True)
class Level:
    """The lists at one depth; `opened` counts those that have begun, `elements` is in all."""

    opened: int = 0
    elements: int = 0
    size: int = -1  # of the first list
    sizes: set[int] = dataclasses.field(default_factory=set)
    commas: int = 0  # of the list that is open
    first_opened: int = -1  # the position of the first list


@dataclasses.dataclass(slots=True)
class ListLevels:
    """The levels of a list, outermost first, and the positions of commas at which it can be cut.

    A cut has the depth of its comma. `row_cuts` are commas between the elements of the outermost
    list, each with the number of elements before it.
    """

    levels: list[Level] = dataclasses.field(default_factory=list)
    cuts: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    row_cuts: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    is_too_deep: bool = False

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of the list; None if it is not regular."""
        return None if self.fault() is not None else tuple(level.size for level in self.levels)

    def fault(self) -> tuple[int, list[int]] | None:
        """Return the first level that is not regular, and the sizes of its lists.

        The sizes are empty if the level has lists beside other values.
        """
        for index, level in enumerate(self.levels):
            inner = self.levels[index + 1].opened if index + 1 < len(self.levels) else 0
            if len(level.sizes) > 1:
                return index, sorted(level.sizes)
            if inner not in (0, level.elements):
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
        if int(depths.max()) > MAX_LEVELS:
            result.is_too_deep = True
            return result
        pending = characters[-1] == _OPEN
        last_open = int(positions[-1]) if pending else -1
        depth = int(depths[-1])
        if pending:
            positions, characters, depths = positions[:-1], characters[:-1], depths[:-1]
        _note_cuts(result, positions, characters, depths)
        _note_levels(result, body, positions, characters, depths)
    return result


def _note_cuts(
    result: ListLevels, positions: np.ndarray, characters: np.ndarray, depths: np.ndarray
) -> None:
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


def _note_levels(
    result: ListLevels,
    body: bytes,
    positions: np.ndarray,
    characters: np.ndarray,
    depths: np.ndarray,
) -> None:
    """Add what a step has of each level."""
    if not len(positions):
        return
    is_open, is_close, is_comma = (
        characters == _OPEN,
        characters == _CLOSE,
        characters == COMMA,
    )
    is_empty = _are_empty(body, positions, is_open, is_close)
    levels = result.levels
    # A closing bracket belongs to the level above its depth.
    of_level = depths + is_close
    for number in range(max(1, int(of_level.min())), int(of_level.max()) + 1):
        pause_if_due()
        while len(levels) < number:
            levels.append(Level())
        level = levels[number - 1]
        is_here = of_level == number
        opens = np.flatnonzero(is_open & is_here)
        if len(opens) and level.first_opened < 0:
            level.first_opened = int(positions[opens[0]])
        level.opened += len(opens)
        ends = np.flatnonzero((is_close | is_comma) & is_here)
        closes = np.flatnonzero(is_close[ends])
        if not len(closes):
            level.commas += len(ends)
            continue
        sizes = np.diff(closes, prepend=-1)
        sizes[0] += level.commas
        sizes[is_empty[ends[closes]]] = 0
        level.commas = len(ends) - 1 - int(closes[-1])
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
