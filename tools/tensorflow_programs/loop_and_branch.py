"""Control flow of both kinds: Switch and Merge, and While and If over functions."""

import sys

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
results = []
for version_2 in (False, True):
    with tf.Graph().as_default():
        (tf.enable_control_flow_v2 if version_2 else tf.disable_control_flow_v2)()
        n = tf.placeholder(tf.int32, [])
        _, product = tf.while_loop(
            lambda i, p, n=n: i <= n, lambda i, p: (i + 1, p * i), [tf.constant(1), tf.constant(1)]
        )
        parity = tf.cond(
            tf.equal(n % 2, 0), lambda: tf.constant("even"), lambda: tf.constant("odd")
        )
        with tf.Session(sys.argv[1]) as session:
            results.append(session.run([product, parity], {n: 5}))
assert results == [[120, b"odd"]] * 2, results
print("5! =", results[0][0])
