"""Errors are raised as TensorFlow's exception classes, with its messages, the op and the node."""

import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
x = tf.placeholder(tf.float32, name="x")
total = tf.add(x, [1.0, 2.0, 3.0], name="total")
variable = tf.get_variable("unset", initializer=1.0, use_resource=False)
resource = tf.get_variable("unset_resource", initializer=1.0, use_resource=True)
checked = tf.debugging.check_numerics(x, "found by the program", name="checked")
taken = tf.gather([1.0, 2.0], tf.constant([5]), name="taken")
queue = tf.FIFOQueue(1, [tf.float32], shared_name="meet_errors")
read = tf.read_file(tf.constant("/elsewhere/file"), name="read")
E = tf.errors
CASES = [
    (total, {x: [1.0, 2.0]}, E.InvalidArgumentError, "Incompatible shapes: [2] vs. [3]"),
    (total, {}, E.InvalidArgumentError, "You must feed a value for placeholder tensor 'x'"),
    (variable, {}, E.FailedPreconditionError, "Attempting to use uninitialized value unset"),
    (resource, {}, E.FailedPreconditionError, "Could not find variable unset_resource"),
    (checked, {x: np.nan}, E.InvalidArgumentError, "found by the program : Tensor had NaN"),
    (taken, {}, E.InvalidArgumentError, "indices[0] = 5 is not in [0, 2)"),
    (read, {}, (E.NotFoundError, E.PermissionDeniedError), "/elsewhere/file"),
]
with tf.Session(sys.argv[1]) as session:
    for fetch, feeds, kind, text in CASES:
        try:
            session.run(fetch, feeds)
        except kind as error:
            assert text in error.message, error.message
            assert fetch is resource or error.op is not None, error
        else:
            raise AssertionError(f"{text!r} was not raised")
    session.run(queue.close())
    try:
        session.run(queue.dequeue())
    except E.OutOfRangeError as error:
        assert "is closed and has insufficient elements" in error.message, error.message
    else:
        raise AssertionError("a closed queue gave an element")
    assert session.run(total, {x: 1.0}).tolist() == [2.0, 3.0, 4.0]
print(f"{len(CASES) + 1} errors, each as TensorFlow's class")
