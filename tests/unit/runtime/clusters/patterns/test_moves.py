"""Transposes and Reshapes vanish where they can, and what remains moves elements as before."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.clusters.dimensions import SymbolicSize
from runtime.clusters.emission import Emission
from runtime.clusters.values import Value
from tests.unit.runtime.clusters.patterns.rewritten import apply, kinds_after, values

FIRST, LAST = [0, 3, 1, 2], [0, 2, 3, 1]


def transposed(emission: Emission, value: Value, order: list[int]) -> Value:
    shape = tuple(value.shape[axis] for axis in order)
    return emission.op("Transpose", [value], value.dtype, shape, perm=order)


def reshaped(emission: Emission, value: Value, *shape: int) -> Value:
    target = emission.constant(np.array([0, *shape]))
    return emission.op("Reshape", [value, target], value.dtype, (value.shape[0], *shape))


def test_a_transpose_moves_up_to_the_input() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        centred = apply(emission, "Sub", x, weights[0])
        divided = apply(emission, "Div", centred, weights[1])
        return apply(emission, "Relu", transposed(emission, divided, FIRST))

    found = kinds_after(build, values(2, 4, 5, 3), values(1, 1, 1, 3), abs(values(3)) + 1)
    assert found == ["Transpose", "Sub", "Div", "Relu"]


def test_transposes_that_undo_each_other_vanish() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        last = transposed(emission, apply(emission, "Relu", x), LAST)
        scaled = apply(emission, "Mul", last, weights[0])
        pads = emission.constant(np.array([0, 1, 0, 0, 0, 0, 2, 0]))
        shape = (x.shape[0], 6, 7, 3)
        around = emission.op("Pad", [scaled, pads], x.dtype, shape, mode="constant")
        return apply(emission, "Neg", transposed(emission, around, FIRST))

    found = kinds_after(build, values(2, 3, 5, 5), values(3))
    assert found == ["Relu", "Mul", "Pad", "Neg"]


def test_sequences_between_convolutions_of_one_axis() -> None:
    """Conv1D is Conv2D of images of one row; between two of them there is nothing to move."""

    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        image = apply(emission, "Neg", x)
        sequence = reshaped(emission, transposed(emission, image, LAST), 5, 3)
        active = apply(emission, "Relu", apply(emission, "Add", sequence, weights[0]))
        again = transposed(emission, reshaped(emission, active, 1, 5, 3), FIRST)
        return apply(emission, "Neg", again)

    found = kinds_after(build, values(2, 3, 1, 5), values(3))
    assert "Transpose" not in found


def test_axes_of_size_1_are_not_moved() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        """Squeeze and excite: means of channels, flattened, and as an image of one pixel."""
        batch, channels, *_ = x.shape
        mean = emission.op("GlobalAveragePool", [x], x.dtype, (batch, channels, 1, 1))
        flat = emission.op("Flatten", [mean], x.dtype, (batch, channels), axis=1)
        pixel = transposed(emission, reshaped(emission, flat, 1, 1, 3), FIRST)
        return apply(emission, "Mul", x, apply(emission, "Sigmoid", pixel))

    assert kinds_after(build, values(2, 3, 4, 5)) == ["GlobalAveragePool", "Sigmoid", "Mul"]


def test_a_value_that_something_else_reads_stays() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> list[Value]:
        active = apply(emission, "Relu", x)
        return [active, transposed(emission, active, FIRST)]

    assert kinds_after(build, values(2, 4, 5, 3)) == ["Relu", "Transpose"]


def test_an_operand_that_makes_a_tensor_larger_stays_before_the_transpose() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        large = apply(emission, "Add", x, weights[0])
        return transposed(emission, large, FIRST)

    assert kinds_after(build, values(2, 1, 5, 3), values(4, 1, 1)) == ["Add", "Transpose"]


def test_an_output_that_is_an_input_moved_twice() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        return transposed(emission, transposed(emission, x, FIRST), LAST)

    assert kinds_after(build, values(2, 4, 5, 3)) == []


STEPS = st.sampled_from(
    ["Relu", "Neg", "vector", "image", "join", "part", [0, 3, 1, 2], [0, 2, 3, 1], [0, 2, 1, 3]]
)


@settings(max_examples=80, deadline=None)
@given(st.lists(STEPS, max_size=8), st.permutations([2, 3, 1]))
def test_any_sequence(steps: list[str | list[int]], sizes: list[int]) -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        value = x
        for step in steps:
            value = stepped(emission, value, step, weights[0])
        return apply(emission, "Neg", value)

    kinds_after(build, values(2, *sizes), values(6))


def stepped(emission: Emission, value: Value, step: str | list[int], vector: Value) -> Value:
    """Add one step to a value `[batch, a, b, c]`."""
    sizes = [size for size in value.shape if not isinstance(size, SymbolicSize)]
    if isinstance(step, list):
        return transposed(emission, value, step)
    if step == "join":
        joined = emission.constant(np.array([-1, 1, 1, int(np.prod(sizes))]))
        return emission.op(
            "Reshape", [value, joined], value.dtype, (value.shape[0], 1, 1, int(np.prod(sizes)))
        )
    if step == "part":
        return reshaped(emission, value, *sorted(sizes))
    if step == "vector":
        part = emission.derive(lambda array: array[: sizes[-1]], vector)
        return apply(emission, "Add", value, part)
    if step == "image":
        part = emission.derive(lambda array: array[: sizes[0]].reshape(-1, 1, 1), vector)
        return apply(emission, "Mul", part, value)
    return apply(emission, step, value)
