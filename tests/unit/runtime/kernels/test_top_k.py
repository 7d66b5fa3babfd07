"""What TopK promises beyond the recorded cases: ties and NaN on both ways of selecting."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.kernels.array.sorting import approx_top_k, top_k, top_k_v2


def stable_order(rows: np.ndarray, k: int) -> np.ndarray:
    """The k largest of each row by sorting pairs: largest first, of equals the first."""
    ranked = [sorted(range(len(row)), key=lambda i: (-row[i], i))[:k] for row in rows.tolist()]
    return np.array(ranked, np.int32)


@pytest.mark.parametrize("k", [1, 2, 5, 12, 13, 100])
def test_equal_elements_come_in_the_order_of_their_index(k: int) -> None:
    rows = np.random.default_rng(7).integers(0, 6, (8, 100)).astype(np.float32)
    values, indices = top_k_v2(rows, np.array(k), index_type=DataType.INT32)
    expected = stable_order(rows, k)
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(rows, expected, -1))


@pytest.mark.parametrize("k", [1, 2, 50])
def test_a_nan_is_larger_than_any_number(k: int) -> None:
    row = np.arange(100, dtype=np.float32)
    row[37] = np.nan
    _, indices = top_k_v2(row, np.array(k), index_type=DataType.INT64)
    assert indices[0] == 37
    assert indices.dtype == np.int64
    np.testing.assert_array_equal(indices[1:], np.arange(99, 99 - k + 1, -1))


def test_the_first_version_takes_k_as_an_attribute() -> None:
    """TopK, which only graphs from before TopKV2 may have."""
    values, indices = top_k(np.float32([[3, 1, 3], [0, 2, 1]]), k=2)
    np.testing.assert_array_equal(values, [[3, 3], [2, 1]])
    np.testing.assert_array_equal(indices, [[0, 2], [1, 2]])
    with pytest.raises(InvalidArgumentError, match="Had 3, needed 4"):
        top_k(np.float32([1, 2, 3]), k=4)


@pytest.mark.parametrize("axis", [0, 1, -2])
def test_approximate_search_is_exact_along_every_axis(axis: int) -> None:
    """Compiled functions ask for the smallest and other axes; TensorFlow's kernel for neither."""
    value = np.random.default_rng(11).permutation(60).reshape(3, 5, 4).astype(np.float32)
    settings = {"recall_target": 0.5, "aggregate_to_topk": False}
    for is_max_k in (True, False):
        values, indices = approx_top_k(
            value, k=2, reduction_dimension=axis, is_max_k=is_max_k, **settings
        )
        order = np.argsort(-value if is_max_k else value, axis).take(range(2), axis)
        np.testing.assert_array_equal(indices, order)
        np.testing.assert_array_equal(values, np.take_along_axis(value, order, axis))
    with pytest.raises(InvalidArgumentError, match=r"Invalid reduction dimension: 3\. .*\[-3, 2\]"):
        approx_top_k(value, k=2, reduction_dimension=3, is_max_k=True)
