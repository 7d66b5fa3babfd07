"""Fit a line by gradient descent; prints the slope and the intercept."""

import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
x = tf.placeholder(tf.float32, [None])
y = tf.placeholder(tf.float32, [None])
slope = tf.Variable(0.0, name="slope")
intercept = tf.Variable(0.0, name="intercept")
loss = tf.reduce_mean(tf.square(slope * x + intercept - y))
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
xs = np.linspace(-1, 1, 50, dtype=np.float32)
with tf.Session(sys.argv[1]) as session:
    session.run(tf.global_variables_initializer())
    for _ in range(200):
        session.run(train, {x: xs, y: 3 * xs + 1})
    fitted = session.run([slope, intercept])
np.testing.assert_allclose(fitted, [3, 1], atol=1e-3)
print(f"y = {fitted[0]:.3f} x + {fitted[1]:.3f}")
