"""Two sessions of one server share a variable, which outlives the session that created it."""

import sys

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
for use_resource in (False, True):
    with tf.Graph().as_default():
        count = tf.get_variable(f"count_{use_resource}", initializer=0, use_resource=use_resource)
        add = tf.assign_add(count, 1)
        with tf.Session(sys.argv[1]) as first, tf.Session(sys.argv[1]) as second:
            first.run(count.initializer)
            for _ in range(3):
                first.run(add)
                second.run(add)
            assert first.run(count) == second.run(count) == 6
        with tf.Session(sys.argv[1]) as third:
            assert third.run(count) == 6
        isolated = tf.ConfigProto(isolate_session_state=True)
        with tf.Session(sys.argv[1], config=isolated) as alone:
            try:
                alone.run(count)
            except tf.errors.FailedPreconditionError:
                continue
            raise AssertionError("an isolated session saw the variable")
tf.Session.reset(sys.argv[1])
print("shared, kept, isolated; reset")
