"""Fragments of texts, byte by byte."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import CancelledError, FailedPreconditionError
from runtime.foundation.running_task import set_running_task
from runtime.framework.string_tensor import string_tensor
from runtime.op_packages.text.sentence_fragments_v2 import sentence_fragments_v2


def fragments(text: str) -> list[list[int]]:
    *columns, lengths = (
        each.tolist() for each in sentence_fragments_v2(string_tensor([text.encode()]))
    )
    assert lengths == [len(columns[0])]
    return [list(row) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", []),
        (" \n", []),
        ("Hi. You?! no", [[0, 3, 1, 2], [4, 9, 3, 7], [10, 12, 0, -1]]),
        ("(fungi!!) a", [[0, 9, 7, 6], [10, 11, 0, -1]]),
        ("ok :-) b", [[0, 6, 1, 3], [7, 8, 0, -1]]),
        ("a...! b", [[0, 5, 3, 1], [6, 7, 0, -1]]),
        ("U.S.A. b", [[0, 6, 3, 0], [7, 8, 0, -1]]),
        ("好。b", [[0, 6, 1, 3], [6, 7, 0, -1]]),
        ("\u3000a", [[1, 4, 0, -1]]),  # only the first byte of white space is recognised
    ],
)
def test_fragments(text: str, want: list[list[int]]) -> None:
    assert fragments(text) == want


def test_texts_must_be_a_vector() -> None:
    with pytest.raises(FailedPreconditionError, match="must be rank 1"):
        sentence_fragments_v2(np.array(b"a", object))


@pytest.mark.parametrize("text", ["!", "a. ", "(!)"])
def test_a_long_text_is_cancelled(text: str) -> None:
    set_running_task([CancelledError("the step has ended")])
    try:
        with pytest.raises(CancelledError):
            fragments(text * 100_000)
    finally:
        set_running_task(())
