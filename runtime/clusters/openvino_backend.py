"""OpenVINO: compiles and runs models in float32 or bfloat16. The only importer of `openvino`.

TF: none. Facts about the engine that this file relies on are in its tests.
"""

from __future__ import annotations

import contextlib
import functools
import math
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import protos as pb
from runtime.clusters import openvino_rules
from runtime.clusters.emit_cluster import EmittedCluster
from runtime.clusters.engine_choice import BFLOAT16
from runtime.clusters.model_proto import SerializedModel
from runtime.clusters.running.engine import Compilation, UncheckedRunError
from runtime.clusters.running.form_use import Use
from runtime.clusters.running.interrupt import Interrupt
from runtime.foundation.deadline_timer import deadline_timer
from runtime.foundation.errors import CancelledError
from runtime.foundation.global_thread_pools import schedulable_cores


@contextlib.contextmanager
def _missing(name: str) -> Iterator[None]:
    """Let a module be missing for a while, unless the program has imported it already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment] # what an import takes for "missing"
    try:
        yield
    finally:
        del sys.modules[name]


# With this package, importing openvino sends an event to its maker and writes to the user's folder.
with _missing("openvino_telemetry"):
    import openvino

NAME = "OpenVINO"
VERSION = openvino.get_version().partition("-")[0]
PATTERNS = openvino_rules.PATTERNS
_MINIMUM_VERSION = (2026, 4)
# Without one of these a processor computes in bfloat16 more slowly than in float32, if at all.
BFLOAT16_FLAGS = ("avx512_bf16", "amx_bf16")
_CPU_INFO = Path("/proc/cpuinfo")
_AGAIN_SECONDS = 1e-3  # between two attempts to stop a run
_MAX_IDLE_REQUESTS = 8  # of a model, which keep their results in memory


def is_fit() -> bool:
    """Return whether the installed engine has what this file relies on."""
    parts = VERSION.split(".")[:2]
    return all(map(str.isdigit, parts)) and tuple(map(int, parts)) >= _MINIMUM_VERSION


def unfit_precision(precision: str) -> str:
    """Return why the processor does not compute in a precision, or "" if it does."""
    if precision != BFLOAT16 or not _flags().isdisjoint(BFLOAT16_FLAGS):
        return ""
    return f"the processor has neither {' nor '.join(BFLOAT16_FLAGS)}"


def _flags() -> set[str]:
    """Return what the processor has, as Linux names it."""
    with contextlib.suppress(OSError):
        for line in _CPU_INFO.read_text().splitlines():
            if line.startswith("flags"):
                return set(line.split())
    return set()


def uses(use: Use, threads: int) -> frozenset[Use]:
    """Return the uses of a form.

    A wide one without helpers runs in its caller's thread, as a narrow one does. Low priority
    always has a form of its own, because runs of a form may wait for each other.
    """
    if use is not Use.WIDE or threads > 1:
        return frozenset((use,))
    alone = {Use.CROWDED} if schedulable_cores() == 1 else set()
    return frozenset((Use.WIDE, Use.NARROW, *alone))


def adapted(cluster: EmittedCluster) -> EmittedCluster:
    """Return the cluster as a model of this engine computes it; see `openvino_rules`."""
    return openvino_rules.adapted(cluster)


def refusals(cluster: EmittedCluster) -> Mapping[str, str]:
    """Return, by name of the node, why operations can't be in a model."""
    return openvino_rules.refusals(cluster)


def return_memory() -> None:
    """Do nothing: the engine holds memory for each model, as long as it exists."""


def compile_model(
    model: SerializedModel, how: Compilation, interrupt: Interrupt | None
) -> CompiledModel:
    """Return the compiled model; see `CompiledModel`."""
    return CompiledModel(model, how, interrupt)


class RunControl:
    """Stops one run of a model, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the fields below
        self._requests: Sequence[openvino.InferRequest] = ()  # that run
        self.is_stopped = False

    def stop(self) -> None:
        """End the run before its next operation, or as soon as it begins."""
        with self._lock:
            self.is_stopped = True
            if not self._requests:
                return
            # This has no effect on a request whose run has not begun, so it is repeated.
            for request in self._requests:
                request.cancel()
        deadline_timer.call_at(time.monotonic() + _AGAIN_SECONDS, self.stop)

    def infer(self, request: openvino.InferRequest) -> None:
        """Run a request; raise CancelledError or the engine's error if the run is stopped."""
        with self._running([request]):
            request.infer(share_outputs=True)

    def infer_together(self, requests: Sequence[openvino.InferRequest]) -> None:
        """Run requests at the same time; errors of them count for nothing."""
        with self._running(requests):
            for request in requests:
                request.start_async()
            for request in requests:
                with contextlib.suppress(RuntimeError):
                    request.wait()

    @contextlib.contextmanager
    def _running(self, requests: Sequence[openvino.InferRequest]) -> Iterator[None]:
        with self._lock:
            if self.is_stopped:
                raise CancelledError("The run was stopped before it began")
            self._requests = requests
        try:
            yield
        finally:
            with self._lock:
                self._requests = ()


