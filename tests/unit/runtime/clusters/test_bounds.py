"""Tensors that a model must not have: empty ones, and those beyond the limits of a tensor."""

from __future__ import annotations

import pytest

from runtime.clusters.bounds import MAX_ELEMENTS, TensorSizes, fault_of, is_within
from runtime.clusters.dimensions import Shape, product, symbol
from runtime.framework import allocation
from runtime.framework.allocation import tensor_limit
from runtime.framework.dtypes import DataType

B, T = symbol("b"), symbol("t")
FLOAT = DataType.FLOAT


@pytest.mark.parametrize(
    ("shape", "fault"),
    [
        ((2, 3), ""),
        ((B, 3), ""),
        ((), ""),
        ((2, 0), "an empty tensor"),
        ((B, 0), "an empty tensor"),
        ((1 << 20, 1 << 20), "a tensor of at least 1099511627776 elements"),
        ((B, 1 << 40), "a tensor of at least 1099511627776 elements"),
    ],
)
def test_faults(shape: Shape, fault: str) -> None:
    assert fault_of(shape, FLOAT) == fault


def test_the_limit_counts_elements_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation, "_limit", [1 << 34])
    assert is_within(MAX_ELEMENTS, 1)
    assert not is_within(MAX_ELEMENTS + 1, 1)
    assert is_within(tensor_limit() // 1024, 1024)
    assert not is_within(tensor_limit() // 1024 + 1, 1024)


@pytest.mark.parametrize(
    ("batch", "steps", "fit"),
    [(1, 1, True), (1000, 1000, True), (1 << 16, 1 << 16, False), (1 << 32, 1, False)],
)
def test_open_sizes_are_checked_for_each_run(batch: int, steps: int, fit: bool) -> None:
    tensors = TensorSizes([((B, T), FLOAT), ((product((B, T)), 2), FLOAT), ((3,), FLOAT)])
    assert tensors.are_within({B: batch, T: steps, 5: 5}) is fit


def test_the_largest_tensor_grows_with_the_sizes() -> None:
    tensors = TensorSizes([((B, T), FLOAT), ((product((B, T)), 2), FLOAT), ((300,), FLOAT)])
    assert tensors.largest_bytes({B: 1, T: 5}) == 4 * 300
    assert tensors.largest_bytes({B: 20, T: 50}) == 4 * 20 * 50 * 2
    assert TensorSizes([]).largest_bytes({}) == 0
