"""Fragments of texts that are given as tokens."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.framework.string_tensor import string_tensor
from runtime.op_packages.text.sentence_fragments import sentence_fragments

EMOTICON, ACRONYM = 0x80, 0x100


def fragments(*words: str, marked: int = -1, properties: int = 0) -> list[list[int]]:
    given = np.zeros(len(words), np.int64)
    if marked >= 0:
        given[marked] = properties
    found = sentence_fragments(
        np.array([len(words)]),
        np.arange(len(words)),
        np.arange(len(words)),
        string_tensor(word.encode() for word in words),
        given,
        input_encoding="UTF-8",
    )
    *columns, lengths = (each.tolist() for each in found)
    assert lengths == [len(columns[0])]
    return [list(row) for row in zip(*columns, strict=True)]


def test_fragments_end_behind_terminal_marks() -> None:
    assert fragments("Hi", ".", "you", "?", "!", "no") == [
        [0, 2, 1, 1], [2, 5, 3, 3], [5, 6, 0, -1],
    ]  # fmt: skip


def test_parentheses() -> None:
    assert fragments("(", "a", "!", ")") == [[0, 4, 13, 2]]
    assert fragments("b", "(", "a", "!", ")") == [[0, 5, 5, 3]]


def test_an_ellipsis_before_a_mark_belongs_to_the_sentence() -> None:
    assert fragments("a", "...", "!") == [[0, 3, 3, 2]]
    assert fragments("a", "\u2026") == [[0, 2, 1, 1]]


def test_properties_of_tokens() -> None:
    assert fragments("U.S.", "a", marked=0, properties=ACRONYM) == [[0, 1, 1, 0], [1, 2, 0, -1]]
    assert fragments("U.S", "a", marked=0, properties=ACRONYM) == [[0, 2, 0, -1]]
    assert fragments("x", "a", marked=0, properties=EMOTICON) == [[0, 1, 1, 0], [1, 2, 0, -1]]


def test_an_empty_word_is_an_error() -> None:
    with pytest.raises(InternalError, match="Failed to decode string"):
        fragments("a", "")


def test_inputs_that_do_not_fit() -> None:
    one = np.zeros(1, np.int64)
    with pytest.raises(InvalidArgumentError, match="must all be the same size"):
        sentence_fragments(
            np.array([2]), one, one, string_tensor([b"a"]), one, input_encoding="UTF-8"
        )
    with pytest.raises(InvalidArgumentError, match="'token_start' must be a vector"):
        sentence_fragments(
            one, np.array(0), one, string_tensor([b"a"]), one, input_encoding="UTF-8"
        )
    with pytest.raises(InvalidArgumentError, match="Could not create converter"):
        sentence_fragments(one + 1, one, one, string_tensor([b"a"]), one, input_encoding="nothing")
