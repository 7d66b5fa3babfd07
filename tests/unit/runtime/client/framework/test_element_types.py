"""How element types print."""

from __future__ import annotations

import numpy as np

import runtime.client as tf


def test_types_print_as_tensorflows_do(graph):
    with tf.device("/cpu:0"):
        tensor = tf.constant(1.0)
    assert str(tensor.dtype) == "<dtype: 'float32'>"
    assert str(tensor) == 'Tensor("Const:0", shape=(), dtype=float32, device=/device:CPU:0)'
    assert tf.float32.as_numpy_dtype is np.float32
