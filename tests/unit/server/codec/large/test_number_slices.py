"""Numbers parsed slice by slice, by either parser."""

from __future__ import annotations

import builtins
import functools
from typing import Any

import numpy as np
import pytest

from server.codec.large import number_slices
from server.codec.large.number_slices import (
    PYTHON_WORDS,
    RAPIDJSON_WORDS,
    parse_numbers,
    parse_with_orjson,
    slice_parser,
)

NAN, INF = float("nan"), float("inf")


@pytest.fixture(params=["simdjson", "orjson"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "orjson":
        monkeypatch.setattr(number_slices, "slice_parser", lambda: parse_with_orjson)


def parsed(text: str, words: Any = RAPIDJSON_WORDS) -> tuple[list[Any], bool] | None:
    body = b"[7,[" + text.encode() + b"],8]"  # what is outside the bounds has no effect
    result = parse_numbers(body, 4, len(body) - 4, words)
    if result is None:
        return None
    chunks, has_words = result
    return np.concatenate(chunks).tolist(), has_words


@pytest.mark.parametrize("size", [1 << 17, 12, 8])
@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("[1]", [1]),
        ("[[1,2],[3,4],[5,6]]", [1, 2, 3, 4, 5, 6]),
        ("[[[1.5],[2]],[[3],[-0.0]]]", [1.5, 2, 3, -0.0]),
        ("[ 1 ,\n2 ,\t3]", [1, 2, 3]),
        ("[-129,128,0]", [-129, 128, 0]),
    ],
)
def test_numbers_in_slices_of_any_size(text, values, size, monkeypatch):
    monkeypatch.setattr(number_slices, "SLICE_BYTES", size)
    assert parsed(text) == (values, False)


@pytest.mark.parametrize(
    "value", [2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 127, -128, 128]
)
def test_integers_are_exact(value):
    (result, _) = parsed(f"[{value}]")
    assert result == [value]
    assert type(result[0]) is int


def test_integers_beyond_64_bits_are_floats_as_orjson_reads_them():
    assert parsed(f"[{2**64}]") == ([float(2**64)], False)
    assert parsed(f"[-1,{2**63}]") == ([-1.0, float(2**63)], False)


@pytest.mark.parametrize("size", [1 << 17, 16])
def test_words(size, monkeypatch):
    monkeypatch.setattr(number_slices, "SLICE_BYTES", size)
    values, has_words = parsed("[[NaN,1],[Infinity, -Infinity],[Inf , -Inf],[2,-NaN]]")
    np.testing.assert_array_equal(values, [NAN, 1, INF, -INF, INF, -INF, 2, NAN])
    assert np.signbit(values[7]) and not np.signbit(values[0])
    assert has_words
    values, has_words = parsed("[NaN,Infinity,-Infinity]", PYTHON_WORDS)
    np.testing.assert_array_equal(values, [NAN, INF, -INF])


@pytest.mark.parametrize(
    "text",
    [
        "[1 2]", "[01]", "[1.]", "[.5]", "[+1]", "[1e]", "[--1]", "[1,]", "[,1]", "[]", "[-]",
        "[1e400]", "[1[2]]", "[[1]2]", "[1NaN]", "[NaN1]", "[NaNNaN]", "[Infi]", "[--NaN]",
        "[1-Infinity]", "[NaN,]", "[na]", "[infinity]", "[eE]", "[\x0b1]",
    ],
)  # fmt: skip
def test_what_is_no_number_is_refused_or_missing(text):
    result = parsed(text)
    assert result is None or len(result[0]) <= text.count(",")


@pytest.mark.parametrize("word", ["-NaN", "Inf", "-Inf", "nan"])
def test_words_that_the_reader_does_not_know_are_refused(word):
    assert parsed(f"[1,{word}]", PYTHON_WORDS) is None


def test_a_number_longer_than_a_slice_is_refused(monkeypatch):
    monkeypatch.setattr(number_slices, "SLICE_BYTES", 8)
    assert parsed("[0.123456789,1]") is None


def test_without_simdjson_orjson_parses(monkeypatch):
    real_import = builtins.__import__

    def without(name: str, *arguments: Any) -> Any:
        if name == "simdjson":
            raise ImportError(name)
        return real_import(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    uncached = getattr(slice_parser, "__wrapped__", None)
    if uncached is not None:  # None: the fixture has replaced it
        assert uncached() is parse_with_orjson


def test_simdjson_is_used_if_it_is_installed():
    pytest.importorskip("simdjson")
    number_slices_parser = getattr(slice_parser, "__wrapped__", None)
    assert number_slices_parser is not None
    assert isinstance(number_slices_parser(), functools.partial)
