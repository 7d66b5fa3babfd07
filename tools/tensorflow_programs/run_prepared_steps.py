"""Prepared steps: make_callable, and partial_run."""

import sys

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
a = tf.placeholder(tf.float32, [], name="a")
b = tf.placeholder(tf.float32, [], name="b")
doubled = a * 2.0
total = doubled + b
with tf.Session(sys.argv[1]) as session:
    call = session.make_callable([total, doubled], feed_list=[a, b])
    assert [call(1.0, 2.0), call(3.0, 0.0)] == [[4.0, 2.0], [6.0, 6.0]]
    handle = session.partial_run_setup([doubled, total], [a, b])
    assert session.partial_run(handle, doubled, {a: 4.0}) == 8.0
    assert session.partial_run(handle, total, {b: 1.0}) == 9.0
print("a callable and a partial run")
