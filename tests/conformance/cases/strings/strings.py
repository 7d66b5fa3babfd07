"""StringJoin, StringLower, StringUpper and StringStrip."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import case

WORDS = ["", "a", "Abc DEF", "É ß ΑΣ ﬁ İ", b"\xffA\xc3", " \t x y\r\n\v\f"]
TABLE = np.array(WORDS, object).reshape(2, 3)

CASES = (
    case("StringJoin", ["a", ["x", "y"], [["p", "q"]][0]], separator="-"),
    case("StringJoin", [["a", "b"], ["c", "d"]]),
    case("StringJoin", [TABLE, "!"], separator="é"),
    case("StringJoin", ["a", "b"]),
    case("StringJoin", [np.empty((0, 2), object), "b"]),
    case("StringJoin", [["a", "b"], ["a"]], message=True),
    *(
        case(op, value, encoding=encoding)
        for op in ("StringLower", "StringUpper")
        for encoding in ("", "utf-8")
        for value in (TABLE, "Ab", np.empty((0, 3), object))
    ),
    case("StringLower", "a", encoding="latin-1", message=True),
    case("StringUpper", "a", encoding="latin-1", message=True),
    *(case("StringStrip", value) for value in (TABLE, " a b ", np.empty(0, object))),
)
