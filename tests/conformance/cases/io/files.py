"""ReadFile, MatchingFiles, WriteFile; paths are relative to the root of the repository."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import case

FILES = "tests/conformance/files/"

CASES = (
    case("ReadFile", FILES + "vocabulary.txt"),
    case("ReadFile", FILES + "empty.txt"),
    case("ReadFile", FILES + "missing.txt", message=True),
    case("ReadFile", [FILES + "empty.txt"]),
    case("MatchingFiles", FILES + "[ew]*.txt"),
    case("MatchingFiles", FILES + "with_*"),
    case("MatchingFiles", FILES + "vocabulary.txt"),
    case("MatchingFiles", FILES + "nothing*"),
    case("MatchingFiles", "tests/conformance/no_folder/*"),
    case("MatchingFiles", "tests/*/files/v?cab[a-u]lary.*"),
    case("MatchingFiles", [FILES + "w*", FILES + "e*"]),
    case("MatchingFiles", np.empty(0, object)),
    case("MatchingFiles", [["a"]]),
    case("WriteFile", ["a"], "b"),
    case("WriteFile", "a", ["b"]),
)
