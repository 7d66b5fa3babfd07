"""Which signatures are batched."""

from __future__ import annotations

import pytest

from server.steps.batching.eligibility import Shape, reason_against


def test_leading_unknown_dimensions_and_no_state_are_what_it_takes() -> None:
    assert reason_against({"x": (-1,), "y": (-1, 3, -1)}, {"z": (-1, 2)}, []) is None


@pytest.mark.parametrize(
    ("inputs", "outputs", "ops", "reason"),
    [
        ({}, {"z": (-1,)}, [], "it has no inputs"),
        ({"x": (-1,)}, {}, [], "it has no outputs"),
        ({"x": None}, {"z": (-1,)}, [], "the rank of input 'x' is unknown"),
        ({"x": ()}, {"z": (-1,)}, [], "input 'x' is a scalar"),
        ({"x": (-1,)}, {"z": (1, -1)}, [], "output 'z' leads with the known dimension 1"),
        ({"x": (-1,)}, {"z": None}, [], "the rank of output 'z' is unknown"),
        (
            {"x": (-1,)},
            {"z": (-1,)},
            ["AssignVariableOp", "RandomUniform"],
            "its step reaches ops that keep state: AssignVariableOp, RandomUniform",
        ),
    ],
)
def test_the_reason_names_what_is_in_the_way(
    inputs: dict[str, Shape], outputs: dict[str, Shape], ops: list[str], reason: str
) -> None:
    assert reason_against(inputs, outputs, ops) == reason
