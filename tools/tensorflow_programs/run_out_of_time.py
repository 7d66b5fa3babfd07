"""A step ends at its own deadline, another at the session's; the sessions stay usable."""

import sys
import time

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
queue = tf.FIFOQueue(1, [tf.float32], shared_name="run_out_of_time")
dequeue, enqueue = queue.dequeue(), queue.enqueue([1.0])


def check_deadline(session: tf.Session, options: tf.RunOptions | None) -> float:
    started = time.monotonic()
    try:
        session.run(dequeue, options=options)
    except tf.errors.DeadlineExceededError:
        return time.monotonic() - started
    raise AssertionError("an empty queue gave an element")


with tf.Session(sys.argv[1]) as session:
    session.run(queue.size())
    of_step = check_deadline(session, tf.RunOptions(timeout_in_ms=300))
    session.run(enqueue)
    assert session.run(dequeue) == 1.0
with tf.Session(sys.argv[1], config=tf.ConfigProto(operation_timeout_in_ms=400)) as session:
    of_session = check_deadline(session, None)
assert 0.25 < of_step < 5 and 0.35 < of_session < 5, (of_step, of_session)
print(f"ended after {of_step:.2f} s and {of_session:.2f} s")
