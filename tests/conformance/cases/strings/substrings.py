"""Substr and StringLength: units, negative positions, broadcasting, errors."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import case

TEXTS = np.array(["aé日\U0001f600", b"\xff\xc3", b"\xe6\x97", b"\x80\x80a", ""], object)
UNITS = ("BYTE", "UTF8_CHAR")
TABLE = [["ab", "cd"], ["ef", "gh"]]
DEEP = np.full((2, 1, 2, 1, 2), b"abc", object)
ARGUMENTS = [
    (["hello", "world"], 1, 2),
    (["hello", "world"], [1, 2], [2, 1]),
    (["hello", "world"], -3, 2),
    (["hello", "wo"], -3, 2),
    (["hello"], 6, 1),
    (["hello"], 5, 1),
    (["hello"], 1, -1),
    ("hello", 1, 10),
    (["aé日b"], 1, 2),
    (["aé日b"], -2, 2),
    (["aé日b"], 4, 2),
    (["aé日b"], -5, 2),
    (["aé日b"], 1, -2),
    (TABLE, [0, 1], [1, 1]),
    (TABLE, [[0], [1]], [[1], [1]]),
    (["a", "b", "c"], [0, 1], [1, 1]),
    ("abc", [0, 1], [1, 1]),
    (["abc"], [0, 1], [1]),
    (["ab"], 3, 0),
    (["ab"], -2, 5),
    ([["ab"]], [0, 1], [1, 1]),
    (["ab", "cd"], [[0, 0]], [[1, 1]]),
    (["hello"], [0, 7], [1, 1]),
    ("hello", -7, 1),
    (np.array([b"\xff\xfeab", b"\x80a"], object), 1, 2),
    (DEEP, np.ones(DEEP.shape, np.int32), np.ones(DEEP.shape, np.int32)),
    (DEEP, 1, 1),
    (np.empty((0, 2), object), 1, 1),
]

CASES = (
    *(case("StringLength", given, unit=unit) for given in (TEXTS, "é", TABLE) for unit in UNITS),
    case("StringLength", np.empty((0, 2), object)),
    *(
        case("Substr", *arguments, unit=unit, message=True)
        for arguments in ARGUMENTS
        for unit in UNITS
    ),
    case("Substr", DEEP, [0, 1], [1, 1], message=True),
    case("Substr", ["hello"], np.int64(-2), np.int64(2)),
)
