"""ONNX Runtime: compiles and runs models. The only importer of `onnxruntime`.

TF: none. Facts about the engine that this file relies on are in its tests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnxruntime

from runtime.clusters.model_proto import SerializedModel
from runtime.clusters.running.compile_queue import Interrupt
from runtime.clusters.running.engine import UncheckedRunError

NAME = "ONNX Runtime"
VERSION = onnxruntime.__version__
_MINIMUM_VERSION = (1, 32)  # older ones ignore SPIN_MICROSECONDS without an error
# Idle threads of a session look for work this long (µs) before they sleep. The engine's default
# burns 40 % of a core for 100 ms after each run; without any spinning small models are 1.3 times
# slower.
SPIN_MICROSECONDS = 50


def is_fit() -> bool:
    """Return whether the installed engine has what this file relies on."""
    parts = VERSION.split(".")[:2]
    return all(map(str.isdigit, parts)) and tuple(map(int, parts)) >= _MINIMUM_VERSION


class RunControl:
    """Stops one run of a model, from any thread."""

    def __init__(self) -> None:
        self.options = onnxruntime.RunOptions()

    def stop(self) -> None:
        """End the run before its next operation."""
        self.options.terminate = True


class CompiledModel:
    """A model that the engine has optimised for this processor. Thread-safe.

    With `threads` = 1 all work is done in the thread that calls `run`. `bytes_held` is the size of
    the arrays in the model. If it `keeps_memory`, it holds twice what a run needs between runs,
    otherwise the C library decides. Setting `interrupt` ends the constructor with an error of the
    engine.
    """

    def __init__(
        self,
        model: SerializedModel,
        threads: int,
        interrupt: Interrupt | None = None,
        keeps_memory: bool = True,
    ) -> None:
        options = _session_options(threads)
        options.enable_cpu_mem_arena = keeps_memory
        names = list(model.arrays)
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(model.arrays[name]) for name in names]
        if names:
            options.add_external_initializers(names, values)
        if interrupt is not None:
            interrupt.begin(lambda: options.set_load_cancellation_flag(True))
            if interrupt.is_set:
                options.set_load_cancellation_flag(True)
        try:
            self._session = onnxruntime.InferenceSession(
                model.message, options, providers=["CPUExecutionProvider"]
            )
        finally:
            if interrupt is not None:
                interrupt.end()
        # The options keep the arrays alive, of which the engine has copies now.
        self._session._sess_options = None
        # The public `run` checks the names of the inputs in Python before it calls this one, which
        # takes 4 µs, a third of the time that a small model takes.
        self._run = getattr(self._session, "_sess", self._session).run
        self._inputs = (*model.inputs, *(name for name, _ in model.weights))
        self._outputs = [*model.outputs, *model.checks]
        self._count = len(model.outputs)
        self.bytes_held = sum(array.nbytes for array in model.arrays.values())

    def run(
        self, arrays: Sequence[np.ndarray], control: RunControl | None = None
    ) -> list[np.ndarray]:
        """Return the outputs for the inputs, then the arrays of `SerializedModel.weights`.

        No array may be empty: with some models the engine then ends the process, instead of raising
        an error. Raises UncheckedRunError if a check of the model fails.
        """
        feeds = dict(zip(self._inputs, arrays, strict=True))
        outputs: list[np.ndarray] = self._run(
            self._outputs, feeds, None if control is None else control.options
        )
        if len(outputs) == self._count:
            return outputs
        if not all(map(math.isfinite, outputs[self._count :])):
            raise UncheckedRunError("an input or a result is not finite")
        return outputs[: self._count]


def _session_options(threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised, so they are not printed as well
    options.add_session_config_entry("session.intra_op.spin_duration_us", str(SPIN_MICROSECONDS))
    return options
