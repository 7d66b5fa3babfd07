"""ReduceJoin, UnsortedSegmentJoin, StringNGrams."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import case

TABLE = [["a", "b"], ["c", "d"]]
CUBE = [[["a", "b"], ["c", "d"]], [["e", "f"], ["g", "h"]]]
NO_ROWS = np.empty((0, 2), object)
NO_COLUMNS = np.empty((2, 0), object)
NONE = np.empty(0, np.int32)
REDUCTIONS = [
    *((TABLE, axes) for axes in (0, 1, [0, 1], [1, 0], [-2, -1], NONE, [0], 2, -3, [0, 0], [[0]])),
    *((CUBE, axes) for axes in ([2, 0], [1], [0, 1, 2], [-1, 1])),
    *((NO_ROWS, axes) for axes in (0, 1, [0, 1])),
    *((NO_COLUMNS, axes) for axes in (0, 1)),
    ("a", NONE),
    ("a", 0),
]
SEGMENTS = [
    (["a", "b", "c"], [1, 0, 1], 3),
    (TABLE, [1, 1], 2),
    (TABLE, [[1, 0], [0, 1]], 2),
    (CUBE, [1, 0], 2),
    (["a"], [5], 2),
    (["a"], [-1], 2),
    (["a"], [0], -1),
    (["a"], [0], [2]),
    (np.empty(0, object), NONE, 2),
    (np.empty(0, object), NONE, 0),
    ("a", 0, 1),
    (["a", "b"], np.array([0, 1], np.int64), np.int64(2)),
]
TOKENS = ["aa", "bb", "cc", "dd", "ee", "ff"]
SPLITS = [[0, 4, 4, 6], [0, 6], [0, 1, 2, 6], [0, 0, 0, 6]]
BAD_SPLITS = [[1, 6], [0, 7, 6], [0, 4, 3, 6], [0, 5], [0, -1, 6]]
WINDOWS = [[1], [2], [3], [1, 2], [3, 1], [5]]


def ngrams(tokens: object, splits: object, widths: list[int], **options: object) -> object:
    settings: dict[str, object] = {
        "separator": "|",
        "left_pad": "",
        "right_pad": "",
        "pad_width": 0,
        "preserve_short_sequences": False,
    }
    settings |= options
    return case("StringNGrams", tokens, splits, ngram_widths=tuple(widths), **settings)


PADDINGS: list[dict[str, object]] = [
    {},
    {"left_pad": "L", "right_pad": "R", "pad_width": -1},
    {"left_pad": "L", "right_pad": "R", "pad_width": 1},
    {"left_pad": "L", "right_pad": "R", "pad_width": 5},
    {"preserve_short_sequences": True},
    {"left_pad": "L", "pad_width": 1, "preserve_short_sequences": True},
]
REFUSED: list[tuple[list[int], dict[str, object]]] = [
    ([], {"pad_width": -5, "preserve_short_sequences": True}),
    ([2, 0], {}),
    ([-1], {"pad_width": -1}),
    ([2**30], {"pad_width": -(2**30)}),
    ([2**31 - 1], {"pad_width": 2**30 + 5}),
]

CASES = (
    *(
        case("ReduceJoin", given, axes, keep_dims=keep, separator="-", message=True)
        for given, axes in REDUCTIONS
        for keep in (False, True)
    ),
    *(case("UnsortedSegmentJoin", *given, separator="-", message=True) for given in SEGMENTS),
    case("UnsortedSegmentJoin", ["a", "b"], [1], 2),
    *(
        ngrams(TOKENS, np.array(splits, np.int64), widths, **padding)
        for splits in SPLITS
        for widths in WINDOWS
        for padding in PADDINGS
    ),
    ngrams(TOKENS, np.array(SPLITS[0], np.int32), [2]),
    ngrams(np.empty(0, object), np.array([0, 0], np.int64), [2], pad_width=-1),
    ngrams(np.empty(0, object), np.empty(0, np.int64), [2]),
    *(ngrams(TOKENS, np.array(splits, np.int64), [2], message=True) for splits in BAD_SPLITS),
    ngrams(TOKENS, np.empty(0, np.int64), [2], message=True),
    ngrams(TOKENS[0], np.empty(0, np.int64), [2]),
    ngrams([TOKENS[:2], TOKENS[2:4]], np.empty(0, np.int64), [2]),
    *(
        ngrams(TOKENS, np.array([0, 1, 6], np.int64), widths, message=True, **options)
        for widths, options in REFUSED
    ),
    ngrams(TOKENS, np.array([0, 1, 6], np.int64), [], pad_width=1, preserve_short_sequences=True),
    ngrams(TOKENS, np.array([0, 1, 6], np.int64), [], pad_width=-5),
)
