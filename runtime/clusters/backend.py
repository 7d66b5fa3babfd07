"""ONNX Runtime: compiles and runs models. The only importer of `onnxruntime`.

TF: none. Facts about the engine that this file relies on are in its tests.
"""

from __future__ import annotations

import functools
import logging
import math
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnxruntime

import protos as pb
from runtime.clusters import patterns
from runtime.clusters.emit_cluster import EmittedCluster
from runtime.clusters.engine_choice import FLOAT32
from runtime.clusters.model_proto import IR_VERSION, OPERATOR_SET, SerializedModel
from runtime.clusters.running import run_width
from runtime.clusters.running.engine import Compilation, UncheckedRunError
from runtime.clusters.running.form_use import Use
from runtime.clusters.running.interrupt import Interrupt
from runtime.clusters.saved_models import is_worth_sharing, message_path, saved_model
from runtime.foundation.errors import CancelledError

_log = logging.getLogger(__name__)
_arena_lock = threading.Lock()  # held while the arena is made

NAME = "ONNX Runtime"
VERSION = onnxruntime.__version__
PATTERNS = patterns.PATTERNS
_MINIMUM_VERSION = (1, 32)  # older ones ignore how long threads spin without an error
_PROVIDERS = ["CPUExecutionProvider"]


def is_fit() -> bool:
    """Return whether the installed engine has what this file relies on."""
    parts = VERSION.split(".")[:2]
    return all(map(str.isdigit, parts)) and tuple(map(int, parts)) >= _MINIMUM_VERSION


def unfit_precision(precision: str) -> str:
    """Return why ONNX Runtime can't compute in a precision: it has float32 products only."""
    return "" if precision == FLOAT32 else f"{NAME} does not compute in {precision}"


def uses(use: Use, threads: int) -> frozenset[Use]:
    """Return the uses of a form; callers may run a model of one thread at the same time."""
    if threads > 1:
        return frozenset((use,))
    return frozenset(Use) if use is Use.WIDE else frozenset(Use) - {Use.WIDE}


def adapted(cluster: EmittedCluster) -> EmittedCluster:
    """Return the cluster: emission writes what this engine takes."""
    return cluster


def refusals(cluster: EmittedCluster) -> Mapping[str, str]:
    """Return nothing, for the same reason."""
    return {}


def compile_model(
    model: SerializedModel, how: Compilation, interrupt: Interrupt | None
) -> CompiledModel:
    """Return the compiled model; see `CompiledModel`."""
    return CompiledModel(model, how.threads, interrupt)


