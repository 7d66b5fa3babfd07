"""Convolutions take in what scales and shifts their channels, in both forms of a model."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.clusters.emission import Emission
from runtime.clusters.values import Layout, Value
from tests.unit.runtime.clusters.patterns.rewritten import apply, kinds_after, values

FIRST = Layout.CHANNELS_FIRST


def convolution(emission: Emission, x: Value, weights: Value, op_type: str = "Conv") -> Value:
    """A convolution 1 by 1 of `x` `[batch, c, h, w]`; `weights` are `[out, c, 1, 1]`."""
    batch, _, height, width = x.shape
    channels = weights.shape[1 if op_type == "ConvTranspose" else 0]
    return emission.op(op_type, [x, weights], x.dtype, (batch, channels, height, width))


X, WEIGHTS = values(2, 3, 4, 5), values(6, 3, 1, 1)
VECTORS = [abs(values(6, seed=seed)) + 0.5 for seed in range(4)]


def normalized(emission: Emission, x: Value, weights: list[Value]) -> Value:
    made = convolution(emission, x, weights[0])
    return emission.op(
        "BatchNormalization", [made, *weights[1:]], x.dtype, made.shape, epsilon=1e-3
    )


def test_batch_normalization() -> None:
    assert kinds_after(normalized, X, WEIGHTS, *VECTORS) == ["Conv"]


def test_batch_normalization_after_a_bias() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        biased = apply(emission, "Add", convolution(emission, x, weights[0]), weights[5])
        return emission.op(
            "BatchNormalization", [biased, *weights[1:5]], x.dtype, biased.shape, epsilon=1e-3
        )

    assert kinds_after(build, X, WEIGHTS, *VECTORS, values(6, 1, 1)) == ["Conv"]


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(["Conv", "ConvTranspose"]),
    st.lists(st.tuples(st.sampled_from(["Add", "Mul", "Sub"]), st.booleans()), max_size=4),
    st.sampled_from([(6, 1, 1), (1, 6, 1, 1), (), (1,)]),
)
def test_any_sequence(op_type: str, steps: list[tuple[str, bool]], shape: tuple[int, ...]) -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        value = convolution(emission, x, weights[0], op_type)
        for (kind, is_swapped), array in zip(steps, weights[1:], strict=True):
            operands = (array, value) if is_swapped and kind != "Sub" else (value, array)
            value = apply(emission, kind, *operands)
        return value

    matrix = WEIGHTS.reshape(3, 6, 1, 1) if op_type == "ConvTranspose" else WEIGHTS
    vectors = [values(*shape, seed=seed) for seed in range(len(steps))]
    assert kinds_after(build, X, matrix, *vectors) == [op_type]


def test_with_channels_first_of_another_order() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        first = emission.channels_first(x)
        shape = (*x.shape[:3], weights[0].shape[0])
        made = emission.op("Conv", [first, weights[0]], x.dtype, shape, layout=FIRST)
        return emission.as_is(emission.op("Mul", [made, weights[1]], x.dtype, shape, layout=FIRST))

    found = kinds_after(build, values(2, 4, 5, 3), WEIGHTS, values(6, 1, 1))
    assert found == ["Reshape", "Conv", "Transpose"]


@pytest.mark.parametrize("shape", [(5,), (4, 1), (6, 4, 1)])
def test_what_is_not_by_channel_stays(shape: tuple[int, ...]) -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        return apply(emission, "Mul", convolution(emission, x, weights[0]), weights[1])

    assert kinds_after(build, X, WEIGHTS, values(*shape)) == ["Conv", "Mul"]


def test_a_convolution_that_something_else_reads_stays() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> list[Value]:
        made = convolution(emission, x, weights[0])
        return [made, apply(emission, "Mul", made, weights[1])]

    assert kinds_after(build, X, WEIGHTS, values(6, 1, 1)) == ["Conv", "Mul"]
