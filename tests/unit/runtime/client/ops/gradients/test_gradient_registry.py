"""Gradient functions that a program registers."""

from __future__ import annotations

import numpy as np
import pytest

import runtime.client as tf

V = np.array([1, 2, 3], np.float32)


@pytest.fixture
def x(session):
    return tf.placeholder(tf.float32, [3], name="x")


def test_registered_gradients(session, x):
    @tf.RegisterGradient("ThreeTimes")
    def three_times(operation, grad):
        assert operation.type == "Square"
        return 3.0 * grad

    with tf.get_default_graph().gradient_override_map({"Square": "ThreeTimes"}):
        y = tf.square(x)
    assert session.run(tf.gradients(y, x), {x: V})[0].tolist() == [3, 3, 3]
    with pytest.raises(KeyError, match="Registering two gradient with name 'ThreeTimes'!"):
        tf.RegisterGradient("ThreeTimes")(three_times)
    with pytest.raises(KeyError, match="Registering two gradient with name 'MatMul'!"):
        tf.NotDifferentiable("MatMul")
    with tf.get_default_graph().gradient_override_map({"Square": "Nowhere"}):
        other = tf.square(x)
    with pytest.raises(LookupError, match="'Nowhere', which is not registered"):
        tf.gradients(other, x)


def test_a_gradient_function_with_another_number_of_gradients(session, x):
    tf.RegisterGradient("TooMany")(lambda operation, grad: [grad, grad])
    with tf.get_default_graph().gradient_override_map({"Exp": "TooMany"}):
        y = tf.exp(x)
    with pytest.raises(ValueError, match=r"Num gradients 2 generated for op Exp \(Exp\) do not"):
        tf.gradients(y, x)


def test_custom_gradients(session, x):
    @tf.custom_gradient
    def clipped(a, b):
        return a * b, lambda grad: [tf.minimum(grad * b, 2.0), None]

    found = tf.gradients(clipped(x, x * 1.0), x)
    assert session.run(found, {x: V})[0].tolist() == [1, 2, 2]
    with pytest.raises(TypeError, match="takes its variables as arguments"):
        tf.custom_gradient(lambda a: (a * tf.Variable(V), lambda grad: grad))(x)
