"""Training gives TensorFlow's losses, names of variables, checkpoints and learning rates."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import runtime.client as tf
from tests.conformance.case import read_golden
from tests.training.programs import PROGRAMS, STEPS, Training, decays, digest

GOLDEN = read_golden("training_programs")
CHECKPOINT = pathlib.Path(__file__).parent / "checkpoint" / "embedding-Adam"


def recorded(name: str) -> tuple[np.ndarray, list[str]]:
    """(values, names) as recorded with TensorFlow."""
    assert GOLDEN[name][0] == digest(), "the programs changed: run tools/record/training.py"
    values, names = GOLDEN[name][1][0].values
    return values, [each.decode() for each in names]


@pytest.mark.parametrize("name", PROGRAMS)
def test_losses_and_names_are_tensorflows(name: str) -> None:
    expected, names = recorded(name)
    training = Training(tf, PROGRAMS[name])
    assert training.names == names
    losses = training.losses()
    training.close()
    np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-5)


def test_training_goes_on_from_a_checkpoint_of_tensorflows() -> None:
    expected, _ = recorded(CHECKPOINT.name)
    training = Training(tf, PROGRAMS[CHECKPOINT.name])
    training.restore(str(CHECKPOINT))
    np.testing.assert_allclose(
        training.losses(STEPS // 2), expected[STEPS // 2 :], rtol=0, atol=1e-5
    )
    training.close()


def test_learning_rates_are_tensorflows() -> None:
    expected, names = recorded("decays")
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.placeholder(tf.int32, [])
        rates = decays(tf, step)
        assert list(rates) == names
        found = [session.run(list(rates.values()), {step: number}) for number in range(10)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