def return_memory() -> None:
    """Free what the arena holds for no run; the C library then has it. This takes 0.1 ms."""
    if _ensure_arena():
        _empty_session().run(None, {"x": np.zeros(1, np.float32)}, _shrinking())


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
    the arrays in the model. Setting `interrupt` ends the constructor with an error of the engine.
    """

    is_busy = False  # runs never wait for each other

    def __init__(
        self,
        model: SerializedModel,
        threads: int,
        interrupt: Interrupt | None = None,
    ) -> None:
        self._session = _session(model, threads, interrupt)
        # The public `run` checks the names of the inputs in Python before it calls this one, which
        # takes 4 µs, a third of the time that a small model takes.
        self._run = getattr(self._session, "_sess", self._session).run
        self._inputs = (*model.inputs, *(name for name, _ in model.weights))
        self._outputs = [*model.outputs, *model.checks]
        self._count = len(model.outputs)
        self.bytes_held = sum(array.nbytes for array in model.arrays.values())

    def control(self) -> RunControl:
        """Return what can stop one run."""
        return RunControl()

    def check_weights(self, arrays: Sequence[np.ndarray]) -> None:
        """Do nothing: the model takes all weights."""

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


def _session(
    model: SerializedModel, threads: int, interrupt: Interrupt | None
) -> onnxruntime.InferenceSession:
    """Compile a model, or load it if processes share it."""
    if is_worth_sharing(model):
        try:
            return _shared_session(model, threads, interrupt)
        except Exception as error:  # the engine's errors have no base class of their own
            if interrupt is not None and interrupt.is_set:
                raise
            _log.warning("A compiled cluster is not shared with other processes: %s", error)
    session = _compiled(model, _session_options(threads), interrupt)
    # The options keep the arrays alive, of which the engine has copies now.
    session._sess_options = None
    return session


def _shared_session(
    model: SerializedModel, threads: int, interrupt: Interrupt | None
) -> onnxruntime.InferenceSession:
    def save(path: Path, arrays: str) -> None:
        options = _session_options(threads)
        options.optimized_model_filepath = str(path)
        for key, value in _saving(arrays).items():
            options.add_session_config_entry(key, value)
        _compiled(model, options, interrupt)

    def check() -> None:
        if interrupt is not None and interrupt.is_set:
            raise CancelledError("The cluster is not needed any more")

    file = saved_model(model, VERSION, save, check)
    try:
        options = _session_options(threads)
        level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # it is optimised
        options.graph_optimization_level = level
        session = onnxruntime.InferenceSession(
            str(message_path(file.path)), options, providers=_PROVIDERS
        )
    except BaseException:
        file.release()
        raise
    file.keep_for(session)
    return session


def _compiled(
    model: SerializedModel, options: onnxruntime.SessionOptions, interrupt: Interrupt | None
) -> onnxruntime.InferenceSession:
    names = list(model.arrays)
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(model.arrays[name]) for name in names]
    if names:
        options.add_external_initializers(names, values)
    if interrupt is not None:
        interrupt.begin(lambda: options.set_load_cancellation_flag(True))
        if interrupt.is_set:
            options.set_load_cancellation_flag(True)
    try:
        return onnxruntime.InferenceSession(model.message, options, providers=_PROVIDERS)
    finally:
        if interrupt is not None:
            interrupt.end()


def _saving(arrays: str) -> dict[str, str]:
    """Return the settings with which a model is saved, with its arrays in the file `arrays`."""
    return {
        "session.optimized_model_external_initializers_file_name": arrays,
        "session.optimized_model_external_initializers_min_size_in_bytes": "1024",
        # Without this, each process packs the operands of products for itself.
        "session.save_external_prepacked_constant_initializers": "1",
    }


def _session_options(threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised, so they are not printed as well
    spin = round(run_width.spin_seconds() * 1e6)
    options.add_session_config_entry("session.intra_op.spin_duration_us", str(spin))
    if _ensure_arena():
        options.add_session_config_entry("session.use_env_allocators", "1")
        # What stays as long as the model is not among the blocks of runs.
        options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
    return options


# --- the memory of runs -------------------------------------------------------------------------


def _ensure_arena() -> bool:
    """Make the arena from which all models of this process take the memory of their runs.

    A model without an arena needs 1.07 times as long; one with an arena of its own never returns
    what its largest run took. Returns whether there is one.
    """
    with _arena_lock:  # a second attempt by another thread would fail
        return _make_arena()


@functools.cache
def _make_arena() -> bool:
    place = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    try:
        no_limit, default = 0, -1
        arena = onnxruntime.OrtArenaCfg(no_limit, default, default, default)
        onnxruntime.create_and_register_allocator(place, arena)
    except Exception as error:  # such as: the program that uses the runtime has made one
        _log.info("Clusters have no common arena: %s", error)
        return False
    return True


@functools.cache
def _empty_session() -> onnxruntime.InferenceSession:
    """Return a session that computes nothing, for runs that shrink the arena."""
    model = pb.onnx.ModelProto(ir_version=IR_VERSION, producer_name="runstep")
    model.opset_import.add(domain="", version=OPERATOR_SET)
    model.graph.name = "empty"
    model.graph.node.add(op_type="Identity", input=["x"], output=["y"])
    for name, values in (("x", model.graph.input), ("y", model.graph.output)):
        tensor = values.add(name=name).type.tensor_type
        tensor.elem_type = pb.onnx.TensorProto.FLOAT
        tensor.shape.dim.add(dim_value=1)
    return onnxruntime.InferenceSession(
        model.SerializeToString(), _session_options(1), providers=_PROVIDERS
    )


@functools.cache
def _shrinking() -> onnxruntime.RunOptions:
    options = onnxruntime.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return options
