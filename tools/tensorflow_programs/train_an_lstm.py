"""An LSTM in a `while_loop` learns to remember its first input, with loops of both versions."""

import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
UNITS = 12


def build(random: np.random.Generator) -> tuple:
    """Return (placeholders, loss, update) of a loop whose length is fed."""
    x = tf.placeholder(tf.float32, [None, None], name="x")
    sign = tf.placeholder(tf.float32, [None], name="sign")
    kernel = tf.get_variable(
        "kernel", initializer=random.normal(0, 0.3, (1 + UNITS, 4 * UNITS)).astype("f")
    )
    bias = tf.get_variable("bias", [4 * UNITS], initializer=tf.zeros_initializer())
    batch, time = tf.shape(x)[0], tf.shape(x)[1]
    inputs = tf.TensorArray(tf.float32, time).unstack(tf.transpose(x)[..., tf.newaxis])

    def step(i, cell, output):
        gates = tf.concat([inputs.read(i), output], 1) @ kernel + bias
        write, candidate, forget, show = tf.split(gates, 4, 1)
        cell = cell * tf.sigmoid(forget + 2.0) + tf.sigmoid(write) * tf.tanh(candidate)
        return i + 1, cell, tf.tanh(cell) * tf.sigmoid(show)

    zeros = tf.zeros([batch, UNITS])
    _, _, output = tf.while_loop(
        lambda i, *_: i < time, step, [0, zeros, zeros], parallel_iterations=4
    )
    top = tf.get_variable("top", initializer=random.normal(0, 0.3, (UNITS, 1)).astype("f"))
    logits = (output @ top)[:, 0]
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=sign, logits=logits))
    variables = [kernel, bias, top]
    gradients = tf.gradients(loss, variables)
    update = tf.train.AdamOptimizer(0.03).apply_gradients(zip(gradients, variables, strict=True))
    return (x, sign), loss, update


changes_of_loss = []
for version_2 in (False, True):
    (tf.enable_control_flow_v2 if version_2 else tf.disable_control_flow_v2)()
    random = np.random.default_rng(5)
    isolated = tf.ConfigProto(isolate_session_state=True)
    with tf.Graph().as_default():
        (x, sign), loss, update = build(random)
        with tf.Session(sys.argv[1], config=isolated) as session:
            session.run(tf.global_variables_initializer())
            losses = []
            for index in range(120):
                series = random.normal(size=(32, 5 + index % 4))
                feeds = {x: series, sign: series[:, 0] > 0}
                losses.append(session.run([loss, update], feeds)[0])
    assert losses[0] > 0.6 and np.mean(losses[-10:]) < 0.35, losses
    changes_of_loss.append(f"{losses[0]:.2f} → {np.mean(losses[-10:]):.2f}")
assert changes_of_loss[0] == changes_of_loss[1], changes_of_loss
print("loss", changes_of_loss[0], "by both kinds of loop")
