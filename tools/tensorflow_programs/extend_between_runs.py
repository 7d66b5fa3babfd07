"""Add nodes between runs: the front end extends the session's graph before each."""

import sys

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
value = tf.constant(1.0)
with tf.Session(sys.argv[1]) as session:
    for number in range(10):
        value = value * 2.0
        assert session.run(value) == 2.0 ** (number + 1)
    late = tf.Variable(value + 1.0, name="late")
    session.run(late.initializer)
    assert session.run(late) == 1025.0
print("ten extends, then a variable")
