"""Layer normalization is found however it is written, and nothing else is taken for it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.clusters.emission import Emission
from runtime.clusters.values import Value
from runtime.framework.dtypes import DataType
from tests.unit.runtime.clusters.patterns.rewritten import apply, kinds_after, number, values

EPSILON = 1e-3


def mean(emission: Emission, x: Value, axes: list[int]) -> Value:
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    operand = emission.constant(np.array(axes, np.int64))
    return emission.op("ReduceMean", [x, operand], x.dtype, shape, keepdims=1)


def variance(
    emission: Emission, x: Value, centre: Value, axes: list[int], square: str = "Mul"
) -> Value:
    d = apply(emission, "Sub", x, centre)
    squared = apply(emission, square, d, d if square == "Mul" else number(emission, 2.0))
    return mean(emission, squared, axes)


def inverse(emission: Emission, spread: Value, root: str = "Sqrt") -> Value:
    total = apply(emission, "Add", spread, number(emission, EPSILON))
    if root == "Pow":
        return apply(emission, "Pow", total, number(emission, -0.5))
    return apply(emission, "Reciprocal", apply(emission, "Sqrt", total))


def keras(emission: Emission, x: Value, weights: list[Value], shift: str = "Neg") -> Value:
    """x · s + (β − mean · s), as Keras and batch_normalization write it."""
    gamma, beta = weights
    centre = mean(emission, x, [2])
    scale = apply(emission, "Mul", inverse(emission, variance(emission, x, centre, [2])), gamma)
    if shift == "Neg":
        product = apply(emission, "Mul", apply(emission, "Neg", centre), scale)
        offset = apply(emission, "Add", product, beta)
    else:
        offset = apply(emission, "Sub", beta, apply(emission, "Mul", centre, scale))
    return apply(emission, "Add", apply(emission, "Mul", x, scale), offset)


def textbook(
    emission: Emission, x: Value, weights: list[Value], square: str = "Pow", is_div: bool = True
) -> Value:
    """(x − mean) / √(variance + ε) · γ + β."""
    centre = mean(emission, x, [2])
    spread = variance(emission, x, centre, [2], square)
    centred = apply(emission, "Sub", x, centre)
    if is_div:
        total = apply(emission, "Add", spread, number(emission, EPSILON))
        normal = apply(emission, "Div", centred, apply(emission, "Sqrt", total))
    else:
        normal = apply(emission, "Mul", inverse(emission, spread, "Pow"), centred)
    for kind, array in zip(("Mul", "Add"), weights, strict=False):
        normal = apply(emission, kind, array, normal)
    return normal


GAMMA, BETA = values(6, seed=1), values(6, seed=2)


@pytest.mark.parametrize("shift", ["Neg", "Sub"])
@pytest.mark.parametrize("shape", [(6,), (1, 1, 6)])
def test_form_of_keras(shift: str, shape: tuple[int, ...]) -> None:
    arrays = GAMMA.reshape(shape), BETA.reshape(shape)
    found = kinds_after(lambda *given: keras(*given, shift), values(3, 4, 6), *arrays)
    assert found == ["LayerNormalization"]


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize(
    ("square", "is_div"), list(itertools.product(["Mul", "Pow"], [True, False]))
)
def test_form_of_the_textbook(count: int, square: str, is_div: bool) -> None:
    arrays = (GAMMA, BETA)[:count]
    found = kinds_after(
        lambda *given: textbook(*given, square, is_div), values(3, 4, 6) + 2, *arrays
    )
    assert found == ["LayerNormalization"]


def without_scale(emission: Emission, x: Value, weights: list[Value]) -> Value:
    centre = mean(emission, x, [1, 2])
    scale = inverse(emission, variance(emission, x, centre, [1, 2]))
    shift = apply(emission, "Mul", centre, scale)
    return apply(emission, "Sub", apply(emission, "Mul", scale, x), shift)


def test_several_axes_without_scale_and_shift() -> None:
    assert kinds_after(without_scale, values(3, 4, 6)) == ["LayerNormalization"]


def uncentred(emission: Emission, x: Value, weights: list[Value]) -> Value:
    scale = inverse(emission, mean(emission, apply(emission, "Mul", x, x), [2]))
    normal = apply(emission, "Mul", x, scale)
    return apply(emission, "Mul", normal, weights[0])


def test_without_a_mean() -> None:
    found = kinds_after(uncentred, values(3, 4, 6), GAMMA)
    assert found == ["SimplifiedLayerNormalization"]


def other_axes(emission: Emission, x: Value, weights: list[Value]) -> Value:
    """A normalization over axis 1, which is no layer normalization."""
    centre = mean(emission, x, [1])
    scale = inverse(emission, variance(emission, x, centre, [1]))
    return apply(emission, "Mul", apply(emission, "Sub", x, centre), scale)


def other_mean(emission: Emission, x: Value, weights: list[Value]) -> Value:
    """The mean that is subtracted is over other axes than that of the variance."""
    centre = mean(emission, x, [1, 2])
    scale = inverse(emission, variance(emission, x, centre, [2]))
    return apply(emission, "Mul", apply(emission, "Sub", x, centre), scale)


def other_source(emission: Emission, x: Value, weights: list[Value]) -> Value:
    """The variance is of something else than what is scaled."""
    y = apply(emission, "Add", x, weights[0])
    centre = mean(emission, y, [2])
    scale = inverse(emission, variance(emission, y, centre, [2]))
    shift = apply(emission, "Mul", centre, scale)
    return apply(emission, "Sub", apply(emission, "Mul", x, scale), shift)


def scale_per_row(emission: Emission, x: Value, weights: list[Value]) -> Value:
    """The factor differs between rows that are normalised on their own."""
    return textbook(emission, x, [weights[1]])


@pytest.mark.parametrize("build", [other_axes, other_mean, other_source])
def test_what_is_no_layer_normalization_stays(build: object) -> None:
    found = kinds_after(build, values(3, 4, 6), GAMMA)  # type: ignore[arg-type] # a Build
    assert "LayerNormalization" not in found


def test_a_factor_per_row_stays_apart() -> None:
    found = kinds_after(scale_per_row, values(3, 4, 6), GAMMA, values(4, 1))
    assert found == ["LayerNormalization", "Mul"]


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 5),
    st.integers(1, 9),
    st.floats(-20, 20),
    st.floats(0.1, 20),
    st.sampled_from(["Neg", "Sub"]),
)
def test_of_any_size_and_scale(
    rows: int, size: int, centre: float, spread: float, form: str
) -> None:
    x = (values(2, rows, size) * spread + centre).astype(np.float32)
    gamma, beta = values(size, seed=3), values(size, seed=4)
    # One element is its own mean; what is left of it is rounding, which 1 / √ε magnifies.
    kinds_after(lambda *given: keras(*given, form), x, gamma, beta, tolerance=2e-4)


def test_odd_numbers_stay_in_their_rows() -> None:
    x = values(2, 4, 6)
    x[0, 1, 2], x[1, 0, 0], x[1, 3, 5] = np.nan, np.inf, -np.inf
    assert kinds_after(keras, x, GAMMA, BETA) == ["LayerNormalization"]


def test_double_precision_stays() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        centre = mean(emission, x, [1])
        d = apply(emission, "Sub", x, centre)
        spread = mean(emission, apply(emission, "Mul", d, d), [1])
        total = apply(emission, "Add", spread, emission.constant(EPSILON, DataType.DOUBLE))
        return apply(emission, "Div", d, apply(emission, "Sqrt", total))

    assert "LayerNormalization" not in kinds_after(build, values(3, 4).astype(np.float64))
