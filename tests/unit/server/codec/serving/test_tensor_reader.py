from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from server.codec.serving.requests import (
    parse_document,
    predict_inputs,
    signature_name,
)
from server.codec.serving.tensor_reader import TensorReader

F32 = {"x": DataType.FLOAT}
F64 = {"x": DataType.DOUBLE}
I32 = {"d": DataType.INT32}


def read(
    body: str | bytes, inputs: dict[str, DataType], strict: bool = False
) -> dict[str, np.ndarray]:
    document = parse_document(body.encode() if isinstance(body, str) else body)
    signature = SimpleNamespace(input_types=inputs)
    return predict_inputs(document, signature_name(document), strict, signature)


SCALARS = st.one_of(
    st.integers(-(1 << 70), 1 << 70), st.floats(), st.booleans(), st.text(max_size=3), st.none()
)


NESTED = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3), max_leaves=8)


@given(NESTED, st.sampled_from([*F32.values(), *F64.values(), *I32.values(), DataType.INT64,
                                DataType.UINT64, DataType.INT8, DataType.BOOL]))  # fmt: skip
def test_the_fast_path_agrees_with_the_slow_one(value: Any, data_type: DataType) -> None:
    parsed = parse_document(json.dumps({"v": value}).encode())
    reader = TensorReader(exact_range=True)
    fast = reader.fast_array(parsed.members["v"], data_type)
    if fast is not None:
        slow = reader.slow_array(parsed.members["v"], data_type)
        assert fast.dtype == slow.dtype
        np.testing.assert_array_equal(fast, slow)


def test_a_long_string_among_numbers_takes_no_memory() -> None:
    body = json.dumps({"inputs": [1.0] * 100_000 + ["x" * 1_000_000]})
    with pytest.raises(InvalidArgumentError, match="is not of expected type: float") as raised:
        read(body, F32)
    assert len(raised.value.message) < 1000


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        ([[1.5, 2], [3, 4]], DataType.FLOAT),
        (7, DataType.INT64),
        ([[[-1], [2**31 - 1]]], DataType.INT32),
        ([2**64 - 1], DataType.UINT64),
        ([True, False], DataType.BOOL),
    ],
)
def test_regular_values_take_the_fast_path(value: Any, data_type: DataType) -> None:
    fast = TensorReader(exact_range=True).fast_array(value, data_type)
    np.testing.assert_array_equal(fast, np.array(value, data_type.numpy), strict=True)
