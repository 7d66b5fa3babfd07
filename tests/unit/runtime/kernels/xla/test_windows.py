"""Windows that are refused: TensorFlow's process ends for most of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runtime.api import InvalidArgumentError
from runtime.client import ops
from runtime.framework.dtypes import DataType
from tests.unit.runtime.kernels.xla.xla_steps import run, vector

ADD = ([DataType.FLOAT] * 2, lambda a, b: ops.AddV2(a, b))
X = np.arange(20, dtype=np.float32).reshape(4, 5)


def reduced(sizes: Any, strides: Any = (1, 1), dilations: Any = (1, 1), padding: Any = None) -> Any:
    edges = np.zeros((2, 2), np.int32) if padding is None else np.array(padding, np.int32)
    return run(
        "XlaReduceWindow", X, np.float32(0), vector(*sizes), vector(*strides), vector(1, 1),
        vector(*dilations), edges, functions={"computation": ADD},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([2],), r"window_dimensions must be a vector of size 2, got shape \[1\]"),
        (([0, 2],), r"window_dimensions must be at least 1, got \[0, 2\]"),
        (([2, 2], [0, 1]), r"window_strides must be at least 1, got \[0, 1\]"),
        (([2, 2], [1, 1], [1, -1]), r"window_dilations must be at least 1"),
        (([2, 2], [1, 1], [1, 1], [[0, 0]]), r"padding must be a matrix .* got shape \[1, 2\]"),
        (([2, 2], [1, 1], [1, 1], [[-3, -3], [0, 0]]), "negative size for dimension 0"),
    ],
)
def test_windows_that_cannot_be_are_refused(arguments: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        reduced(*arguments)


def test_padding_that_removes_is_no_padding() -> None:
    got = reduced([1, 1], padding=[[-1, -1], [0, -4]])
    np.testing.assert_array_equal(got, X[1:3, :1])


def test_source_must_have_an_element_for_each_window() -> None:
    keep = ([DataType.FLOAT] * 2, lambda a, b: ops.GreaterEqual(a, b))
    with pytest.raises(InvalidArgumentError, match=r"source must have shape \[2, 2\]"):
        run("XlaSelectAndScatter", X, vector(2, 2), vector(2, 2), np.zeros((2, 2), np.int32),
            np.ones((3, 2), np.float32), np.float32(0),
            functions={"select": keep, "scatter": ADD})  # fmt: skip
