"""Products by weights take in the bias after them, whatever the rank."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.clusters.emission import Emission
from runtime.clusters.values import Value
from tests.unit.runtime.clusters.patterns.rewritten import apply, kinds_after, values


def product(emission: Emission, x: Value, weights: Value) -> Value:
    return emission.op("MatMul", [x, weights], x.dtype, (*x.shape[:-1], weights.shape[-1]))


def dense(emission: Emission, x: Value, weights: list[Value]) -> Value:
    return apply(emission, "Add", product(emission, x, weights[0]), weights[1])


def heads(emission: Emission, x: Value, weights: list[Value]) -> Value:
    """A projection as Keras's attention has it: the bias is added after the heads are parted."""
    shape = (*x.shape[:-1], *weights[1].shape)
    target = emission.constant(np.array([0, 0, *weights[1].shape]))
    made = product(emission, x, weights[0])
    parted = emission.op("Reshape", [made, target], x.dtype, shape, allowzero=0)
    return apply(emission, "Add", weights[1], parted)


@pytest.mark.parametrize("shape", [(6,), (1, 6), (1, 1, 6)])
def test_bias_of_a_product_of_rank_3(shape: tuple[int, ...]) -> None:
    found = kinds_after(dense, values(3, 5, 4), values(4, 6), values(*shape))
    assert found == ["Reshape", "Gemm", "Reshape"]


def test_bias_of_a_matrix() -> None:
    assert kinds_after(dense, values(3, 4), values(4, 6), values(6)) == ["Gemm"]


def test_bias_of_parted_heads() -> None:
    found = kinds_after(heads, values(3, 5, 4), values(4, 6), values(2, 3))
    assert found == ["Reshape", "Gemm", "Reshape"]


def test_two_in_a_row_have_no_reshape_between() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        return dense(emission, dense(emission, x, weights[:2]), weights[2:])

    arrays = values(4, 6), values(6), values(6, 3), values(3)
    assert kinds_after(build, values(3, 5, 4), *arrays) == ["Reshape", "Gemm", "Gemm", "Reshape"]


def test_a_bias_per_row_stays() -> None:
    assert kinds_after(dense, values(3, 5, 4), values(4, 6), values(5, 1)) == ["MatMul", "Add"]
    assert kinds_after(dense, values(3, 5, 4), values(4, 6), values(1)) == ["MatMul", "Add"]


def test_a_product_that_something_else_reads_stays() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> list[Value]:
        made = product(emission, x, weights[0])
        return [made, apply(emission, "Add", made, weights[1])]

    assert kinds_after(build, values(3, 4), values(4, 6), values(6)) == ["MatMul", "Add"]