class CompiledModel:
    """A model that the engine has optimised for this processor. Thread-safe.

    Runs of a model wait for each other, unless it was compiled for crowds. `bytes_held` is the size
    of the arrays in the model, which the engine keeps, and of its own copies. Setting `interrupt`
    ends the constructor with CancelledError, though not while the engine compiles.
    """

    def __init__(
        self, model: SerializedModel, how: Compilation, interrupt: Interrupt | None = None
    ) -> None:
        _check(interrupt)
        self._compiled = _core().compile_model(_read(model), "CPU", _properties(how))
        _check(interrupt)
        names = (*model.inputs, *(name for name, _ in model.weights))
        places = _places(self._compiled.inputs)
        self._inputs = [  # without those of which only the shape is read
            _Input(position, places[name], self._compiled.inputs[places[name]])
            for position, name in enumerate(names)
            if name in places
        ]
        self._fed = len(model.inputs)  # the other inputs are weights
        places = _places(self._compiled.outputs)
        self._outputs = [places[name] for name in (*model.outputs, *model.checks)]
        self._count = len(model.outputs)
        self._takes_turns = how.use is not Use.CROWDED
        self._running: list[None] = []  # one element for each run; append and pop are atomic
        self._idle: list[openvino.InferRequest] = []
        copies = 0.5 if how.precision == BFLOAT16 else 1.0
        size = sum(array.nbytes for array in model.arrays.values())
        self.bytes_held = int(size * (1 + copies))
        self._warm_up(how, interrupt or Interrupt())
        _check(interrupt)

    @property
    def is_busy(self) -> bool:
        """Whether a run that begins now would wait for another one."""
        return self._takes_turns and bool(self._running)

    def control(self) -> RunControl:
        """Return what can stop one run."""
        return RunControl()

    def check_weights(self, arrays: Sequence[np.ndarray]) -> None:
        """Raise UncheckedRunError unless all weights are finite."""
        if not openvino_rules.is_finite(arrays):
            raise UncheckedRunError("a weight is not finite")

    def run(
        self, arrays: Sequence[np.ndarray], control: RunControl | None = None
    ) -> list[np.ndarray]:
        """Return the outputs for the inputs, then the arrays of `SerializedModel.weights`.

        Raises UncheckedRunError if an input or an output is not finite, or a check of the model
        fails, and ValueError if an array has another type or shape than the model.
        """
        given = []
        for each in self._inputs:
            array = each.checked(arrays[each.position])
            given.append(array)
            if each.position < self._fed and not _is_small(array):
                raise UncheckedRunError("an input is not finite, or very large")
        control = control or RunControl()
        self._running.append(None)
        try:
            request = self._idle.pop() if self._idle else self._compiled.create_infer_request()
            # The request does not keep the arrays alive; `given` does.
            for each, array in zip(self._inputs, given, strict=True):
                request.set_input_tensor(each.place, openvino.Tensor(array, shared_memory=True))
            control.infer(request)
            found = [request.get_output_tensor(place).data.copy() for place in self._outputs]
        finally:
            self._running.pop()
        if not control.is_stopped and len(self._idle) < _MAX_IDLE_REQUESTS:
            self._idle.append(request)
        if not all(_is_small(each) or openvino_rules.is_finite([each]) for each in found):
            raise UncheckedRunError("an input or a result is not finite")
        return found[: self._count]

    def _warm_up(self, how: Compilation, interrupt: Interrupt) -> None:
        """Run once for the newest sample: the engine prepares weights and memory in a first run."""
        requests = [
            self._compiled.create_infer_request()
            for _ in range(schedulable_cores() if how.use is Use.CROWDED else 1)
        ]
        if how.samples:
            sample = how.samples[-1]
            zeros = [
                np.zeros(
                    sample[each.position] if each.position < self._fed else each.sizes, each.dtype
                )
                for each in self._inputs
            ]
            for request in requests:
                for each, array in zip(self._inputs, zeros, strict=True):
                    request.set_input_tensor(each.place, openvino.Tensor(array, shared_memory=True))
            control = RunControl()
            if not interrupt.begin(control.stop):
                return
            try:
                control.infer_together(requests)  # shapes may not fit, as in a run
            finally:
                interrupt.end()
        self._idle += requests


