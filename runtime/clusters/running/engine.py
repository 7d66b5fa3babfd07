"""The engine, which is imported when the first cluster is compiled; a program may lack it.

Guarantees: `find_engine` logs once if there is none that fits, and then always returns None.
"""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from runtime.clusters.model_proto import SerializedModel
from runtime.clusters.running.compile_queue import Interrupt

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

    def run(self, arrays: Sequence[np.ndarray], control: Any = None) -> list[np.ndarray]:
        """Return the outputs for the inputs and then, in the derived form, the weights."""


class Engine(Protocol):
    """What a module that wraps an engine offers."""

    NAME: str
    VERSION: str
    CompiledModel: Callable[[SerializedModel, int, Interrupt | None, bool], Model]
    RunControl: Callable[[], RunControl]


@functools.cache
def find_engine() -> Engine | None:
    """Return the engine, or None if it is not installed or too old; the first call imports it."""
    try:
        engine: Any = importlib.import_module("runtime.clusters.backend")
    except ImportError as error:
        _log.info("Clusters run on numpy kernels, because ONNX Runtime is missing: %s", error)
        return None
    except Exception as error:  # a damaged or foreign module of this name
        _log.warning("Clusters run on numpy kernels, because ONNX Runtime fails: %s", error)
        return None
    if not engine.is_fit():
        _log.warning("Clusters run on numpy kernels: ONNX Runtime %s is too old", engine.VERSION)
        return None
    found: Engine = engine
    return found
