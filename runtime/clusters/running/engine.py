"""The engines: each is imported when it is first wanted; a program may lack one or both.

A *backend* is the module that wraps an engine's library. `find_engine` returns the one that was
chosen or, if it is missing, the one that stands in for it; without any, numpy kernels compute all.

Guarantees: `find_engine` imports a backend once, and logs once for each choice that it can't meet.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from runtime.clusters.engine_choice import (
    AUTO,
    BFLOAT16,
    DEFAULT_CHOICE,
    ENGINES,
    FLOAT32,
    ONNX_RUNTIME,
    OPENVINO,
    EngineChoice,
)
from runtime.clusters.running.form_use import Use
from runtime.clusters.running.input_shapes import Sample

if TYPE_CHECKING:  # the emitters take 0.3 s to import, which metrics need not wait for
    from runtime.clusters.emit_cluster import EmittedCluster
    from runtime.clusters.model_proto import SerializedModel
    from runtime.clusters.patterns.pattern import Pattern
    from runtime.clusters.running.interrupt import Interrupt

_log = logging.getLogger(__name__)


class UncheckedRunError(Exception):
    """The engine's results don't count, because its inputs are ones with which it differs."""


class RunControl(Protocol):
    """Stops one run of a model, from any thread."""

    def stop(self) -> None:
        """End the run before its next operation."""


class Model(Protocol):
    """A model that an engine has compiled. Thread-safe."""

    bytes_held: int

    @property
    def is_busy(self) -> bool:
        """Whether a run that begins now would wait for another one."""

    def control(self) -> RunControl:
        """Return what can stop one run."""

    def run(self, arrays: Sequence[np.ndarray], control: Any = None) -> list[np.ndarray]:
        """Return the outputs for the inputs and then, in the derived form, the weights."""

    def check_weights(self, arrays: Sequence[np.ndarray]) -> None:
        """Raise UncheckedRunError if the model does not take such weights."""


@dataclasses.dataclass(frozen=True, slots=True)
class Compilation:
    """How a model is compiled.

    `samples` are shapes of the inputs with which the model will be run.
    """

    use: Use = Use.WIDE
    threads: int = 1
    precision: str = FLOAT32
    samples: tuple[Sample, ...] = ()


class Backend(Protocol):
    """What a module that wraps an engine's library offers."""

    NAME: str
    VERSION: str
    PATTERNS: Sequence[Pattern]  # of `patterns`, those that make its models faster

    def is_fit(self) -> bool:
        """Return whether the installed library has what the module relies on."""

    def unfit_precision(self, precision: str) -> str:
        """Return why it can't compute in a precision on this machine, or ""."""

    def uses(self, use: Use, threads: int) -> frozenset[Use]:
        """Return all uses of a form that is made for `use`, with this number of threads."""

    def adapted(self, cluster: EmittedCluster) -> EmittedCluster:
        """Return the cluster as the engine computes it, with the checks that it wants of runs."""

    def refusals(self, cluster: EmittedCluster) -> Mapping[str, str]:
        """Return, by name of the node, why operations of it can't be in a model."""

    def compile_model(
        self, model: SerializedModel, how: Compilation, interrupt: Interrupt | None
    ) -> Model:
        """Return the compiled model; raise the engine's errors. This can take seconds."""

    def return_memory(self) -> None:
        """Free what the library holds for no run."""


@dataclasses.dataclass(frozen=True, slots=True)
class Engine:
    """A backend, and the precision in which it computes."""

    backend: Backend
    precision: str = FLOAT32

    @property
    def name(self) -> str:
        """The name and version of the library."""
        return f"{self.backend.NAME} {self.backend.VERSION}"


@dataclasses.dataclass(frozen=True, slots=True)
class EngineUse:
    """What computes the clusters of a choice, for metrics and the model's information."""

    engine: str  # name and version; empty if numpy kernels compute everything
    precision: str  # in which it computes with float32 tensors
    reason: str  # why this is not what was chosen; empty if it is


