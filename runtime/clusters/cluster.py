"""Cluster: runs the nodes of a cluster as a compiled model where one holds, else by numpy kernels.

The numpy kernels are the reference: whatever a model can't take (other shapes, changed variables,
an error of the engine) they compute, and so they give TensorFlow's values and errors.

Guarantees: thread-safe and re-entrant; a model is used only for the shapes that it was compiled for
and while the arrays baked into it are the sources' present ones.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from runtime.clusters.compiled_form import CompiledForm, compile_form
from runtime.clusters.emit_cluster import ClusterGraph, RefusedError
from runtime.clusters.input_shapes import Sample
from runtime.clusters.op_emitter import OpEmitter
from runtime.foundation.intra_op_pool import thread_width
from runtime.framework.op_kernel import OpKernelContext, StepState
from runtime.framework.tensor_value import TensorValue
from runtime.graph.node import Node

# Runs the nodes of a cluster by numpy kernels: (step, inputs and sources) → outputs.
Evaluate: TypeAlias = Callable[[StepState, Sequence[TensorValue]], Sequence[TensorValue]]
# Returns how to run a cluster in which the given nodes must not be part of a model.
Split: TypeAlias = Callable[[Mapping[Node, str]], Evaluate]

_shape = operator.attrgetter("shape")
_log = logging.getLogger(__name__)


class Cluster:
    """One cluster of a compiled step, which may be run by many threads."""

    def __init__(
        self,
        graph: ClusterGraph,
        evaluate: Evaluate,
        split: Split,
        table: Mapping[str, OpEmitter],
    ) -> None:
        self.graph = graph
        self._evaluate = evaluate
        self._split = split
        self._table = table
        self._input_count = len(graph.inputs)
        self._forms: list[CompiledForm] = []
        self._is_split = False

    @property
    def is_compiled(self) -> bool:
        """Whether there is a compiled form."""
        return bool(self._forms)

    def __call__(
        self, context: OpKernelContext, values: Sequence[TensorValue]
    ) -> Sequence[TensorValue]:
        """Return the outputs for the arrays of the inputs and then the sources."""
        inputs, sources = values[: self._input_count], values[self._input_count :]
        sample: Sample = tuple(map(_shape, inputs))
        form = self._find(sample, sources)
        if form is None and not self._is_split:
            form = self._compile(sample, sources)
        if form is not None:
            try:
                return form.model.run([np.asarray(value) for value in inputs])
            except Exception as error:
                context.cancellation.check()
                _log.debug("A cluster runs on numpy kernels: %s", error)
        return self._evaluate(context.step, values)

    def _find(self, sample: Sample, sources: Sequence[TensorValue]) -> CompiledForm | None:
        for form in self._forms:
            if form.fits(sample) and form.holds(sources):
                return form
        return None

    def _compile(self, sample: Sample, sources: Sequence[TensorValue]) -> CompiledForm | None:
        try:
            form = compile_form(self.graph, [sample], sources, thread_width(), self._table)
        except RefusedError as error:
            _log.info("Nodes of a cluster stay on numpy kernels: %s", error)
            self._is_split = True
            self._evaluate = self._split(error.reasons)
            return None
        self._forms.append(form)
        return form