class _Input:
    """An input of a model: its type and sizes, of which -1 is open.

    `position` is that among the arrays of a run, `place` that among the engine's inputs.
    """

    def __init__(self, position: int, place: int, port: Any) -> None:
        self.position = position
        self.place = place
        self.dtype: np.dtype = np.dtype(port.get_element_type().to_dtype())
        self.sizes = [
            size.get_length() if size.is_static else -1 for size in port.get_partial_shape()
        ]

    def checked(self, array: np.ndarray) -> np.ndarray:
        """Return an array that the engine can read where it is: a copy, if it must be.

        Raises ValueError if the type or a size is another one, which the engine may accept.
        """
        is_fitting = array.dtype == self.dtype and array.ndim == len(self.sizes)
        if not is_fitting or any(
            size != wanted >= 0 or not size
            for size, wanted in zip(array.shape, self.sizes, strict=True)
        ):
            raise ValueError(
                f"The model takes {self.dtype} {self.sizes}, not {array.dtype} {array.shape}"
            )
        return _writable(np.asarray(array, order="C"))


class _Memory:
    """The memory of an array, as one that may be written."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array  # which it belongs to
        read_only = array.__array_interface__
        self.__array_interface__ = {**read_only, "data": (read_only["data"][0], False)}


def _writable(array: np.ndarray) -> np.ndarray:
    """Return an array over the memory of another: the engine refuses one that can't be written.

    It only reads inputs and constants.
    """
    return array if array.flags.writeable else np.asarray(_Memory(array))


def _is_small(array: np.ndarray) -> bool:
    """Return whether all elements are finite, and their squares too: floats below 1e19."""
    if array.dtype.kind != "f":
        return True
    flat = array.reshape(-1)
    with np.errstate(all="ignore"):
        return math.isfinite(np.dot(flat, flat))


def _places(ports: Sequence[Any]) -> dict[str, int]:
    """Return the place of each port by its names, of which it may have several."""
    return {name: place for place, port in enumerate(ports) for name in port.get_names()}


@functools.cache
def _core() -> openvino.Core:
    return openvino.Core()


def _check(interrupt: Interrupt | None) -> None:
    if interrupt is not None and interrupt.is_set:
        raise CancelledError("The cluster is not needed any more")


def _read(model: SerializedModel) -> openvino.Model:
    """Return the model of a message, with the arrays beside it as constants.

    The engine reads a message with all its arrays, or from a file. So the arrays are inputs of the
    message, for which constants over their memory are put in.
    """
    message = pb.onnx.ModelProto.FromString(model.message)
    inside = [each for each in message.graph.initializer if each.name not in model.arrays]
    for tensor in message.graph.initializer:
        if tensor.name in model.arrays:
            kind = message.graph.input.add(name=tensor.name).type.tensor_type
            kind.elem_type = tensor.data_type
            for size in tensor.dims:
                kind.shape.dim.add(dim_value=size)
    del message.graph.initializer[:]
    message.graph.initializer.extend(inside)
    read = _core().read_model(message.SerializeToString())
    for parameter in read.get_parameters():
        array = model.arrays.get(parameter.get_friendly_name())
        if array is not None:
            constant = openvino.op.Constant(_writable(array), shared_memory=True)
            parameter.output(0).replace(constant.output(0))
            read.remove_parameter(parameter)
    return read


def _properties(how: Compilation) -> dict[str, Any]:
    """Return the engine's settings.

    A stream is a queue with a thread that works on it. Without streams, a run is done by the thread
    that calls, alone, and can be cancelled; with one stream and one thread it can not.
    """
    threads, streams = how.threads, 1 if how.threads > 1 else 0
    if how.use is Use.CROWDED:
        threads = streams = schedulable_cores()
    return {
        # By default bfloat16, where the processor multiplies matrices of it.
        "INFERENCE_PRECISION_HINT": "bf16" if how.precision == BFLOAT16 else "f32",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": streams,
        "ENABLE_CPU_PINNING": False,  # it would bind callers to a core
    }
