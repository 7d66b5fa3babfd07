"""The first version of an op, which TensorFlow accepts in no new graph."""

from __future__ import annotations

import numpy as np

import runtime.client as tf
from runtime.client import ops


def test_quantize_and_dequantize_passes_the_gradient_on() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([-2.0, 0.3, 0.6])
        y = ops.QuantizeAndDequantize(x, range_given=True, input_min=-0.5, input_max=0.75)
        found = session.run(tf.gradients(y, x, tf.constant([1.0, 2.0, 3.0]))[0])
    np.testing.assert_array_equal(found, [1.0, 2.0, 3.0])
