"""TensorFlow: the default signature's function, on tensors made beforehand."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable

from bench.engines.model_inputs import Arrays

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf  # the child runs in the interpreter that has it


class TensorFlowEngine:
    """`saved_model.load(…).signatures["serving_default"]`; results are converted to arrays."""

    name = "TensorFlow"

    def __init__(self, folder: pathlib.Path, threads: int) -> None:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        self._folder = folder

    def load(self) -> None:
        self._loaded = tf.saved_model.load(str(self._folder / "1"))
        self._function = self._loaded.signatures["serving_default"]

    def prepare(self, inputs: Arrays) -> Callable[[], Arrays]:
        """Return a function that runs one step on the inputs."""
        feeds = {name: tf.constant(value) for name, value in inputs.items()}
        return lambda: {key: value.numpy() for key, value in self._function(**feeds).items()}
