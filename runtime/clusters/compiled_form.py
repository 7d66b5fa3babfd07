"""Compiled forms: a cluster's graph as a model of the engine, for one pattern of input shapes."""

from __future__ import annotations

import importlib
import logging
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from runtime.clusters.emit_cluster import ClusterGraph, EmittedCluster, RefusedError, emit_cluster
from runtime.clusters.input_shapes import Pattern, Sample, fits, pattern_of
from runtime.clusters.model_proto import serialize
from runtime.clusters.op_emitter import OpEmitter
from runtime.framework.tensor_value import TensorValue

_log = logging.getLogger(__name__)


class Model(Protocol):
    """A model that an engine has compiled."""

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the outputs for the inputs and, in the derived form, the weights."""


class CompiledForm:
    """A model with weights baked in, and when it may be used.

    It holds while the inputs fit `pattern` and every source *is* the array that is baked in; the
    arrays are kept so that no other array can take their place in memory. Immutable.
    """

    def __init__(self, model: Model, pattern: Pattern, sources: Sequence[TensorValue]) -> None:
        self.model = model
        self.pattern = pattern
        self.sources = tuple(sources)

    def fits(self, sample: Sample) -> bool:
        """Return whether inputs of these shapes can be given to the model."""
        return fits(self.pattern, sample)

    def holds(self, sources: Sequence[TensorValue]) -> bool:
        """Return whether the arrays of the sources are those that are baked in."""
        return all(map(operator.is_, sources, self.sources))


def compile_form(
    cluster: ClusterGraph,
    samples: Sequence[Sample],
    sources: Sequence[TensorValue],
    threads: int,
    table: Mapping[str, OpEmitter],
) -> CompiledForm:
    """Return the form of a cluster for the shapes seen so far; this can take seconds.

    If a node can't be written with open sizes, all sizes are those of the last sample. Raises
    RefusedError with the nodes that can't be written even then, ImportError without an engine, and
    the engine's errors.
    """
    pattern, emitted = _emit(cluster, samples, sources, table)
    engine: Any = importlib.import_module("runtime.clusters.backend")
    model: Model = engine.CompiledModel(serialize(emitted, is_baked=True), threads)
    return CompiledForm(model, pattern, sources)


def _emit(
    cluster: ClusterGraph,
    samples: Sequence[Sample],
    sources: Sequence[TensorValue],
    table: Mapping[str, OpEmitter],
) -> tuple[Pattern, EmittedCluster]:
    pattern = pattern_of(samples)
    arrays = [np.asarray(source) for source in sources]
    try:
        return pattern, emit_cluster(cluster, pattern, arrays, table)
    except RefusedError as error:
        _log.debug("A cluster is compiled for fixed sizes: %s", error)
        pattern = pattern_of(samples[-1:], opens_axis_0=False)
        return pattern, emit_cluster(cluster, pattern, arrays, table)
