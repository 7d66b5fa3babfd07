"""Joins whose output would exceed the limit of a tensor are refused before they are made."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from runtime.executors.joined_outputs import JOINS
from runtime.foundation.errors import ResourceExhaustedError
from runtime.framework.allocation import set_tensor_limit, tensor_limit
from runtime.framework.memory_account import bytes_of
from runtime.framework.string_tensor import string_tensor
from runtime.framework.tensor_value import TensorValue

TENTHS = np.ones((2, 5), np.float32)  # 40 bytes
TEXTS = string_tensor([b"a" * 10, b"bc"])
AXIS, FIRST = np.int32(1), np.int32(0)


@pytest.fixture(autouse=True)
def limit_ends() -> Iterator[None]:
    before = tensor_limit()
    yield
    set_tensor_limit(before)


@pytest.mark.parametrize(
    ("op", "inputs", "result"),
    [
        ("ConcatV2", (TENTHS, TENTHS, AXIS), np.ones((2, 10), np.float32)),
        ("ConcatV2", (TENTHS, TENTHS, np.int32(-2)), np.ones((4, 5), np.float32)),
        ("Concat", (AXIS, TENTHS, TENTHS, TENTHS), np.ones((2, 15), np.float32)),
        ("Pack", (TENTHS, TENTHS), np.ones((2, 2, 5), np.float32)),
        ("Pack", (np.float32(1),) * 3, np.ones(3, np.float32)),
        ("ParallelConcat", (TENTHS[:1], TENTHS[:1]), np.ones((2, 5), np.float32)),
        ("ConcatV2", (TEXTS, TEXTS, FIRST), string_tensor([b"a" * 10, b"bc"] * 2)),
        ("Pack", (TEXTS, TEXTS), string_tensor([b"a" * 10, b"bc"] * 2, (2, 2))),
        ("StringJoin", (TEXTS, TEXTS), string_tensor([b"a" * 20, b"bcbc"])),
        ("StringJoin", (TEXTS, b"-"), string_tensor([b"a" * 10 + b"-", b"bc-"])),
    ],
)
def test_an_output_may_have_what_the_limit_says(
    op: str, inputs: tuple[TensorValue, ...], result: np.ndarray
) -> None:
    size = bytes_of(result)
    set_tensor_limit(size)
    JOINS[op](*inputs)
    set_tensor_limit(size - 1)
    shape = ",".join(map(str, result.shape))
    expected = (
        rf"^OOM when allocating tensor with shape\[{shape}\] and type {result.dtype.name}: "
        rf"{size} bytes needed, the limit is {size - 1}$"
    )
    with pytest.raises(ResourceExhaustedError, match=expected):
        JOINS[op](*inputs)
