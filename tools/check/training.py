"""Train small models in TensorFlow and in Runstep, and compare the loss of every step.

    TENSORFLOW_PYTHON tools/check/training.py grpc://host:port [--steps 100]
    TENSORFLOW_PYTHON tools/check/training.py exported [--steps 100]

Requires TensorFlow. With a target, TensorFlow's client runs the steps on Runstep's gRPC port; the
server's sessions need no access to files. With `exported`, TensorFlow exports each training graph
as a MetaGraphDef and a Runstep session in this process runs all steps, which requires this
project's dependencies too.

Each model is a training graph in the style of TensorFlow 1: variables with fixed initial values,
`minimize` of an optimiser, one batch fed in each step. Prints the table of docs/training.md and
exits with 1 if a loss differs from TensorFlow's by more than BAR. The LSTM is a `while_loop` with
TensorArrays: once with frames and stacks (version 1), once as a While of functions with tensor
lists (version 2).
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # after the environment variables are set
import tensorflow as tf

v1 = tf.compat.v1
BAR = 1e-3  # relative to the first loss
BATCH, CLASSES, SIDE, UNITS = 16, 10, 8, 16

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: v1.train.GradientDescentOptimizer(0.1),
    "Momentum": lambda: v1.train.MomentumOptimizer(0.02, 0.9),
    "Adam": lambda: v1.train.AdamOptimizer(0.003),
    "RMSProp": lambda: v1.train.RMSPropOptimizer(0.001, momentum=0.5),
    "Adagrad": lambda: v1.train.AdagradOptimizer(0.05),
}


class Model:
    """A graph under construction; initial values are numpy's random numbers with a fixed seed."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(7)
        self.x = v1.placeholder(tf.float32, [BATCH, SIDE, SIDE], name="x")
        self.y = v1.placeholder(tf.int32, [BATCH], name="y")

    def weights(self, name: str, *dimensions: Any) -> Any:
        """Return a variable with small random values."""
        shape = tf.TensorShape(dimensions).as_list()
        scale = np.sqrt(2 / np.prod(shape[:-1]))
        initial = self._random.normal(0, scale, shape).astype(np.float32)
        return v1.get_variable(name, initializer=initial)

    def bias(self, name: str, size: int) -> Any:
        """Return a variable of zeros [size]."""
        return v1.get_variable(name, initializer=np.zeros(size, np.float32))


def cnn(model: Model) -> Any:
    """Return the logits of two convolutions with pooling and batch norm, then a dense layer."""
    image = model.x[..., tf.newaxis]
    for index, channels in enumerate((8, 16)):
        kernel = model.weights(f"kernel_{index}", 3, 3, image.shape[-1], channels)
        image = tf.nn.conv2d(image, kernel, 1, "SAME") + model.bias(f"bias_{index}", channels)
        mean, variance = tf.nn.moments(image, [0, 1, 2])
        scale = v1.get_variable(f"scale_{index}", initializer=np.ones(channels, np.float32))
        offset = model.bias(f"offset_{index}", channels)
        image = tf.nn.relu(tf.nn.batch_normalization(image, mean, variance, offset, scale, 1e-3))
        image = tf.nn.max_pool2d(image, 2, 2, "SAME")
    flat = tf.reshape(image, [BATCH, -1])
    return flat @ model.weights("dense", flat.shape[-1], CLASSES) + model.bias("logits", CLASSES)


def lstm(model: Model) -> Any:
    """Return the logits of an LSTM over the image's rows, then a dense layer on its mean output."""
    kernel = model.weights("kernel", SIDE + UNITS, 4 * UNITS)
    bias = model.bias("bias", 4 * UNITS)
    rows = tf.TensorArray(tf.float32, SIDE).unstack(tf.transpose(model.x, [1, 0, 2]))

    def step(time: Any, cell: Any, output: Any, outputs: Any) -> tuple[Any, ...]:
        gates = tf.concat([rows.read(time), output], 1) @ kernel + bias
        write, candidate, forget, show = tf.split(gates, 4, 1)
        cell = cell * tf.sigmoid(forget + 1.0) + tf.sigmoid(write) * tf.tanh(candidate)
        output = tf.tanh(cell) * tf.sigmoid(show)
        return time + 1, cell, output, outputs.write(time, output)

    zeros = tf.zeros([BATCH, UNITS])
    state = (tf.constant(0), zeros, zeros, tf.TensorArray(tf.float32, SIDE))
    outputs = tf.while_loop(lambda time, *_: time < SIDE, step, state)[3]
    mean = tf.reduce_mean(outputs.stack(), 0)
    return mean @ model.weights("dense", UNITS, CLASSES) + model.bias("logits", CLASSES)


