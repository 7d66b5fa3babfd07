"""Large bodies mean what an ordinary parser makes of them, wherever they are cut."""

from __future__ import annotations

import base64
import binascii
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from runtime.errors import InvalidArgumentError
from server.codec.large import large_body, large_values, list_levels, structure
from server.codec.large.dialect import JsonFaultError
from server.codec.large.first_fault import value_bounds
from server.codec.large.large_body import LargeBody
from server.codec.large.large_values import DeepListError, LargeList, LargeText
from server.codec.large.session_dialect import SESSION_JSON, parse_session_text
from server.codec.serving import serving_dialect
from server.codec.serving.serving_dialect import SERVING_JSON
from server.codec.serving.tolerant_json import parse_tolerant

CHARACTERS = ["a", '"', "\\", "é", "😀", "\n", "/", "[", "]", "{", "}", ",", "u"]


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is large, so that small texts are cut everywhere."""
    monkeypatch.setattr(structure, "SCANNED_BYTES", 37)
    monkeypatch.setattr(structure, "MIN_STRING", 20)
    monkeypatch.setattr(list_levels, "CUT_BYTES", 16)
    monkeypatch.setattr(large_body, "MIN_LIST_BYTES", 24)
    monkeypatch.setattr(large_values, "TEXT_BYTES", 48)
    monkeypatch.setattr(large_values, "MAX_SLICE_BYTES", 64)
    monkeypatch.setattr(large_body, "MAX_SLICE_BYTES", 64)


def text(rng: random.Random) -> str:
    return "".join(rng.choices(CHARACTERS, k=rng.choice([0, 1, 3, 30, 80, 200])))


def value(rng: random.Random, depth: int) -> Any:
    kind = rng.random()
    if depth <= 0 or kind < 0.3:
        return rng.choice([1, -2.5, True, None, text(rng), {"b64": text(rng)}, []])
    if kind < 0.8:
        return [value(rng, depth - 1) for _ in range(rng.choice([0, 1, 2, 5]))]
    return {str(index): value(rng, depth - 1) for index in range(rng.choice([0, 1, 3]))}


def flat(item: Any) -> Iterator[Any]:
    if isinstance(item, list):
        for element in item:
            yield from flat(element)
    else:
        yield item


def shape_of(item: list[Any]) -> tuple[int, ...] | None:
    level: list[Any] = [item]
    shape = []
    while level and isinstance(level[0], list):
        if not all(isinstance(each, list) for each in level) or len(set(map(len, level))) > 1:
            return None
        shape.append(len(level[0]))
        level = [element for each in level for element in each]
    return None if any(isinstance(each, list) for each in level) else tuple(shape)


def read_whole(item: Any) -> Any:
    """The value of an item; checks every way to read a LargeList."""
    if isinstance(item, LargeText):
        return item.content().decode()
    if isinstance(item, LargeList):
        rows: list[Any] = []
        for index, part in item.rows():
            assert index == len(rows)
            rows += map(read_whole, part)
        leaves = [read_whole(leaf) for part in item.leaves() for leaf in part]
        assert leaves == list(flat(rows))
        assert item.levels.shape == shape_of(rows)
        assert item.size == len(rows)
        assert list(map(read_whole, item.elements())) == rows
        return rows
    if isinstance(item, dict):
        return {key: read_whole(each) for key, each in item.items()}
    return list(map(read_whole, item)) if isinstance(item, list) else item


@pytest.mark.parametrize("seed", range(8))
def test_a_body_has_the_value_that_a_parser_gives(seed: int) -> None:
    rng = random.Random(seed)
    compared = 0
    for _ in range(40):
        document = {"feeds": value(rng, rng.choice([2, 4, 5])), "x": value(rng, 2)}
        indent = rng.choice([None, None, 1])
        body = json.dumps(document, ensure_ascii=rng.random() < 0.5, indent=indent).encode()
        try:
            read = read_whole(LargeBody(body, SESSION_JSON).value(["feeds"]))
        except InvalidArgumentError as error:
            assert "An element of a list has" in error.message
            continue
        assert read == document
        compared += 1
    assert compared > 30


@pytest.mark.parametrize("seed", range(4))
def test_strings_are_cut_between_characters_and_escapes(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        content = "".join(rng.choices(CHARACTERS, k=300))
        body = json.dumps(content, ensure_ascii=rng.random() < 0.5).encode()
        assert LargeText(body, 1, len(body) - 1, parse_session_text).content().decode() == content


@pytest.mark.parametrize(
    "body",
    [
        b'{"feeds": {"x": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, oops, 12]}}',
        b'{"feeds": {"x": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, "x\n"]}}',
        b'{"feeds": {"x": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 11, 12]}}',
        b'{"feeds": {"x": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}, }',
        b'{"feeds": {"x": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], "y" 3}}',
        b'{"feeds": {"x": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}',
        b'{"feeds": {"x": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}}',
        b'{"feeds": {"x": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\taaaaaa"}}',
        b'{"feeds": {"x": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xffaaaaaa"}}',
        b'{"feeds": {"x": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\qaaaaaa"}}',
    ],
)  # fmt: skip
def test_faults_are_reported_at_their_place_in_the_body(body: bytes) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        read_whole(LargeBody(body, SESSION_JSON).value(["feeds"]))
    assert "The body is not valid JSON: " in caught.value.message
    try:
        parse_session_text(body)
    except JsonFaultError as fault:
        place = f"line 1 column {fault.position + 1} (char {fault.position})"
    if body.isascii():
        assert caught.value.message.endswith(place)
    else:
        assert "str is not valid UTF-8" in caught.value.message


def test_what_is_neither_a_list_nor_a_string_must_be_small(monkeypatch) -> None:
    monkeypatch.setattr(large_body, "MAX_REST_BYTES", 100)
    body = json.dumps({str(index): {} for index in range(30)}).encode()
    with pytest.raises(InvalidArgumentError, match="bytes beside its large lists and strings"):
        LargeBody(body, SESSION_JSON).value([])


def test_the_name_of_a_member_may_be_large() -> None:
    for name in (b"x" * 30, rb"\u00e9\n" * 9):
        body = b'{"feeds": {"a": 1, "%b": [2], "a": 3}}' % name
        read = LargeBody(body, SESSION_JSON).value(["feeds"])
        assert read == json.loads(body)


@pytest.mark.parametrize("before", [0, 1, 9])
@pytest.mark.parametrize("depth", [66, 300])
def test_an_element_with_lists_too_deep_is_refused_after_those_before_it(
    depth: int, before: int
) -> None:
    deep = b"[" * (depth - 1) + b"]" * (depth - 1)
    body = b'{"feeds": [%b]}' % b", ".join([b"[1, 2]"] * before + [deep] + [b"[3]"] * 9)
    large = LargeBody(body, SESSION_JSON).value(["feeds"])["feeds"]
    assert large.levels.is_too_deep and large.levels.shape is None
    assert large.size == before + 1
    rows: list[Any] = []
    with pytest.raises(DeepListError, match="Lists are nested over 64 deep") as caught:
        for _, part in large.rows():
            rows += part
    assert rows == [[1, 2]] * before
    assert (caught.value.index, caught.value.depth) == (before, depth)


def test_nothing_is_looked_at_after_a_list_that_is_too_deep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    def counted(*arguments: Any) -> Iterator[Any]:
        for step in structure.marks(*arguments):
            seen.append(step)
            yield step

    monkeypatch.setattr(list_levels, "marks", counted)
    body = b"[" + b",".join([b"[" * 99 + b"]" * 99] * 50) + b"]"
    assert list_levels.list_levels(body, 0, len(body)).is_too_deep
    assert len(seen) == 2  # of 37 characters each


@pytest.mark.parametrize("text", [b"[" * 50_000, b"[" * 50_000 + b"1" + b"]" * 50_000])
def test_deep_lists_are_checked_by_the_quick_parser(
    text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one piece they would be too deep for it; the other one takes 5 µs for each of them."""
    monkeypatch.setattr(structure, "SCANNED_BYTES", 1 << 18)
    slow = []

    def noted(part: bytes, **options: Any) -> Any:
        slow.append(len(part))
        return parse_tolerant(part, **options)

    monkeypatch.setattr(serving_dialect, "parse_tolerant", noted)
    if text.endswith(b"]"):
        assert value_bounds(text, SERVING_JSON) == (0, len(text))
    else:
        with pytest.raises(InvalidArgumentError, match=r"Invalid value\. at offset: 50000"):
            value_bounds(text, SERVING_JSON)
    assert sum(slow) < 2000


@pytest.mark.parametrize(
    "tail", ["", "=", "==", "=a", "QQ==", "QUI=", "Q", "QU", "QUI", "Q=", "*A"]
)
def test_base64_has_the_value_or_the_fault_of_the_whole(tail: str) -> None:
    for content in ("QUJD" * 40 + tail, tail + "QUJD" * 40, "QUJD" * 12 + tail + "QUJD" * 12):
        body = f'"{content}"'.encode()
        large = LargeText(body, 1, len(body) - 1, parse_session_text)
        try:
            expected = binascii.a2b_base64(content, strict_mode=True)
        except binascii.Error:
            with pytest.raises(binascii.Error):
                large.base64()
        else:
            assert large.base64() == expected


def test_tolerant_base64_accepts_white_space_and_missing_padding() -> None:
    content = base64.b64encode(bytes(range(200))).decode().rstrip("=")
    spaced = "\\n ".join(content[begin : begin + 7] for begin in range(0, len(content), 7))
    body = f'"{spaced}"'.encode()
    assert LargeText(body, 1, len(body) - 1, parse_session_text).base64(is_tolerant=True) == bytes(
        range(200)
    )
