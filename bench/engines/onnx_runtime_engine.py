"""ONNX Runtime on the model that tf2onnx makes of the SavedModel (`<folder>/model.onnx`).

All optimisations, symbolic batch. The pool's threads spin for 200 µs as those of Runstep's clusters
do; 50 µs were as fast as the default, which spins for longer (docs of the option:
`session.intra_op.spin_duration_us`, since 1.32).
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import onnxruntime  # the child runs in the interpreter that has it

from bench.engines.model_inputs import Arrays


class OnnxRuntimeEngine:
    """An InferenceSession on the CPU."""

    name = "ONNX Runtime"

    def __init__(self, folder: pathlib.Path, threads: int) -> None:
        self._options = onnxruntime.SessionOptions()
        self._options.intra_op_num_threads = threads
        self._options.inter_op_num_threads = 1
        self._options.log_severity_level = 4
        self._options.add_session_config_entry("session.intra_op.spin_duration_us", "200")
        self._file = onnx_file(folder)

    def load(self) -> None:
        """Make the session.

        Raises:
            NotImplementedError: tf2onnx left an operation that is none of ONNX's.
        """
        try:
            self._session = onnxruntime.InferenceSession(
                self._file, self._options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime has a class for each code
            raise NotImplementedError(" ".join(str(error).split())[:300]) from error
        self._outputs = [output.name for output in self._session.get_outputs()]

    def prepare(self, inputs: Arrays) -> Callable[[], Arrays]:
        """Return a function that runs one step on the inputs."""
        feeds = {node.name: inputs[key_of(node.name)] for node in self._session.get_inputs()}
        keys, run = [key_of(name) for name in self._outputs], self._session.run
        return lambda: dict(zip(keys, run(self._outputs, feeds), strict=True))


def key_of(tensor_name: str) -> str:
    """Return the signature's key of a graph input or output of the converted model."""
    return tensor_name.partition(":")[0]


def onnx_file(folder: pathlib.Path) -> str:
    """Return the converted model.

    Raises:
        NotImplementedError: tf2onnx could not convert the model.
    """
    file = folder / "model.onnx"
    if not file.exists():
        reason = folder / "model.onnx.error"
        raise NotImplementedError(reason.read_text() if reason.exists() else "not converted")
    return str(file)
