"""Tokens between the characters that a model lists."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.string_tensor import string_tensor
from runtime.op_packages.text.whitespace_tokens import whitespace_tokenize_with_offsets_v2

# A model of tab, space and the ideographic space: one bit for each code point.
SPACES = np.zeros(0x3001, np.uint8)
SPACES[[9, 32, 0x3000]] = 1
MODEL = np.array(np.packbits(SPACES, bitorder="little").tobytes(), object)


def tokens(*items: bytes) -> list[list[object]]:
    found = whitespace_tokenize_with_offsets_v2(string_tensor(items), MODEL)
    assert [each.dtype for each in found] == [object, np.int64, np.int32, np.int32]
    return [each.tolist() for each in found]


def test_tokens_and_their_places() -> None:
    assert tokens(b" ab\tc", b"", b"\xff d") == [
        [b"ab", b"c", b"\xff", b"d"], [0, 2, 2, 4], [1, 4, 0, 2], [3, 5, 1, 3],
    ]  # fmt: skip


def test_a_token_ends_late_before_wide_white_space() -> None:
    # as in TensorFlow, which takes the end of the white space less one
    assert tokens("a\u3000b".encode()) == [[b"a\xe3\x80", b"b"], [0, 2], [0, 4], [3, 5]]


def test_an_empty_model_lists_nothing() -> None:
    found = whitespace_tokenize_with_offsets_v2(string_tensor([b"a b"]), np.array(b"", object))
    assert found[0].tolist() == [b"a b"]


def test_inputs_of_another_rank() -> None:
    with pytest.raises(InvalidArgumentError, match="must be a vector"):
        whitespace_tokenize_with_offsets_v2(np.array(b"a", object), MODEL)
    with pytest.raises(InvalidArgumentError, match="must be a scalar"):
        whitespace_tokenize_with_offsets_v2(string_tensor([]), string_tensor([b"", b""]))
