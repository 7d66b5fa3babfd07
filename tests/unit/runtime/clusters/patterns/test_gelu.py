"""Gelu is found in all the ways in which it is written, and nothing else is taken for it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.clusters.emission import Emission
from runtime.clusters.values import Value
from tests.unit.runtime.clusters.patterns.rewritten import apply, kinds_after, number, values


def bend(emission: Emission, x: Value, form: str) -> Value:
    """Return 1 + erf(x / √2), in one of several forms, or its approximation by tanh."""
    one, root = number(emission, 1.0), number(emission, math.sqrt(0.5))
    if form == "erfc":
        curve = apply(emission, "Erf", apply(emission, "Mul", apply(emission, "Neg", x), root))
        return apply(emission, "Sub", one, curve)
    if form == "tanh":
        cube = apply(emission, "Pow", x, number(emission, 3.0))
        inner = apply(emission, "Add", x, apply(emission, "Mul", number(emission, 0.044715), cube))
        scaled = apply(emission, "Mul", number(emission, math.sqrt(2 / math.pi)), inner)
        return apply(emission, "Add", one, apply(emission, "Tanh", scaled))
    if form == "products":
        square = apply(emission, "Mul", x, x)
        cube = apply(emission, "Mul", apply(emission, "Mul", square, x), number(emission, 0.044715))
        scaled = apply(
            emission,
            "Mul",
            apply(emission, "Add", cube, x),
            number(emission, math.sqrt(2 / math.pi)),
        )
        return apply(emission, "Add", apply(emission, "Tanh", scaled), one)
    if form == "div":
        inner = apply(emission, "Div", x, number(emission, math.sqrt(2)))
    else:
        inner = apply(emission, "Mul", x, root)
    return apply(emission, "Add", apply(emission, "Erf", inner), one)


def gelu(emission: Emission, x: Value, form: str, order: int, half: float = 0.5) -> Value:
    gate, by = bend(emission, x, form), number(emission, half)
    if order == 0:
        return apply(emission, "Mul", apply(emission, "Mul", by, x), gate)
    if order == 1:
        return apply(emission, "Mul", apply(emission, "Mul", gate, x), by)
    if order == 2:
        return apply(emission, "Mul", x, apply(emission, "Mul", gate, by))
    return apply(emission, "Div", apply(emission, "Mul", x, gate), number(emission, 1 / half))


FORMS = ("div", "erf", "erfc", "products", "tanh")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", range(4))
def test_all_forms(form: str, order: int) -> None:
    x = np.concatenate([values(3, 40) * 3, np.array([[0, -0.0, 9, -9] * 10] * 3)], 1)
    found = kinds_after(lambda emission, x, _: gelu(emission, x, form, order), x.astype(np.float32))
    assert found == ["Gelu"]


def test_of_a_value_that_is_a_product() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        return gelu(emission, apply(emission, "Mul", x, number(emission, 0.25)), "erfc", 0)

    assert kinds_after(build, values(3, 8)) == ["Mul", "Gelu"]


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(FORMS), st.integers(0, 3), st.sampled_from([0.5, 0.49, 1.0, -0.5]))
def test_only_with_one_half(form: str, order: int, half: float) -> None:
    found = kinds_after(lambda emission, x, _: gelu(emission, x, form, order, half), values(3, 8))
    assert ("Gelu" in found) == (half == 0.5)


@pytest.mark.parametrize("number_of_bend", [0.7, 1.0, -0.70710678])
def test_other_bends_stay(number_of_bend: float) -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        inner = apply(emission, "Mul", x, number(emission, number_of_bend))
        gate = apply(emission, "Add", apply(emission, "Erf", inner), number(emission, 1.0))
        return apply(emission, "Mul", apply(emission, "Mul", x, number(emission, 0.5)), gate)

    assert "Gelu" not in kinds_after(build, values(3, 8))


def test_a_gate_of_another_value_stays() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        y = apply(emission, "Tanh", x)
        half = apply(emission, "Mul", y, number(emission, 0.5))
        return apply(emission, "Mul", half, bend(emission, x, "erf"))

    assert "Gelu" not in kinds_after(build, values(3, 8))


def test_odd_numbers() -> None:
    x = np.array([[np.nan, np.inf, -np.inf, 1e30, -1e30, 0, 1, 2]], np.float32)
    found = kinds_after(lambda emission, x, _: gelu(emission, x, "erfc", 0), x)
    assert found == ["Gelu"]
