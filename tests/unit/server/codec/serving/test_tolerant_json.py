"""The tolerant parser: what it forgives, and RapidJSON's words and offsets for the rest."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.foundation.errors import InvalidArgumentError
from server.codec.serving.tolerant_json import MAX_DEPTH, parse_tolerant

FORGIVEN: list[tuple[bytes, Any]] = [
    (b"[Inf, -Inf, Infinity, -Infinity]", [math.inf, -math.inf, math.inf, -math.inf]),
    (b'{"a": 1} trailing', {"a": 1}),
    (b"[1]]]", [1]),
    (b'\xef\xbb\xbf{"a": []}', {"a": []}),
    (b'{"a": 1, "a": 2}', {"a": 2}),
    (b'"\xff"', "\udcff"),
    (rb'"\ud83d\ude00\u00e9\/\n"', "\N{GRINNING FACE}\u00e9/\n"),
    (b"[18446744073709551615, 18446744073709551616]", [2**64 - 1, 18446744073709551616.0]),
    (b" -0 ", 0),
    (b"1e-400", 0.0),
]

REFUSED: list[tuple[bytes, str, int]] = [
    (b" ", "The document is empty.", 1),
    (b"[1,", "Invalid value.", 3),
    (b"[1 2]", "Missing a comma or ] after an array element.", 3),
    (b'{"a" 1}', "Missing a colon after a name of object member.", 5),
    (b"{1:2}", "Missing a name for object member.", 1),
    (b'{"a":1,}', "Missing a name for object member.", 7),
    (b'{"a":1 "b":2}', "Missing a comma or } after an object member.", 7),
    (b'"abc', "Missing a closing quotation mark in string.", 4),
    (b'"\x01"', "Invalid encoding in string.", 1),
    (rb'"\x"', "Invalid escape character in string.", 1),
    (rb'"\u00zz"', "Incorrect hex digit after \\u escape in string.", 1),
    (rb'"\ud800"', "The surrogate pair in string is invalid.", 1),
    (rb'"\udc00"', "The surrogate pair in string is invalid.", 1),
    (b"[1.]", "Miss fraction part in number.", 3),
    (b"[1e]", "Miss exponent in number.", 3),
    (b"[01]", "Missing a comma or ] after an array element.", 2),
    (b"1e400", "Number too big to be stored in double.", 0),
    (b"[nul]", "Invalid value.", 4),
    (b"-nan", "Invalid value.", 1),
    (b"-Infinitx", "Invalid value.", 8),
    ('["é", x]'.encode(), "Invalid value.", 7),
]


@pytest.mark.parametrize(("body", "value"), FORGIVEN)
def test_forgiven(body: bytes, value: Any) -> None:
    assert parse_tolerant(body) == value


def test_nan() -> None:
    assert math.isnan(parse_tolerant(b"NaN"))


@pytest.mark.parametrize(("body", "what", "offset"), REFUSED)
def test_refused(body: bytes, what: str, offset: int) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        parse_tolerant(body)
    assert raised.value.message == f"JSON Parse error: {what} at offset: {offset}"


def test_depth_is_bounded() -> None:
    with pytest.raises(InvalidArgumentError, match="nested deeper than 1000000 levels"):
        parse_tolerant(b"[" * (MAX_DEPTH + 2))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text()
    | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)  # fmt: skip


@given(JSON_VALUES, st.booleans())
def test_reads_what_json_writes(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=1)
    assert parse_tolerant(text.encode("utf-8", "surrogatepass")) == value


@given(st.text(alphabet='[]{}",:0123456789.eE+-\\utrfalsn NIy'))
def test_never_fails_in_another_way(text: str) -> None:
    try:
        parse_tolerant(text.encode())
    except InvalidArgumentError as error:
        assert " at offset: " in error.message
