"""Convolutions and pools take in zeros around their input where that changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.clusters.emission import Emission
from runtime.clusters.values import Value
from tests.unit.runtime.clusters.patterns.rewritten import apply, kinds_after, number, values

AROUND = (0, 0, 1, 0, 0, 0, 2, 1)


def padded(
    emission: Emission, x: Value, pads: tuple[int, ...] = AROUND, value: float | None = None
) -> Value:
    shape = tuple(
        size + pads[axis] + pads[axis + 4] if isinstance(size, int) else size
        for axis, size in enumerate(x.shape)
    )
    operands = [x, emission.constant(np.array(pads))]
    if value is not None:
        operands.append(number(emission, value))
    return emission.op("Pad", operands, x.dtype, shape, mode="constant")


def windowed(emission: Emission, op_type: str, *operands: Value, channels: int) -> Value:
    batch, _, height, width = operands[0].shape
    assert isinstance(height, int)
    assert isinstance(width, int)
    shape = (batch, channels, height - 2, width - 2)
    return emission.op(
        op_type, operands, operands[0].dtype, shape, kernel_shape=[3, 3], pads=[0] * 4
    )


X, WEIGHTS = values(2, 3, 6, 7), values(5, 3, 3, 3)


@pytest.mark.parametrize("value", [None, 0.0])
def test_a_convolution_takes_in_zeros(value: float | None) -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        around = padded(emission, x, value=value)
        return windowed(emission, "Conv", around, weights[0], channels=5)

    assert kinds_after(build, X, WEIGHTS) == ["Conv"]


@pytest.mark.parametrize(
    ("pads", "value"), [(AROUND, 1.0), ((0, 1, 0, 0, 0, 0, 0, 0), 0.0), ((0, 0, -1, 0) * 2, 0.0)]
)
def test_other_pads_stay(pads: tuple[int, ...], value: float) -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        around = padded(emission, x, pads, value)
        return windowed(emission, "Conv", around, weights[0], channels=5)

    weights = values(5, 3 + pads[1], 3, 3)
    assert kinds_after(build, X, weights) == ["Pad", "Conv"]


def test_a_maximum_takes_in_zeros_around_what_is_not_negative() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        around = padded(emission, apply(emission, "Relu", x))
        return windowed(emission, "MaxPool", around, channels=3)

    assert kinds_after(build, X) == ["Relu", "MaxPool"]


def test_a_maximum_of_negative_numbers_keeps_the_zeros() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        return windowed(emission, "MaxPool", padded(emission, x), channels=3)

    assert kinds_after(build, -abs(X)) == ["Pad", "MaxPool"]


def test_a_window_of_zeros_alone_keeps_them() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        around = padded(emission, apply(emission, "Relu", x), (0, 0, 3, 0, 0, 0, 0, 0))
        return windowed(emission, "MaxPool", around, channels=3)

    assert kinds_after(build, X) == ["Relu", "Pad", "MaxPool"]
