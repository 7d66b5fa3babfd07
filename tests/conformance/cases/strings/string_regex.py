"""RE2: full matches and replacements, empty matches, bad patterns, bad rewrites."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import case

TEXTS = np.array(["abab", "bb", "é", "", "ÿa", b"\xff", b"a\xc3", "a\nb", "日本語"], object)
PATTERNS = ["a(b)?", "a*", "", ".", "^b", "[^\\x00-\\x7f]", "\\bb", "(a|b)+", "(?i)A", "\\pL", "."]
REWRITES = [
    (r"(a)(b)", r"[\2\1\0]", True),
    ("a", r"\1", True),
    ("a", r"\9", False),
    ("a", r"x\q", True),
    ("a", r"x\q", False),
    ("a", "\\", True),
    ("a", r"\\", True),
    ("b*", "z", False),
    ("b*", "z", True),
    ("[!\"#$%&()\\*\\+,-\\./:;<=>?@\\[\\\\\\]^_`{|}~\\']", "", True),
]
BAD = ["(", "a{1001}", "(?=b)", "[z-a]", "\\C\\8"]

CASES = (
    *(case("StaticRegexFullMatch", TEXTS, pattern=pattern) for pattern in PATTERNS),
    *(case("RegexFullMatch", TEXTS, pattern) for pattern in PATTERNS),
    *(
        case("StaticRegexReplace", TEXTS, pattern=pattern, rewrite="-", replace_global=every)
        for pattern in PATTERNS
        for every in (True, False)
    ),
    *(
        case("StaticRegexReplace", TEXTS, pattern=pattern, rewrite=rewrite, replace_global=every)
        for pattern, rewrite, every in REWRITES
    ),
    *(
        case("RegexReplace", TEXTS, pattern, rewrite, replace_global=every)
        for pattern, rewrite, every in REWRITES
    ),
    case("RegexReplace", "scalar", "a", "b"),
    case("StaticRegexReplace", np.empty((0, 2), object), pattern="a", rewrite="b"),
    case("StaticRegexFullMatch", np.empty((0, 2), object), pattern="a"),
    case("StaticRegexFullMatch", "a", pattern="a"),
    *(case("StaticRegexFullMatch", "a", pattern=pattern, message=True) for pattern in BAD),
    *(case("RegexFullMatch", "a", pattern, message=True) for pattern in BAD),
    *(case("StaticRegexReplace", "a", pattern=bad, rewrite="", message=True) for bad in BAD),
    *(case("RegexReplace", "a", pattern, "", message=True) for pattern in BAD),
    case("RegexFullMatch", "a", ["a"], message=True),
    case("RegexReplace", "a", ["a"], "", message=True),
    case("RegexReplace", "a", "a", [""], message=True),
)