_BACKENDS = {
    ONNX_RUNTIME: ("ONNX Runtime", "runtime.clusters.backend"),
    OPENVINO: ("OpenVINO", "runtime.clusters.openvino_backend"),
}
_lock = threading.Lock()  # guards the two tables below; held while a backend is imported
_found: dict[EngineChoice, Engine | None] = {}  # what `find_engine` has returned
_reasons: dict[EngineChoice, str] = {}  # why a choice is not met


def find_engine(choice: EngineChoice = DEFAULT_CHOICE) -> Engine | None:
    """Return the engine of a choice, or None if neither it nor another one is there.

    The first call imports it. `choice` is one that `engine_choice` has returned.
    """
    if choice in _found:
        return _found[choice]
    with _lock:
        if choice not in _found:
            engine, faults = _search(choice)
            if faults:
                _reasons[choice] = "; ".join(fault.text for fault in faults)
                _log_unmet(choice, engine, faults)
            _found[choice] = engine
        return _found[choice]


def return_engine_memory() -> None:
    """Have the engines that are in use free what they hold for no run."""
    backends = {each.backend.NAME: each.backend for each in list(_found.values()) if each}
    for backend in backends.values():
        backend.return_memory()


def known_use(choice: EngineChoice) -> EngineUse | None:
    """Return what computes the clusters of a choice; None if it was not wanted until now."""
    if choice not in _found:
        return None
    engine, reason = _found[choice], _reasons.get(choice, "")
    if engine is None:
        return EngineUse("", FLOAT32, reason)
    return EngineUse(engine.name, engine.precision, reason)


def unmet_choices() -> dict[EngineChoice, EngineUse]:
    """Return the choices of this process that could not be met, and what is used instead."""
    return {choice: use for choice in list(_reasons) if (use := known_use(choice)) is not None}


def describe_engine(name: str) -> str:
    """Return an engine's name, version and precisions on this machine, or "" if it is missing."""
    backend, _ = _load(name)
    if backend is None:
        return ""
    unfit = backend.unfit_precision(BFLOAT16)
    precisions = f"{FLOAT32} only, because {unfit}" if unfit else f"{FLOAT32} or {BFLOAT16}"
    return f"{backend.NAME} {backend.VERSION} in {precisions}"


@dataclasses.dataclass(frozen=True, slots=True)
class _Fault:
    """Why an engine, or a precision, is not used."""

    text: str
    is_usual: bool = False  # as in an installation without the extras


def _search(choice: EngineChoice) -> tuple[Engine | None, list[_Fault]]:
    """Return the engine of a choice, and why it is not what was chosen."""
    faults: list[_Fault] = []
    for name in ENGINES[choice.engine]:
        backend, fault = _load(name)
        if backend is None:
            faults.append(fault)
            continue
        if choice.engine == AUTO:
            return Engine(backend), [each for each in faults if not each.is_usual]
        if name != choice.engine:
            return Engine(backend), faults
        unfit = backend.unfit_precision(choice.precision)
        precision = FLOAT32 if unfit else choice.precision
        return Engine(backend, precision), [_Fault(unfit)] if unfit else []
    return None, faults


@functools.cache
def _load(name: str) -> tuple[Backend | None, _Fault]:
    """Return the backend of an engine, or None and why there is none that fits."""
    title, module = _BACKENDS[name]
    try:
        backend: Any = importlib.import_module(module)
    except ImportError as error:
        return None, _Fault(f"{title} is missing: {error}", is_usual=True)
    except Exception as error:  # a damaged or foreign module of this name
        return None, _Fault(f"{title} fails: {error}")
    if not backend.is_fit():
        return None, _Fault(f"{title} {backend.VERSION} is too old")
    return backend, _Fault("")


def _log_unmet(choice: EngineChoice, engine: Engine | None, faults: Sequence[_Fault]) -> None:
    is_usual = choice.engine == AUTO and all(fault.is_usual for fault in faults)
    level = logging.INFO if is_usual else logging.WARNING
    if engine is None:
        _log.log(level, "Clusters run on numpy kernels, because %s", _reasons[choice])
        return
    wanted = "an engine" if choice.engine == AUTO else _BACKENDS[choice.engine][0]
    _log.log(
        level,
        "Clusters run on %s in %s instead of %s in %s, because %s",
        engine.name, engine.precision, wanted, choice.precision, _reasons[choice],
    )  # fmt: skip
