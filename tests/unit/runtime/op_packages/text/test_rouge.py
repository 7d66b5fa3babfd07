"""ROUGE-L of rows of numbers, and arguments that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError
from runtime.op_packages.text.rouge import rouge_l

SPLITS = np.array([0, 4, 4], np.int64)


def test_the_longest_common_subsequence_need_not_be_adjacent() -> None:
    texts, references = np.array([1, 2, 3, 4]), np.array([9, 1, 3, 9, 4, 9])
    given = np.array([0, 6, 6], np.int64)
    f, precision, recall = rouge_l(texts, SPLITS, references, given, np.float32(0.5))
    np.testing.assert_allclose(precision, [0.75, 0])
    np.testing.assert_allclose(recall, [0.5, 0])
    np.testing.assert_allclose(f, [0.6, 0])


@pytest.mark.parametrize(
    ("splits", "alpha", "words"),
    [
        (SPLITS[:1], 0.5, "must equal hyp splits len=3"),
        (SPLITS, 2.0, "alpha must be <1 but was=2"),
        (SPLITS[::-1], 0.5, "splits must ascend"),
    ],
)
def test_arguments_that_do_not_fit(splits: np.ndarray, alpha: float, words: str) -> None:
    numbers = np.arange(4)
    with pytest.raises(InvalidArgumentError, match=words):
        rouge_l(numbers, SPLITS, numbers, splits, np.float32(alpha))
