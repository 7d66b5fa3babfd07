"""An input pipeline of queue runners and a coordinator, read to its end."""

import sys

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
numbers = tf.train.input_producer(
    tf.range(20), num_epochs=2, shuffle=False, shared_name="numbers"
).dequeue()
batch = tf.train.batch([numbers * 10], batch_size=8, num_threads=2, shared_name="batches")
total = 0
with tf.Session(sys.argv[1]) as session:
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    batches = 0
    try:
        while not coordinator.should_stop():
            total += int(session.run(batch).sum())
            batches += 1
    except tf.errors.OutOfRangeError:
        coordinator.request_stop()
    coordinator.join(threads)
assert batches == 5 and total == 2 * 10 * sum(range(20)), (batches, total)
print(f"{batches} batches")
