"""Compiled forms: a cluster's graph as a model of the engine, for one pattern of input shapes.

In the *baked* form the weights are part of the model, which is the fastest; it holds while every
source is the array that was baked in. In the *derived* form they are inputs of the model. Numpy
evaluates them when the sources are others, so one model serves all sessions that assigned.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import threading
import time
import weakref
from collections.abc import Mapping, Sequence

import numpy as np

from runtime.clusters.bounds import TensorSizes, fault_of
from runtime.clusters.dimensions import is_static
from runtime.clusters.emission import live_operations
from runtime.clusters.emit_cluster import ClusterGraph, EmittedCluster, RefusedError, emit_cluster
from runtime.clusters.model_proto import serialize
from runtime.clusters.op_emitter import OpEmitter
from runtime.clusters.rows import row_inputs
from runtime.clusters.running.compile_queue import give_back_memory
from runtime.clusters.running.engine import Compilation, Engine, Model
from runtime.clusters.running.form_use import Use
from runtime.clusters.running.input_shapes import Pattern, Sample, pattern_of, sizes_of
from runtime.clusters.running.interrupt import Interrupt
from runtime.clusters.values import Value, Weight, release
from runtime.framework.derived_values import DerivedValues
from runtime.graph.node import Node

_MAX_WEIGHTS = 4  # sets of evaluated weights that a derived form keeps; the newest are kept
_MEASURED_RUNS = 32
_LIVING_TENSORS = 4
now = time.perf_counter  # the clock by which runs are measured
_log = logging.getLogger(__name__)


class CompiledForm:
    """A model and when it may be used. Thread-safe.

    A set of derived values is compared by identity: the same object always has the same elements.
    It is referred to weakly, so a form keeps no session's variables in memory.
    """

    def __init__(
        self,
        model: Model,
        pattern: Pattern,
        request: FormRequest,
        derived: DerivedValues | None,
        tensors: TensorSizes,
        uses: frozenset[Use],
        weights: Sequence[Weight] = (),
        rows: tuple[bool, ...] | None = None,
    ) -> None:
        """`derived` has the sources with which the model was emitted; None if there are none.

        `tensors` are those that the model makes; `weights` are the inputs of a model in the derived
        form; `rows` says which inputs have rows, if the model may be run for some rows at a time.
        """
        self.model = model
        self.pattern = pattern
        self.threads = request.threads
        self.uses = uses
        self.is_baked = request.is_baked
        self.rows = rows
        self._positions = request.cluster_sources
        self._origin = None if derived is None else weakref.ref(derived)
        self._kinds = self._kinds_of(derived)
        self._tensors = tensors
        self._weights = tuple(weights)
        self.has_weights = bool(weights)  # which the model takes after its inputs
        self._evaluated: weakref.WeakKeyDictionary[DerivedValues, tuple[np.ndarray, ...]]
        self._evaluated = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()  # guards changes of `_evaluated`
        self.compile_seconds = 0.0  # set by whoever measures it
        self.failures = 0
        self.seconds = math.inf  # the shortest run so far; infinite before the second
        self.best: dict[Sample, float] = {}  # the shortest run of each of the first samples
        self.runs = 0  # a race may lose a run
        self.last_used = now()  # by the clock `now`

    def note_run(self, sample: Sample, began: float, ended: float) -> None:
        """Record a run of the model between two instants of `now`."""
        self.runs += 1
        self.last_used = ended
        seconds = ended - began
        if self.runs > 1:  # the first run for a sample allocates
            if seconds < self.seconds:
                self.seconds = seconds
            best = self.best.get(sample)
            if self.runs < _MEASURED_RUNS if best is None else seconds < best:
                self.best[sample] = seconds

    def fits(self, sample: Sample) -> bool:
        """Return whether inputs of these shapes can be given to the model."""
        return _fits(self.pattern, self._tensors, sample)

    def need(self, sample: Sample) -> int:
        """Return the bytes that a run may need; an estimate, because the engine has its own order.

        A chain of operations has an input, an output and some temporaries at one time.
        """
        return _LIVING_TENSORS * _largest_bytes(self._tensors, self.pattern, [sample])

    @property
    def has_open_sizes(self) -> bool:
        """Whether the model takes more than one shape of an input."""
        return not all(map(is_static, self.pattern))

    def holds(self, derived: DerivedValues | None) -> bool:
        """Return whether the model gives the results for these derived values."""
        if self._origin is None:
            return True
        if derived is None:
            return False
        if self.is_baked:
            return self._origin() is derived
        return derived in self._evaluated or self._kinds_of(derived) == self._kinds

    def replaces(self, other: CompiledForm) -> bool:
        """Return whether it holds and fits wherever another form of the same uses does."""
        own, others = (each._origin and each._origin() for each in (self, other))
        return self.pattern == other.pattern and self.is_baked and own is others

    def knows(self, derived: DerivedValues | None) -> bool:
        """Return whether a run for these derived values evaluates nothing first."""
        return not self._weights or (derived is not None and derived in self._evaluated)

    def weights_for(self, derived: DerivedValues | None) -> tuple[np.ndarray, ...]:
        """Return the weights of a form that has some; evaluate them if `derived` is new.

        Two threads may evaluate the same; then the result of one is kept. Raises UncheckedRunError
        if the model does not take such weights.
        """
        assert derived is not None
        known = self._evaluated.get(derived)
        if known is not None:
            return known
        memo: dict[Weight, np.ndarray] = {}
        sources = sources_of(derived, self._positions)
        with np.errstate(all="ignore"):
            arrays = tuple(
                np.asarray(each.evaluate(sources, memo), order="C") for each in self._weights
            )
        self.model.check_weights(arrays)
        with self._lock:
            for oldest in list(self._evaluated)[: 1 - _MAX_WEIGHTS]:
                self._evaluated.pop(oldest, None)
            self._evaluated[derived] = arrays
        return arrays

    def _kinds_of(
        self, derived: DerivedValues | None
    ) -> list[tuple[tuple[int, ...], np.dtype]] | None:
        """Return the shapes and types of the sources, on which emission may have relied."""
        if derived is None:
            return None
        return [(array.shape, array.dtype) for array in sources_of(derived, self._positions)]

    @property
    def bytes_held(self) -> int:
        """The bytes of the model's arrays and of evaluated weights."""
        derived = sum(each.nbytes for known in list(self._evaluated.values()) for each in known)
        return self.model.bytes_held + derived


