"""Runstep, without clusters or with them, which ONNX Runtime or OpenVINO compiles."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable

import numpy as np

import protos as pb
from bench.engines.model_inputs import Arrays
from runtime.api import DataType, SessionOptions, keep_freed_memory, load_saved_model

CALLER, POOL = "caller", "pool"  # where a step runs
IN = {CALLER: pb.RunOptions(inter_op_thread_pool=-1), POOL: pb.RunOptions()}


class RunstepEngine:
    """The default signature of a SavedModel in a direct session."""

    name = "Runstep"

    def __init__(
        self, folder: pathlib.Path, threads: int, clusters: str = "off", **engine: str
    ) -> None:
        has_switch = "clusters" in {field.name for field in dataclasses.fields(SessionOptions)}
        if clusters != "off" and not has_switch:
            raise NotImplementedError("this version has no clusters")
        config = pb.ConfigProto(
            intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
        )
        switch = {"clusters": clusters} if has_switch else {}
        self._options = SessionOptions(config=config, **switch, **engine)
        self._folder = folder
        self.where = CALLER

    def load(self) -> None:
        """Load the model.

        Raises:
            NotImplementedError: Its default signature computes nothing.
        """
        keep_freed_memory()  # as the server does
        self._bundle = load_saved_model(self._options, None, str(self._folder / "1"), ["serve"])
        signature = self._bundle.signatures["serving_default"]
        if not signature.outputs:
            raise NotImplementedError("the default signature has no outputs")
        self._inputs = {key: info.name for key, info in signature.inputs.items()}
        self._outputs = {key: info.name for key, info in signature.outputs.items()}
        self.zeros = {
            key: empty([max(1, dim.size) for dim in info.tensor_shape.dim], DataType(info.dtype))
            for key, info in signature.inputs.items()
        }

    def prepare(self, inputs: Arrays) -> Callable[[], Arrays]:
        """Return a function that runs one step on the inputs; `self.where` says where."""
        feeds = {self._inputs[key]: value for key, value in inputs.items()}
        keys, fetches = list(self._outputs), list(self._outputs.values())
        run, options = self._bundle.session.run, IN[self.where]
        return lambda: dict(zip(keys, run(feeds, fetches, (), options), strict=True))


def empty(shape: list[int], dtype: DataType) -> np.ndarray:
    """Return zeros, or empty strings."""
    return np.full(shape, b"" if dtype is DataType.STRING else 0, dtype.numpy)


class RunstepWithClusters(RunstepEngine):
    """The same with clusters, compiled in the background."""

    name = "Runstep, clusters"

    def __init__(self, folder: pathlib.Path, threads: int) -> None:
        super().__init__(folder, threads, "auto")


class RunstepWithOpenVino(RunstepEngine):
    """The same with clusters that OpenVINO computes in float32."""

    name = "Runstep, OpenVINO"
    precision = "float32"

    def __init__(self, folder: pathlib.Path, threads: int) -> None:
        super().__init__(folder, threads, "auto", engine="openvino", precision=self.precision)


class RunstepWithOpenVinoBfloat16(RunstepWithOpenVino):
    """The same in bfloat16."""

    name = "Runstep, OpenVINO, bfloat16"
    precision = "bfloat16"
