"""Programs that train: written for `tf.compat.v1`, run by TensorFlow and by the front end alike.

`tf` is the namespace that a program is written for. Initial values and batches are numpy's, the
same in both. `tools/record/training.py` stores TensorFlow's losses.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

STEPS = 50
BATCH, CLASSES, ROWS = 16, 5, 12


@dataclasses.dataclass(frozen=True)
class Program:
    """A model and what trains it."""

    model: Callable[[Any, Weights], tuple[Any, Any, Any]]  # (x, y, loss)
    optimizer: Callable[[Any, Any], Any]  # of (tf, the global step)
    use_resource: bool = True
    clip_norm: float | None = None


class Weights:
    """Makes variables; their values are drawn in the order of the calls."""

    def __init__(self, tf: Any, use_resource: bool) -> None:
        self._tf = tf
        self._use_resource = use_resource
        self._random = np.random.default_rng(7)

    def __call__(self, name: str, *shape: int) -> Any:
        """A variable with small random values."""
        scale = 1 / np.sqrt(np.prod(shape[:-1]))
        value = self._random.normal(0, scale, shape).astype(np.float32)
        return self._tf.get_variable(name, initializer=value, use_resource=self._use_resource)


def _mlp(tf: Any, weights: Weights) -> tuple[Any, Any, Any]:
    x = tf.placeholder(tf.float32, [None, 8], name="x")
    y = tf.placeholder(tf.int32, [None], name="y")
    with tf.variable_scope("first"):
        hidden = tf.nn.relu(tf.matmul(x, weights("kernel", 8, 16)) + weights("bias", 16))
    with tf.variable_scope("second"):
        kernel = weights("kernel", 16, CLASSES)
        logits = tf.nn.xw_plus_b(tf.tanh(hidden), kernel, weights("bias", CLASSES))
    losses = tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=tf.one_hot(y, CLASSES), logits=logits
    )
    return x, y, tf.reduce_mean(losses) + 0.01 * tf.nn.l2_loss(kernel)


def _cnn(tf: Any, weights: Weights) -> tuple[Any, Any, Any]:
    x = tf.placeholder(tf.float32, [None, 8], name="x")
    y = tf.placeholder(tf.int32, [None], name="y")
    image = tf.reshape(tf.concat([x, -x, x * 0.5, tf.abs(x)] * 2, 1), [-1, 8, 8, 1])
    for index, channels in enumerate((4, 6)):
        kernel = weights(f"kernel_{index}", 3, 3, image.shape.as_list()[-1], channels)
        image = tf.nn.conv2d(image, kernel, [1, 1, 1, 1], "SAME")
        mean, variance = tf.nn.moments(image, [0, 1, 2])
        image = tf.nn.batch_normalization(
            image, mean, variance, weights(f"offset_{index}", channels), None, 1e-3
        )
        image = tf.nn.max_pool(tf.nn.elu(image), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    flat = tf.reshape(image, [-1, 2 * 2 * 6])
    logits = tf.nn.bias_add(tf.matmul(flat, weights("dense", 24, CLASSES)), weights("b", CLASSES))
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    return x, y, tf.reduce_mean(losses)


def _embedding(tf: Any, weights: Weights) -> tuple[Any, Any, Any]:
    x = tf.placeholder(tf.float32, [None, 8], name="x")
    y = tf.placeholder(tf.int32, [None], name="y")
    ids = tf.cast(tf.floor(x * 1.5), tf.int32) + ROWS // 2
    ids = tf.clip_by_value(ids, 0, ROWS - 1)  # some rows come many times, some never
    words = tf.nn.embedding_lookup(weights("table", ROWS, 6), ids)
    logits = tf.matmul(tf.reshape(words, [-1, 48]), weights("dense", 48, 1))
    right = tf.cast(tf.expand_dims(y, 1) > 1, tf.float32)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=right, logits=logits)
    return x, y, tf.reduce_mean(losses)


def _lstm(tf: Any, weights: Weights) -> tuple[Any, Any, Any]:
    """A loop over arrays with a branch in it: frames in TensorFlow, functions in the front end."""
    x = tf.placeholder(tf.float32, [BATCH, 8], name="x")
    y = tf.placeholder(tf.int32, [BATCH], name="y")
    units = 6
    kernel, bias = weights("kernel", 2 + units, 4 * units), weights("bias", 4 * units)
    rows = tf.TensorArray(tf.float32, 4).unstack(
        tf.transpose(tf.reshape(x, [BATCH, 4, 2]), [1, 0, 2])
    )

    def step(time: Any, cell: Any, output: Any, outputs: Any) -> tuple[Any, ...]:
        gates = tf.matmul(tf.concat([rows.read(time), output], 1), kernel) + bias
        write, candidate, forget, show = tf.split(gates, 4, 1)
        kept = tf.cond(time > 1, lambda: cell * 0.5, lambda: tf.nn.softsign(cell))
        cell = kept * tf.sigmoid(forget + 1.0) + tf.sigmoid(write) * tf.tanh(candidate)
        output = tf.tanh(cell) * tf.sigmoid(show)
        return time + 1, cell, output, outputs.write(time, output)

    zeros = tf.zeros([BATCH, units])
    state = (tf.constant(0), zeros, zeros, tf.TensorArray(tf.float32, 4))
    outputs = tf.while_loop(lambda time, *_: time < 4, step, state)[3]
    flat = tf.reshape(tf.transpose(outputs.stack(), [1, 0, 2]), [BATCH, 4 * units])
    logits = tf.matmul(flat, weights("dense", 4 * units, CLASSES))
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    return x, y, tf.reduce_mean(losses)


OPTIMIZERS: dict[str, Callable[[Any, Any], Any]] = {
    "GradientDescent": lambda tf, step: tf.train.GradientDescentOptimizer(0.2),
    "decaying": lambda tf, step: tf.train.GradientDescentOptimizer(
        tf.train.exponential_decay(0.5, step, 10, 0.7)
    ),
    "Momentum": lambda tf, step: tf.train.MomentumOptimizer(0.05, 0.9),
    "Nesterov": lambda tf, step: tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "Adam": lambda tf, step: tf.train.AdamOptimizer(0.01),
    "RMSProp": lambda tf, step: tf.train.RMSPropOptimizer(0.005, momentum=0.5, epsilon=1e-3),
    "centered": lambda tf, step: tf.train.RMSPropOptimizer(0.005, centered=True, epsilon=1e-2),
    "Adagrad": lambda tf, step: tf.train.AdagradOptimizer(0.1),
    "Adadelta": lambda tf, step: tf.train.AdadeltaOptimizer(5.0),
    "Ftrl": lambda tf, step: tf.train.FtrlOptimizer(
        0.05, l1_regularization_strength=0.001, l2_regularization_strength=0.01
    ),
    "shrinking": lambda tf, step: tf.train.FtrlOptimizer(
        0.05, l2_shrinkage_regularization_strength=0.01
    ),
}
_MODELS = {"mlp": _mlp, "cnn": _cnn, "embedding": _embedding}

PROGRAMS: dict[str, Program] = {
    **{
        f"{model}-{optimizer}": Program(_MODELS[model], OPTIMIZERS[optimizer])
        for model in _MODELS
        for optimizer in OPTIMIZERS
    },
    **{
        f"embedding-{optimizer}-reference": Program(_embedding, make, use_resource=False)
        for optimizer, make in OPTIMIZERS.items()
    },
    **{
        f"{model}-clipped": Program(_MODELS[model], OPTIMIZERS["Adam"], clip_norm=0.1)
        for model in _MODELS
    },
    **{
        f"lstm-{optimizer}": Program(_lstm, OPTIMIZERS[optimizer])
        for optimizer in ("GradientDescent", "Adam")
    },
}


class Training:
    """A program in a graph of its own, and a session of it."""

    def __init__(self, tf: Any, program: Program) -> None:
        self._tf = tf
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            weights = Weights(tf, program.use_resource)
            self._x, self._y, self._loss = program.model(tf, weights)
            optimizer = program.optimizer(tf, step)
            if program.clip_norm is None:
                self._update = optimizer.minimize(self._loss, step)
            else:
                gradients, variables = zip(*optimizer.compute_gradients(self._loss), strict=True)
                clipped, _ = tf.clip_by_global_norm(gradients, program.clip_norm)
                pairs = zip(clipped, variables, strict=True)
                self._update = optimizer.apply_gradients(pairs, step)
            self.names = [variable.op.name for variable in tf.global_variables()]
            self._saver = tf.train.Saver()
            self._init = tf.global_variables_initializer()
            self._session = tf.Session()
        self._session.run(self._init)

    def losses(self, first: int = 0, last: int = STEPS) -> np.ndarray:
        """The losses before the steps from `first` up to `last`, which it takes."""
        found = []
        for x, y in list(_batches())[first:last]:
            fetched = self._session.run([self._loss, self._update], {self._x: x, self._y: y})
            found.append(fetched[0])
        return np.array(found, np.float32)

    def save(self, path: str) -> None:
        """Write a checkpoint."""
        self._saver.save(self._session, path, write_meta_graph=False)

    def restore(self, path: str) -> None:
        """Read a checkpoint."""
        self._saver.restore(self._session, path)

    def close(self) -> None:
        """End the session."""
        self._session.close()


def _batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Noisy examples of a few classes."""
    random = np.random.default_rng(11)
    patterns = random.normal(size=(CLASSES, 8))
    for _ in range(STEPS):
        labels = random.integers(0, CLASSES, BATCH)
        examples = patterns[labels] + random.normal(scale=0.5, size=(BATCH, 8))
        yield examples.astype(np.float32), labels.astype(np.int32)


def decays(tf: Any, step: Any) -> dict[str, Any]:
    """Learning rates by the step."""
    train = tf.train
    return {
        "exponential": train.exponential_decay(0.5, step, 4, 0.7),
        "exponential_stairs": train.exponential_decay(0.5, step, 4, 0.7, staircase=True),
        "natural": train.natural_exp_decay(0.5, step, 4, 0.7),
        "natural_stairs": train.natural_exp_decay(0.5, step, 4, 0.7, staircase=True),
        "inverse": train.inverse_time_decay(0.5, step, 4, 0.7),
        "inverse_stairs": train.inverse_time_decay(0.5, step, 4, 0.7, staircase=True),
        "polynomial": train.polynomial_decay(0.5, step, 6, 0.1),
        "polynomial_power": train.polynomial_decay(0.5, step, 6, 0.1, power=2.0),
        "polynomial_cycle": train.polynomial_decay(0.5, step, 6, 0.1, cycle=True),
        "cosine": train.cosine_decay(0.5, step, 6, alpha=0.1),
        "pieces": train.piecewise_constant(step, [2, 5], [0.5, 0.25, 0.125]),
    }


@functools.cache
def digest() -> str:
    """Changes when this file does."""
    return hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()[:16]
