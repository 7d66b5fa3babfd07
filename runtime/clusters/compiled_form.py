"""Compiled forms: a cluster's graph as a model of the engine, for one pattern of input shapes.

In the *baked* form the weights are part of the model, which is the fastest; it holds while every
source is the array that was baked in. In the *derived* form they are inputs of the model. Numpy
evaluates them when the sources are others, so one model serves all sessions that assigned.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import operator
import time
from collections.abc import Mapping, Sequence

import numpy as np

from runtime.clusters.compile_queue import Interrupt, give_back_memory
from runtime.clusters.emit_cluster import ClusterGraph, EmittedCluster, RefusedError, emit_cluster
from runtime.clusters.engine import Engine, Model
from runtime.clusters.input_shapes import Pattern, Sample, fits, pattern_of
from runtime.clusters.model_proto import serialize
from runtime.clusters.op_emitter import OpEmitter
from runtime.clusters.values import Weight
from runtime.framework.tensor_value import TensorValue

_MAX_WEIGHTS = 4  # sets of evaluated weights that a derived form keeps; the newest are kept
_MEASURED_RUNS = 32
_log = logging.getLogger(__name__)


class _Weights:
    """The arrays of a derived form for one set of sources, which are held so that they stay."""

    def __init__(self, sources: Sequence[TensorValue], arrays: Sequence[np.ndarray]) -> None:
        self.sources = tuple(sources)
        self.arrays = tuple(arrays)


class CompiledForm:
    """A model and when it may be used. Thread-safe.

    Sources are compared by identity, with references that keep them, so no other array can take
    their place in memory, and an array that is derived from variables is never written.
    """

    def __init__(
        self,
        model: Model,
        pattern: Pattern,
        threads: int,
        sources: Sequence[TensorValue],
        is_baked: bool,
        weights: Sequence[Weight] = (),
    ) -> None:
        self.model = model
        self.pattern = pattern
        self.threads = threads
        self._baked = tuple(sources) if is_baked else None
        self._kinds = _kinds(sources)
        self._weights = tuple(weights)
        self._evaluated: tuple[_Weights, ...] = ()  # replaced as a whole, the newest first
        self.failures = 0
        self.seconds = math.inf  # the shortest run so far; infinite before the second
        self.best: dict[Sample, float] = {}  # the shortest run of each of the first samples
        self.runs = 0  # a race may lose a run
        self.last_used = time.monotonic()

    def note_run(self, sample: Sample, seconds: float) -> None:
        """Record the time of a run of the model."""
        self.runs += 1
        self.last_used = time.monotonic()
        if self.runs > 1:  # the first run for a sample allocates
            self.seconds = min(self.seconds, seconds)
            if self.runs < _MEASURED_RUNS or sample in self.best:
                self.best[sample] = min(self.best.get(sample, seconds), seconds)

    @property
    def is_baked(self) -> bool:
        """Whether the weights are part of the model."""
        return self._baked is not None

    def fits(self, sample: Sample) -> bool:
        """Return whether inputs of these shapes can be given to the model."""
        return fits(self.pattern, sample)

    def holds(self, sources: Sequence[TensorValue]) -> bool:
        """Return whether the model gives the results for these sources."""
        if self._baked is not None:
            return all(map(operator.is_, sources, self._baked))
        return self.knows(sources) or _kinds(sources) == self._kinds

    def knows(self, sources: Sequence[TensorValue]) -> bool:
        """Return whether a run for these sources evaluates nothing first."""
        if self._baked is not None:
            return self.holds(sources)
        return any(all(map(operator.is_, sources, each.sources)) for each in self._evaluated)

    def weights_for(self, sources: Sequence[TensorValue]) -> tuple[np.ndarray, ...]:
        """Return what the model takes after its inputs; evaluate it if the sources are new.

        Two threads may evaluate the same; then the result of one is kept.
        """
        if not self._weights:
            return ()
        for known in self._evaluated:
            if all(map(operator.is_, sources, known.sources)):
                return known.arrays
        memo: dict[Weight, np.ndarray] = {}
        arrays = [np.asarray(source) for source in sources]
        made = _Weights(
            sources, [np.ascontiguousarray(each.evaluate(arrays, memo)) for each in self._weights]
        )
        self._evaluated = (made, *self._evaluated[: _MAX_WEIGHTS - 1])
        return made.arrays

    @property
    def bytes_held(self) -> int:
        """The bytes of the model's arrays and of evaluated weights."""
        derived = sum(each.nbytes for known in self._evaluated for each in known.arrays)
        return self.model.bytes_held + derived


def _kinds(sources: Sequence[TensorValue]) -> list[tuple[tuple[int, ...], np.dtype]]:
    """Return the shapes and types of sources, with which a derived form is compiled."""
    return [(array.shape, array.dtype) for array in map(np.asarray, sources)]


@dataclasses.dataclass(frozen=True, slots=True)
class FormRequest:
    """What a form is compiled from: immutable, so it needs nothing of the cluster that wants it."""

    cluster: ClusterGraph
    samples: tuple[Sample, ...]
    sources: tuple[TensorValue, ...]
    is_baked: bool
    threads: int
    table: Mapping[str, OpEmitter]


def compile_form(
    request: FormRequest, engine: Engine, interrupt: Interrupt | None = None
) -> CompiledForm:
    """Return the form for the shapes seen so far; this can take seconds.

    If a node can't be written with open sizes, all sizes are those of the last sample. Raises
    RefusedError with the nodes that can't be written even then, and the engine's errors.
    """
    pattern, emitted = _emit(request)
    serialized = serialize(emitted, request.is_baked)
    weights = [weight for _, weight in serialized.weights]
    model = engine.CompiledModel(serialized, request.threads, interrupt)
    del serialized, emitted
    give_back_memory()
    return CompiledForm(model, pattern, request.threads, request.sources, request.is_baked, weights)


def _emit(request: FormRequest) -> tuple[Pattern, EmittedCluster]:
    arrays = [np.asarray(source) for source in request.sources]
    pattern = pattern_of(request.samples)
    try:
        return pattern, emit_cluster(request.cluster, pattern, arrays, request.table)
    except RefusedError as error:
        _log.debug("A cluster is compiled for fixed sizes: %s", error)
        pattern = pattern_of(request.samples[-1:], opens_batch=False)
        return pattern, emit_cluster(request.cluster, pattern, arrays, request.table)
