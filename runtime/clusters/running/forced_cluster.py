"""ForcedCluster: compiles in the thread that runs it. For tests: nothing is too small for it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence

from runtime.clusters.emit_cluster import ClusterGraph, RefusedError
from runtime.clusters.op_emitter import OpEmitter
from runtime.clusters.running.cluster import Cluster, Evaluate, Split
from runtime.clusters.running.compiled_form import CompiledForm, FormRequest, compile_form
from runtime.clusters.running.engine import Engine
from runtime.clusters.running.form_use import Use
from runtime.clusters.running.input_shapes import Sample
from runtime.foundation.intra_op_pool import thread_width
from runtime.framework.derived_values import DerivedValues


class ForcedCluster(Cluster):
    """A cluster that has a form for every run; it raises what emission and the engine raise."""

    def __init__(
        self,
        graph: ClusterGraph,
        source_positions: Sequence[int],
        evaluate: Evaluate,
        engine: Engine,
        split: Split,
        table: Mapping[str, OpEmitter],
    ) -> None:
        super().__init__(graph, source_positions, evaluate, engine)
        self._split = split
        self._table = table
        self._lock = threading.Lock()  # one thread compiles at a time

    def _missed(
        self, sample: Sample, derived: DerivedValues | None, use: Use
    ) -> CompiledForm | None:
        if use is Use.CROWDED:
            use = Use.WIDE
        is_baked = not any(form.fits(sample) for form in self._forms)
        with self._lock:
            request = FormRequest(
                self.graph,
                self.source_positions,
                (sample,),
                None if derived is None else weakref.ref(derived),
                is_baked,
                use,
                thread_width() if use is Use.WIDE else 1,
                self._table,
            )
            try:
                form = compile_form(request, self.engine)
            except RefusedError as error:
                self._evaluate = self._split(error.reasons) or self._evaluate
                self.is_split = True
                return None
            self.add_form(form)
        return form if form.fits(sample) else None  # its tensors may be too large
