"""Splitting strings into tokens."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import case

TEXTS = np.array([" a  b ", "a,,b,", "", "  ", "1<>2<>", "é\tx\n", b"\xff \xfe", "a b c d"], object)
EMPTY = np.empty(0, object)

CASES = (
    *(
        case("StringSplitV2", TEXTS, separator, maxsplit=maxsplit)
        for separator in ("", ",", "<>", " ", "é")
        for maxsplit in (-1, 0, 1, 2, 9)
    ),
    *(case("StringSplitV2", given, "") for given in (EMPTY, ["", ""], ["  "])),
    case("StringSplitV2", "scalar", "", message=True),
    case("StringSplitV2", ["a"], [","], message=True),
    *(
        case("StringSplit", TEXTS, separators, skip_empty=skip_empty)
        for separators in ("", " ", ", <>", "ab")
        for skip_empty in (True, False)
    ),
    case("StringSplit", EMPTY, " "),
    case("StringSplit", "scalar", "", message=True),
    case("StringSplit", ["a"], [","], message=True),
)
