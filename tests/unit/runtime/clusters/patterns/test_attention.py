"""Attention of several heads is one operation where there are many scores."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.clusters.emission import Emission
from runtime.clusters.patterns.attention import MIN_SCORES
from runtime.clusters.values import Value
from tests.unit.runtime.clusters.patterns.rewritten import apply, kinds_after, number, values


def transposed(emission: Emission, value: Value, order: list[int]) -> Value:
    shape = tuple(value.shape[axis] for axis in order)
    return emission.op("Transpose", [value], value.dtype, shape, perm=order)


def attention(
    emission: Emission,
    x: Value,
    keys: int,
    scale: float = 0.3,
    axis: int = -1,
    scales_queries: bool = False,
) -> Value:
    """Attention of `x` `[batch, time, heads, size]` to its own first `keys` elements of time."""
    batch, _, heads, size = x.shape
    bounds = [emission.constant(np.array([bound])) for bound in (0, keys, 1)]
    own = emission.op("Slice", [x, *bounds], x.dtype, (batch, keys, heads, size))
    queries = x
    if scales_queries:
        queries = apply(emission, "Mul", x, number(emission, scale))
    left = transposed(emission, queries, [0, 2, 1, 3])
    right = transposed(emission, own, [0, 2, 3, 1])
    scores = emission.op("MatMul", [left, right], x.dtype, (batch, heads, x.shape[1], keys))
    if not scales_queries:
        scores = apply(emission, "Mul", scores, number(emission, scale))
    weights = apply(emission, "Softmax", scores, axis=axis)
    mixed = emission.op(
        "MatMul", [weights, transposed(emission, own, [0, 2, 1, 3])], x.dtype, left.shape
    )
    return transposed(emission, mixed, [0, 2, 1, 3])


X = values(2, 160, 3, 4)


@pytest.mark.parametrize("keys", [160, 120])
@pytest.mark.parametrize("scales_queries", [True, False])
def test_many_scores(keys: int, scales_queries: bool) -> None:
    found = kinds_after(
        lambda emission, x, _: attention(emission, x, keys, scales_queries=scales_queries), X
    )
    assert found.count("MultiHeadAttention") == 1
    assert not {"MatMul", "Softmax", "Transpose"} & set(found)


def test_few_scores_stay() -> None:
    assert MIN_SCORES > 160 * 100
    found = kinds_after(lambda emission, x, _: attention(emission, x, 100), X)
    assert "MultiHeadAttention" not in found


def test_softmax_over_another_axis_stays() -> None:
    found = kinds_after(lambda emission, x, _: attention(emission, x, 160, axis=2), X)
    assert "MultiHeadAttention" not in found


def test_odd_numbers_reach_the_same_results() -> None:
    x = X.copy()
    x[0, 3, 1, 2], x[1, 5, 0, 0], x[1, 9, 1, 1] = np.nan, np.inf, -np.inf
    found = kinds_after(lambda emission, x, _: attention(emission, x, 160), x)
    assert "MultiHeadAttention" in found
