"""A large body has the value, or the error, that the reader of small bodies gives, in both APIs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.errors import InvalidArgumentError
from server.codec.json_body import parse_json, parse_large_json
from server.codec.large import large_body, large_values, list_levels, structure
from server.codec.large.large_body import LargeBody
from server.codec.large.large_values import LargeList, LargeText
from server.codec.serving.serving_dialect import SERVING_JSON
from server.codec.serving.tolerant_json import parse_tolerant

SCALARS = [
    "NaN", "Infinity", "-Infinity", "-NaN", "Inf", "Infinit", "1e400", "1", "-0", "0.5", "01",
    "12345678901234567890123", "true", "nul", "null", "[]", "{}", '"a"', '"abcdefghij"',
    '"é\\u00e9xxxxxxxxxxxxxx"', r'"\ud83d\ude00\ud83d\ude00aaaaaaaaaaaa"', '"' + "\\\\" * 9 + '"',
    '{"a":1}', '{"a":NaN,"a":2}', "[1,2,[3,4],5,6,7,8]", f'"{"q" * 40}"',
]  # fmt: skip
NAMES = ["a", "b", "instances", "longnamelongname", "é" * 9]
SPACE = ["", "", " ", "\n", "\n\t " * 5]
JUNK = [
    *(bytes((byte,)) for byte in b'[], 1-.eNa"{}:\\\n\xff\x00'), "é".encode(), b"\xef\xbb\xbf",
    b"\\u", b"\\ud800", b"[" * 9, b"]" * 4, b"{" * 5, b"NaN", b"1e999", b"[" * 1100,
]  # fmt: skip


def lists(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(st.lists(values, max_size=6), st.sampled_from(SPACE)).map(
        lambda each: "[" + f",{each[1]}".join(each[0]) + each[1] + "]"
    )


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    members = st.lists(st.tuples(st.sampled_from(NAMES), values), max_size=4)
    return st.tuples(members, st.sampled_from(SPACE)).map(
        lambda each: "{" + f"{each[1]},".join(f'"{name}":{each[1]}{v}' for name, v in each[0]) + "}"
    )


VALUES = st.recursive(
    st.sampled_from(SCALARS), lambda inner: lists(inner) | objects(inner), max_leaves=25
)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    text = draw(VALUES).encode()
    if draw(st.booleans()):
        text = b'{"feeds": %b, "%b": %b}' % (
            text, draw(st.sampled_from(NAMES)).encode(), draw(VALUES).encode()
        )  # fmt: skip
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        place, removed = draw(st.integers(0, len(text))), draw(st.integers(0, 2))
        text = text[:place] + draw(st.sampled_from([b"", *JUNK])) + text[place + removed :]
    if draw(st.integers(0, 9)) == 0:
        text = text[: draw(st.integers(0, len(text)))]
    before = draw(st.sampled_from(["", "", "", "  ", "\n" * 20]))
    after = draw(st.sampled_from(["", "", "", " ", " x", '"', "[1", "NaN", "]"]))
    return before.encode() + text + after.encode()


def whole(item: Any) -> Any:
    """The value of what stays in place in large bodies."""
    if isinstance(item, LargeText):
        return item.content().decode("utf-8", "surrogateescape")
    if isinstance(item, LargeList):
        rows: list[Any] = []
        for _, part in item.rows():
            rows += map(whole, part)
        return rows
    if isinstance(item, dict):
        return {key: whole(each) for key, each in item.items()}
    return list(map(whole, item)) if isinstance(item, list) else item


def outcome(read: Callable[[], Any]) -> str:
    try:
        return repr(whole(read()))
    except InvalidArgumentError as error:
        return error.message


def small_document(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return parse_tolerant(body)


@pytest.fixture(autouse=True, params=[7, 40], scope="module")
def _small_limits(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structure, "SCANNED_BYTES", request.param)
        patch.setattr(structure, "MIN_STRING", 6)
        patch.setattr(list_levels, "CUT_BYTES", 8)
        patch.setattr(large_body, "MIN_LIST_BYTES", 10)
        patch.setattr(large_values, "TEXT_BYTES", 24)
        yield


@settings(max_examples=400, deadline=None)
@given(bodies())
def test_bodies_of_sessions(body: bytes) -> None:
    small = outcome(lambda: parse_json(body))
    assert outcome(lambda: parse_large_json(body, ("feeds",))) == small


@settings(max_examples=400, deadline=None)
@given(bodies())
def test_bodies_of_tensorflow_serving(body: bytes) -> None:
    small = outcome(lambda: small_document(body))
    assert outcome(lambda: LargeBody(body, SERVING_JSON).value()) == small
