"""A perceptron with two layers learns the exclusive or: gradients in Python, clipped, then Adam."""

import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.set_random_seed(1)
random = np.random.default_rng(1)
x = tf.placeholder(tf.float32, [None, 2], name="x")
label = tf.placeholder(tf.float32, [None], name="label")
hidden = x
for index, size in enumerate((16, 8)):
    shape = [hidden.shape[1], size]
    kernel = tf.get_variable(f"kernel_{index}", initializer=random.normal(size=shape).astype("f"))
    hidden = tf.nn.tanh(hidden @ kernel + tf.get_variable(f"bias_{index}", [size]))
top = tf.get_variable("top", [8, 1], initializer=tf.random_normal_initializer(seed=2))
logits = (hidden @ top)[:, 0]
loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
variables = tf.trainable_variables()
gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
step = tf.train.get_or_create_global_step()
rate = tf.train.exponential_decay(0.05, step, 100, 0.8)
train = tf.train.AdamOptimizer(rate).apply_gradients(zip(gradients, variables, strict=True), step)
points = random.uniform(-1, 1, (200, 2))
feeds = {x: points, label: (points[:, 0] > 0) != (points[:, 1] > 0)}
isolated = tf.ConfigProto(isolate_session_state=True)
with tf.Session(sys.argv[1], config=isolated) as session:
    session.run(tf.global_variables_initializer())
    first = session.run(loss, feeds)
    for _ in range(300):
        session.run(train, feeds)
    last, steps, now = session.run([loss, step, rate], feeds)
assert steps == 300 and abs(now - 0.05 * 0.8**3) < 1e-6, (steps, now)
assert last < 0.15 < first, (first, last)
print(f"loss {first:.2f} → {last:.2f}")
