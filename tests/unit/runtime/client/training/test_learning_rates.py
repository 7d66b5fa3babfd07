"""Learning rate decays: arguments that are refused."""

from __future__ import annotations

import pytest

import runtime.client as tf

train = tf.train


def test_decays_that_are_refused(session):
    with pytest.raises(ValueError, match="global_step is required"):
        train.exponential_decay(0.1, None, 10, 0.5)
    with pytest.raises(ValueError, match="boundaries should be 1 less than the length of values"):
        train.piecewise_constant(tf.constant(1), [1, 2], [0.1, 0.2])