def sources_of(derived: DerivedValues, positions: Sequence[int]) -> list[np.ndarray]:
    """Return the arrays of a cluster's sources."""
    return [np.asarray(derived.values[position]) for position in positions]


@dataclasses.dataclass(frozen=True, slots=True)
class FormRequest:
    """What a form is compiled from: immutable, so it needs nothing of the cluster that wants it.

    `cluster_sources` are the positions of the cluster's sources among the derived values, of which
    `derived` is a weak reference; it is None if the cluster has no sources.
    """

    cluster: ClusterGraph
    cluster_sources: tuple[int, ...]
    samples: tuple[Sample, ...]
    derived: weakref.ref[DerivedValues] | None
    is_baked: bool
    use: Use
    threads: int
    table: Mapping[str, OpEmitter]


class SourcesGoneError(Exception):
    """The derived values for which a form was requested are in use no more."""


def compile_form(
    request: FormRequest, engine: Engine, interrupt: Interrupt | None = None
) -> CompiledForm:
    """Return the form for the shapes seen so far; this can take seconds.

    If a node can't be written with open sizes, all sizes are those of the last sample. Raises
    RefusedError with the nodes that can't be written even then, SourcesGoneError, and the engine's
    errors.
    """
    derived = None
    if request.derived is not None:
        derived = request.derived()
        if derived is None:
            raise SourcesGoneError
    pattern, emitted = _emit(request, derived, engine)
    tensors = TensorSizes(
        (value.shape, value.dtype)
        for operation in emitted.emission.operations
        for value in operation.outputs
    )
    serialized = serialize(emitted, request.is_baked)
    weights = [weight for _, weight in serialized.weights]
    rows = row_inputs(emitted)
    del emitted
    uses = engine.backend.uses(request.use, request.threads)
    samples = tuple(each for each in request.samples if _fits(pattern, tensors, each))
    how = Compilation(request.use, request.threads, engine.precision, samples)
    model = engine.backend.compile_model(serialized, how, interrupt)
    del serialized
    release(weights)
    give_back_memory()
    return CompiledForm(model, pattern, request, derived, tensors, uses, weights, rows)


def _fits(pattern: Pattern, tensors: TensorSizes, sample: Sample) -> bool:
    sizes = sizes_of(pattern, sample)
    return sizes is not None and tensors.are_within(sizes)


def _largest_bytes(tensors: TensorSizes, pattern: Pattern, samples: Sequence[Sample]) -> int:
    """Return the bytes of the largest tensor of the runs for the samples that fit."""
    found = (sizes_of(pattern, sample) for sample in samples)
    return max((tensors.largest_bytes(sizes) for sizes in found if sizes is not None), default=0)


def _emit(
    request: FormRequest, derived: DerivedValues | None, engine: Engine
) -> tuple[Pattern, EmittedCluster]:
    arrays = [] if derived is None else sources_of(derived, request.cluster_sources)
    pattern = pattern_of(request.samples)
    try:
        return pattern, _emit_within_bounds(request, pattern, arrays, engine)
    except RefusedError as error:
        _log.debug("A cluster is compiled for fixed sizes: %s", error)
        pattern = pattern_of(request.samples[-1:], opens_batch=False)
        return pattern, _emit_within_bounds(request, pattern, arrays, engine)


def _emit_within_bounds(
    request: FormRequest, pattern: Pattern, arrays: Sequence[np.ndarray], engine: Engine
) -> EmittedCluster:
    """Emit a cluster; raise RefusedError too if there is what a model of the engine can't have."""
    patterns = engine.backend.PATTERNS
    emitted = engine.backend.adapted(
        emit_cluster(request.cluster, pattern, arrays, request.table, patterns)
    )
    nodes = {node.name: node for node in request.cluster.nodes}
    refused = engine.backend.refusals(emitted)
    operations = live_operations(
        emitted.emission.operations, (*emitted.outputs, *emitted.emission.checks)
    )
    faults: dict[Node, str] = {nodes[name]: reason for name, reason in refused.items()}
    for (node, _), value in zip(request.cluster.outputs, emitted.outputs, strict=True):
        fault = fault_of(value.shape, value.dtype)  # an engine takes an empty constant for a scalar
        if fault:
            faults[node] = fault
    for operation in operations:
        read = [each for each in operation.inputs if each is not None and _is_data(each)]
        for value in (*read, *operation.outputs):
            fault = fault_of(value.shape, value.dtype)
            if fault:
                faults[nodes[operation.name]] = fault
    if faults:
        raise RefusedError(faults)
    return emitted


def _is_data(value: Value) -> bool:
    """Return whether a value is no operand such as axes, which may be an empty vector."""
    return value.constant is None or value.rank > 1