MODELS: dict[str, tuple[Callable[[Model], Any], bool]] = {
    "CNN": (cnn, False),
    "LSTM, `while_loop` version 1": (lstm, False),
    "LSTM, `while_loop` version 2": (lstm, True),
}


def batches(steps: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return for each step noisy images of ten patterns, and the pattern's number as the label."""
    random = np.random.default_rng(11)
    patterns = random.normal(size=(CLASSES, SIDE, SIDE))
    made = []
    for _ in range(steps):
        labels = random.integers(0, CLASSES, BATCH)
        noise = random.normal(scale=0.7, size=(BATCH, SIDE, SIDE))
        made.append(((patterns[labels] + noise).astype(np.float32), labels.astype(np.int32)))
    return made


def build(model_name: str, optimizer: str) -> tuple[Model, Any, Any]:
    """Build a model in the default graph; return (model, loss, update)."""
    build_logits, is_version_2 = MODELS[model_name]
    switch = v1.enable_control_flow_v2 if is_version_2 else v1.disable_control_flow_v2
    switch()
    model = Model()
    logits = build_logits(model)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=model.y, logits=logits)
    loss = tf.reduce_mean(losses)
    return model, loss, OPTIMIZERS[optimizer]().minimize(loss)


def train(target: str, model_name: str, optimizer: str, steps: int) -> list[float]:
    """Train in a session on `target`; return the loss of each step."""
    config = v1.ConfigProto(isolate_session_state=True)
    with tf.Graph().as_default():
        model, loss, update = build(model_name, optimizer)
        with v1.Session(target, config=config) as session:
            session.run(v1.global_variables_initializer())
            return [
                float(session.run([loss, update], {model.x: x, model.y: y})[0])
                for x, y in batches(steps)
            ]


def train_exported(_: str, model_name: str, optimizer: str, steps: int) -> list[float]:
    """Train in a Runstep session in this process, from the exported MetaGraphDef."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
    import protos as pb
    from runtime.api import SessionOptions, new_session

    with tf.Graph().as_default():
        model, loss, update = build(model_name, optimizer)
        init = v1.global_variables_initializer()
        exported = v1.train.export_meta_graph().SerializeToString()
        x, y, fetch = model.x.name, model.y.name, loss.name
    session = new_session(SessionOptions())
    session.create(pb.MetaGraphDef.FromString(exported).graph_def)
    session.run({}, [], [init.name])
    losses = [
        float(session.run({x: image, y: label}, [fetch], [update.name])[0])
        for image, label in batches(steps)
    ]
    session.close()
    return losses


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", help="grpc://host:port of the server, or: exported")
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    v1.disable_v2_behavior()
    train_here = train_exported if options.target == "exported" else train
    print("| model | optimiser | first loss | last loss | largest difference |")
    print("| --- | --- | --- | --- | --- |")
    worst = 0.0
    for model in MODELS:
        for optimizer in OPTIMIZERS:
            theirs = train("", model, optimizer, options.steps)
            ours = train_here(options.target, model, optimizer, options.steps)
            difference = np.abs(np.subtract(ours, theirs)).max() / theirs[0]
            worst = max(worst, float(difference))
            figures = f"{theirs[0]:.4f} | {theirs[-1]:.4f} | {difference:.1e}"
            print(f"| {model} | {optimizer} | {figures} |", flush=True)
    return 1 if not worst <= BAR else 0


if __name__ == "__main__":
    raise SystemExit(main())
