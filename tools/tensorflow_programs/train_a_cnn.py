"""A convolutional network learns the direction of stripes: moving averages, dropout, Momentum."""

import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.set_random_seed(3)
random = np.random.default_rng(3)
images = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
labels = tf.placeholder(tf.int32, [None], name="labels")
training = tf.placeholder_with_default(False, [], name="training")
x = images
for index, channels in enumerate((4, 8)):
    shape = [3, 3, x.shape[3], channels]
    kernel = tf.get_variable(f"kernel_{index}", initializer=0.3 * random.normal(size=shape))
    x = tf.nn.conv2d(x, tf.cast(kernel, tf.float32), 1, "SAME")
    scale, offset = tf.ones([channels]), tf.get_variable(f"offset_{index}", [channels])
    mean = tf.get_variable(f"mean_{index}", [channels], trainable=False)
    variance = tf.get_variable(f"variance_{index}", initializer=[1.0] * channels, trainable=False)

    def normalise_batch(x=x, scale=scale, offset=offset, mean=mean, variance=variance):
        y, batch_mean, batch_variance = tf.nn.fused_batch_norm(x, scale, offset)
        moved = [tf.assign(mean, 0.9 * mean + 0.1 * batch_mean)]
        moved.append(tf.assign(variance, 0.9 * variance + 0.1 * batch_variance))
        with tf.control_dependencies(moved):
            return tf.identity(y)

    def normalise(x=x, scale=scale, offset=offset, mean=mean, variance=variance):
        return tf.nn.fused_batch_norm(x, scale, offset, mean, variance, is_training=False)[0]

    x = tf.nn.max_pool2d(tf.nn.relu(tf.cond(training, normalise_batch, normalise)), 2, 2, "SAME")
flat = tf.reshape(x, [-1, 32])
flat = tf.cond(training, lambda: tf.nn.dropout(flat, rate=0.2, seed=4), lambda: flat)
logits = flat @ tf.get_variable("top", [32, 2])
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
train = tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True).minimize(loss)
right = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.float32))


def stripes(count: int) -> dict:
    """Return noisy images with vertical (label 0) or horizontal (label 1) stripes, and labels."""
    across = random.integers(0, 2, count)
    waves = np.sin(np.arange(8) * 1.6 + random.uniform(0, 6, (count, 1)))
    down = np.broadcast_to(waves[:, np.newaxis, :], (count, 8, 8))
    pictures = np.where(across[:, None, None], down.transpose(0, 2, 1), down)
    return {images: (pictures + random.normal(0, 0.5, pictures.shape))[..., None], labels: across}


isolated = tf.ConfigProto(isolate_session_state=True)
with tf.Session(sys.argv[1], config=isolated) as session:
    session.run(tf.global_variables_initializer())
    for _ in range(80):
        session.run(train, {**stripes(32), training: True})
    share = session.run(right, stripes(200))
assert share > 0.9, share
print(f"{100 * share:.0f} % right")
