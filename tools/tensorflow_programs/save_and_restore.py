"""Save variables with a Saver, change them and restore them; the server writes the files."""

import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
weights = tf.get_variable("weights", initializer=np.arange(6, dtype=np.float32).reshape(2, 3))
names = tf.get_variable("names", initializer=np.array([b"a", b"\x00"]), use_resource=True)
saver = tf.train.Saver()
prefix = os.path.join(sys.argv[2], "model")
with tf.Session(sys.argv[1]) as session:
    session.run(tf.global_variables_initializer())
    saved = session.run([weights, names])
    path = saver.save(session, prefix, global_step=7)
    session.run(tf.assign(weights, tf.zeros([2, 3])))
    saver.restore(session, path)
    restored = session.run([weights, names])
for before, after in zip(saved, restored, strict=True):
    np.testing.assert_array_equal(before, after)
# The checkpoint has TensorFlow's format: its reader can read it.
np.testing.assert_array_equal(tf.train.load_variable(path, "weights"), saved[0])
with tf.Session(sys.argv[1]) as session:
    session.run(tf.global_variables_initializer())
    try:
        saver.save(session, "/elsewhere/model", write_meta_graph=False)
    except (tf.errors.OpError, ValueError) as error:
        print(f"saved and restored; elsewhere {type(error).__name__}")
    else:
        raise AssertionError("a file was written outside the allowed paths")
