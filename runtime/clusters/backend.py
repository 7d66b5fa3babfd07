"""ONNX Runtime: compiles and runs models. The only importer of `onnxruntime`.

TF: none. Facts about the engine that this file relies on are in its tests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnxruntime

from runtime.clusters.model_proto import SerializedModel

# Idle threads of a session look for work this long (µs) before they sleep. The engine's default
# burns 40 % of a core for 100 ms after each run; without any spinning small models are 1.3 times
# slower.
SPIN_MICROSECONDS = 50


class UncheckedRunError(Exception):
    """The engine's results don't count, because its inputs are ones with which it differs."""


class CompiledModel:
    """A model that the engine has optimised for this processor. Thread-safe.

    With `threads` = 1 all work is done in the thread that calls `run`.
    """

    def __init__(self, model: SerializedModel, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # errors are raised, so they are not printed as well
        options.add_session_config_entry(
            "session.intra_op.spin_duration_us", str(SPIN_MICROSECONDS)
        )
        names = list(model.arrays)
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(model.arrays[name]) for name in names]
        if names:
            options.add_external_initializers(names, values)
        self._session = onnxruntime.InferenceSession(
            model.message, options, providers=["CPUExecutionProvider"]
        )
        # The options keep the arrays alive, of which the engine has copies now.
        self._session._sess_options = None
        self._inputs = (*model.inputs, *(name for name, _ in model.weights))
        self._outputs = [*model.outputs, *model.checks]
        self._count = len(model.outputs)
        # The engine ends the process, instead of raising an error, when LSTM or GRU get no rows.
        self._refuses_empty = model.refuses_empty

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the outputs for the inputs, then the arrays of `SerializedModel.weights`.

        Raises UncheckedRunError if a check of the model fails, or if an input must not be empty.
        """
        if self._refuses_empty and not all(array.size for array in arrays):
            raise UncheckedRunError("an input is empty")
        feeds = dict(zip(self._inputs, arrays, strict=True))
        outputs: list[np.ndarray] = self._session.run(self._outputs, feeds)
        checks = outputs[self._count :]
        if not all(math.isfinite(each) for each in checks):
            raise UncheckedRunError("an input or a result is not finite")
        return outputs[: self._count] if checks else outputs
