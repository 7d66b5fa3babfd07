"""OpenVINO on the SavedModel by its own reader, in float32, compiled for each batch size.

Static shapes suit it best; its figure for a batch size is that of the model compiled for it. Where
the CPU has bfloat16, the default would be that, so that the precision is given.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import openvino  # the child runs in the interpreter that has it

from bench.engines.model_inputs import Arrays


class OpenVinoEngine:
    """A compiled model with one stream and its request; arrays are shared, not copied."""

    name = "OpenVINO"

    def __init__(self, folder: pathlib.Path, threads: int) -> None:
        self._folder = folder
        self._options = {
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
        }

    def load(self) -> None:
        """Read and convert the model; it is compiled by the first run, when its shapes are known.

        Raises:
            NotImplementedError: The reader does not support an operation of the model.
        """
        try:
            self._model = openvino.Core().read_model(str(self._folder / "1"))
        except Exception as error:  # OpenVINO has several classes for this
            raise NotImplementedError(" ".join(str(error).split())[:300]) from error

    def prepare(self, inputs: Arrays) -> Callable[[], Arrays]:
        """Return a function that runs one step on the inputs."""
        ports = {port.any_name: port for port in self._model.inputs}  # the signature's keys
        self._model.reshape({port: list(inputs[key].shape) for key, port in ports.items()})
        compiled = openvino.compile_model(self._model, "CPU", self._options)
        request = compiled.create_infer_request()
        feeds = {index: inputs[port.any_name] for index, port in enumerate(self._model.inputs)}
        keys = [port.any_name for port in compiled.outputs]

        def run() -> Arrays:
            answers = request.infer(feeds, share_inputs=True, share_outputs=True)
            return {key: answers[index] for index, key in enumerate(keys)}

        return run
