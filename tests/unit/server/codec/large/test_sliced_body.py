"""Large bodies whose arrays are read apart, and those that have to be read as a whole."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from server.codec.large import number_slices, sliced_body
from server.codec.large.number_array import NumberArray
from server.codec.large.number_slices import PYTHON_WORDS, RAPIDJSON_WORDS
from server.codec.large.sliced_body import MIN_ARRAY_BYTES, UnusualJson, read_sliced
from server.codec.serving.tolerant_json import parse_tolerant

COUNT = MIN_ARRAY_BYTES // 4  # numbers like 0.5, which are large enough
BIG = "[" + ", ".join(["0.5"] * COUNT) + "]"
RAPIDJSON = UnusualJson(parse_tolerant, RAPIDJSON_WORDS)
PYTHON = UnusualJson(json.loads, PYTHON_WORDS)


def read(text: str, *keys: str, unusual: UnusualJson = PYTHON) -> Any:
    return read_sliced(text.encode(), keys or ("a", "b"), unusual)


def shapes(value: Any) -> Any:
    """`value` with the shapes of its NumberArrays in their places."""
    if isinstance(value, dict):
        return {key: shapes(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shapes(item) for item in value]
    return value.shape if isinstance(value, NumberArray) else value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'{{"a": {BIG}}}', {"a": (COUNT,)}),
        (f'{{"a": [{BIG},{BIG}], "b": 1}}', {"a": (2, COUNT), "b": 1}),
        (
            f'{{"x": [1], "a": {{"y": {BIG}, "z": [2]}}}}',
            {"x": [1], "a": {"y": (COUNT,), "z": [2]}},
        ),
        (f'{{"a": [{BIG}, [[1]], {BIG}, 5, []]}}', {"a": [(COUNT,), [[1]], (COUNT,), 5, []]}),
        (f'{{"a": [{{"y": {BIG}}}, {{"y": {BIG}}}]}}', {"a": [{"y": (COUNT,)}] * 2}),
        (f'{{"\\\\\\"a[": "]\\\\", "a": {BIG}}}', {'\\"a[': "]\\", "a": (COUNT,)}),
        (f'{{"a": 1, "a": {BIG}}}', {"a": (COUNT,)}),
        (f'{{"a": ["x", {BIG}, [{BIG}], "y"]}}', {"a": ["x", (COUNT,), (1, COUNT), "y"]}),
        (f'{{"a": ["x", {BIG}]}}', {"a": ["x", (COUNT,)]}),
        (f'{{"a": [[["x"], [{BIG}]]]}}', {"a": [[["x"], (1, COUNT)]]}),
        (f'{{"a": [[[{BIG}], ["x"]]]}}', {"a": [[(1, COUNT), ["x"]]]}),
    ],
)
def test_large_arrays_are_read_apart(text: str, expected: Any) -> None:
    assert shapes(read(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, 2]}',  # small
        f"[{BIG}]",  # no object
        f'{{"c": {BIG}}}',  # where no tensor is
        f'{{"a": {BIG}, "c": {BIG}}}',
        f'{{"a": {BIG}, "a": 1}}',  # replaced by a later value
        f'{{{BIG}: 1, "a": 1}}',  # a list as a key
        f'{{"a": {BIG}, "b": "{"x" * sliced_body.MAX_REST_BYTES}"}}',
        f'{{"a": {BIG}',
        f'{{"a": {BIG}}}}}',
        f'{{"a": {BIG} {BIG}}}',
        f'{{"a": {BIG[:-1]},]}}',
        f'{{"a": {BIG[:-1]},1 2]}}',
        f'{{"a": {BIG[:-1]},true]}}',
        f'{{"a": {BIG[:-1]},"b"]}}',
        f'{{"a": [{BIG[:-1]},],{BIG[:-1]},]]}}',  # as many commas as in two rows of COUNT + 1
        f'{{"b": "{chr(92) * 100}", "a": {BIG}}}',
        f'{{"a": {BIG}, "b": "',
        f'{{"a": {BIG}, "b": [{"[" * 1000}{"]" * 1000}]}}',
    ],
)
def test_other_bodies_are_read_as_a_whole(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'{{"a": [1, {{"y": {BIG}}}, {{"y": [2]}}]}}', {"a": [1, {"y": (COUNT,)}, {"y": [2]}]}),
        (f'{{"a": [{{"y": {BIG}, "z": {BIG}}}]}}', None),
        (f'{{"a": [{{"y": [{{"y": {BIG}}}]}}]}}', None),
        (f'{{"a": [{{"y": ["x", {BIG}]}}]}}', None),
        (f'{{"a": [{{"y": {BIG}}}], "b": {BIG}}}', None),
        (f'{{"a": [{BIG}]}}', None),
        (f'{{"a": {{"y": {BIG}}}}}', None),
    ],
)
def test_arrays_may_be_one_member_only(text: str, expected: Any) -> None:
    assert shapes(read_sliced(text.encode(), ("a",), PYTHON, "y")) == expected


@pytest.mark.parametrize("size", range(4, 30))
def test_a_comma_without_an_element_is_noticed_wherever_slices_end(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sliced_body, "MIN_ARRAY_BYTES", 4)
    monkeypatch.setattr(number_slices, "SLICE_BYTES", size)
    for array in ("[[1,2,],[3,4,]]", "[[,1,2],[,3,4]]", "[[1,,2],[3,,4]]", "[[1],[]]", "[,1]"):
        assert read(f'{{"a": {array}}}') is None, array


def test_text_that_is_not_utf_8_is_read_as_a_whole() -> None:
    assert read_sliced(f'{{"a": {BIG}, "b": "'.encode() + b'\xff"}', ("a",), RAPIDJSON) is None


def test_words_for_numbers_that_are_not_finite() -> None:
    read_numbers = read(f'{{"a": [NaN, Infinity, {BIG[1:]}, "b": 1}}')["a"]
    values = read_numbers.floats(np.dtype(np.float64))
    np.testing.assert_array_equal(values[:3], [np.nan, np.inf, 0.5])
    assert read(f'{{"a": {BIG}, "b": NaN}}')["b"] != 0
    assert read(f'{{"a": [Inf, {BIG[1:]}}}') is None
    assert shapes(read(f'{{"a": [Inf, {BIG[1:]}}}', unusual=RAPIDJSON)) == {"a": (COUNT + 1,)}


def test_equal_keys_are_resolved_as_the_parser_of_unusual_json_does() -> None:
    text = f'{{"a": [NaN, {BIG[1:]}, "b": 1, "b": 2}}'
    assert read(text)["b"] == 2
    assert read(text, unusual=RAPIDJSON)["b"] == 2
    assert read(text.replace("NaN", "1.5"), unusual=RAPIDJSON)["b"] == 2


def test_many_strings_are_not_searched_for_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    find = sliced_body.find
    monkeypatch.setattr(sliced_body, "find", lambda *a: (calls.append(1), find(*a))[1])
    strings = ",".join(['""'] * 100_000)
    assert read(f'{{"a": [{strings}], "b": {BIG}}}') is None
    assert len(calls) < 2000


def test_a_ragged_list_of_many_elements_is_read_as_a_whole() -> None:
    assert read(f'{{"a": [{BIG}, {", ".join(["1"] * 300)}]}}') is None


def test_a_body_leaves_no_pattern_in_the_cache_of_re(monkeypatch: pytest.MonkeyPatch) -> None:
    # Python caches compiled patterns; one for each body keeps memory that was used beside it.
    compiled: list[object] = []
    compile_pattern = re.compile

    def noted(pattern: Any, flags: int = 0) -> Any:
        compiled.append(pattern)
        return compile_pattern(pattern, flags)

    monkeypatch.setattr(re, "compile", noted)
    assert shapes(read(f'{{"a": {BIG}}}')) == {"a": (COUNT,)}
    assert compiled == []
