"""Parts of strings between matches of a regular expression."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.string_tensor import string_tensor
from runtime.op_packages.text.regex_split import regex_split_with_offsets


def split(text: bytes, delimiter: bytes, kept: bytes = b"") -> list[bytes]:
    tokens, starts, ends, splits = regex_split_with_offsets(
        string_tensor([text]), np.array(delimiter, object), np.array(kept, object)
    )
    assert splits.tolist() == [0, len(tokens)]
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    assert [text[start:end] for start, end in pairs] == tokens.tolist()
    found: list[bytes] = tokens.tolist()
    return found


@pytest.mark.parametrize(
    ("text", "delimiter", "kept", "want"),
    [
        (b"a, b", rb"(,? )", b"", [b"a", b"b"]),
        (b"a, b! ", rb"(\s|\pP)", rb"\pP", [b"a", b",", b"b", b"!"]),
        (b"a b", rb"\s", b"", [b"a b"]),  # without a group nothing is found
        (b"aab", rb"(^a)", b"", [b"b"]),  # what is left is a text of its own
        (b"axbyy", rb"x(b)y", rb"b", [b"ax", b"b", b"y"]),
        (b"a\0 b", rb"( )", b"", [b"a"]),  # the string ends at its first zero
        ("é字é".encode(), rb"(\p{Han})", b".", ["é".encode(), "字".encode(), "é".encode()]),
        (b"", rb"(x)", b"", []),
    ],
)
def test_split(text: bytes, delimiter: bytes, kept: bytes, want: list[bytes]) -> None:
    assert split(text, delimiter, kept) == want


@pytest.mark.parametrize(
    ("delimiter", "kept", "message"),
    [
        (b"(", b"", "Invalid pattern"),
        (b"(a)", b")", "Invalid pattern"),
        (b"(a*)", b"", "must not match the empty string"),
        (b"b|(a)", b"", "first group of the delimiter has no match"),
    ],
)
def test_expressions_that_can_not_divide(delimiter: bytes, kept: bytes, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        split(b"bab", delimiter, kept)


def test_patterns_are_scalars() -> None:
    with pytest.raises(InvalidArgumentError, match=r"Pattern must be scalar, but received \[1\]"):
        regex_split_with_offsets(string_tensor([]), string_tensor([b"a"]), np.array(b"", object))
