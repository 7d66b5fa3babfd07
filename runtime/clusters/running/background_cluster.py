"""BackgroundCluster: has its forms compiled in the background, where that is measured to pay.

The way of a cluster: numpy kernels run it and are measured (OBSERVED); if it is worth a model, one
is compiled (COMPILING) and used (COMPILED). A cluster that is too small, that the engine runs no
faster, or whose compilation fails is DISSOLVED: its step runs the nodes one by one again.

A dissolved cluster is observed again when its step begins to take much longer.

A model is compiled for the shapes seen so far. When others come, a more general one replaces it,
while numpy kernels run. When variables have changed for good, the derived form is compiled.

Guarantees: thread-safe; no run waits for a compilation.
"""

from __future__ import annotations

import enum
import logging
import math
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence

from runtime.clusters.emit_cluster import ClusterGraph, RefusedError
from runtime.clusters.op_emitter import OpEmitter
from runtime.clusters.running import run_width
from runtime.clusters.running.cluster import (
    LAST_JUDGED_RUN,
    WIDTH_JUDGED_RUN,
    Cluster,
    Evaluate,
    Split,
)
from runtime.clusters.running.cluster_counts import cluster_counts
from runtime.clusters.running.compile_queue import CompileQueue, give_back_memory
from runtime.clusters.running.compiled_form import (
    CompiledForm,
    FormRequest,
    SourcesGoneError,
    compile_form,
    now,
)
from runtime.clusters.running.engine import Engine
from runtime.clusters.running.form_use import Use, is_spare
from runtime.clusters.running.input_shapes import Sample, is_empty
from runtime.clusters.running.interrupt import Interrupt
from runtime.clusters.running.request_limits import RequestLimits, surplus
from runtime.foundation.deadline_timer import deadline_timer
from runtime.foundation.intra_op_pool import thread_width
from runtime.framework.derived_values import DerivedValues
from runtime.framework.op_kernel import OpKernelContext
from runtime.framework.tensor_value import TensorValue

# A run of a model costs about 10 µs besides its work. A cluster with an expensive op gains more on
# larger inputs, which may follow.
WORTH_SECONDS = 50e-6
WORTH_SECONDS_IF_HEAVY = 20e-6
# A cluster that takes less on numpy kernels is compiled for one thread first (`run_width.py`).
NARROW_SECONDS = 1e-3
OBSERVED_RUNS = 3  # of the numpy kernels; the last one is measured
_RENEWED_RUNS = 12  # when it is observed again: the longest of these decides, as sizes differ
_MAX_MEASURED = 8  # samples whose time on numpy kernels is kept
_STEADY_RUNS = 3  # runs in a row with the same other sources, before a derived form is compiled
_CROWDED_RUNS = 16  # runs beside others, before a form for these is compiled
IDLE_SECONDS = 60.0  # after which a form that is not the main one is freed
_log = logging.getLogger(__name__)


class State(enum.Enum):
    """Where a cluster is on its way."""

    OBSERVED = "observed"
    COMPILING = "compiling"
    COMPILED = "compiled"
    DISSOLVED = "dissolved"


class BackgroundCluster(Cluster):
    """A cluster whose forms are compiled by a queue's thread.

    Setting `interrupt` drops and ends its compilations. `settled` is called in the queue's thread,
    or in one that runs the cluster, when the state becomes COMPILED or DISSOLVED.
    """

    def __init__(
        self,
        graph: ClusterGraph,
        source_positions: Sequence[int],
        evaluate: Evaluate,
        engine: Engine,
        split: Split,
        table: Mapping[str, OpEmitter],
        compilations: CompileQueue,
        interrupt: Interrupt,
        settled: Callable[[], object],
    ) -> None:
        super().__init__(graph, source_positions, evaluate, engine)
        self._split = split
        self._table = table
        self._queue = compilations
        self._settled = settled
        self._interrupt = interrupt
        self._is_heavy = any(table[node.op].is_heavy for node in graph.nodes if node.op != "Const")
        # Guards all fields below. It is never held while kernels or models run.
        self._lock = threading.Lock()
        self.state = State.OBSERVED
        self.numpy_seconds: dict[Sample, float] = {}
        self._numpy_runs = 0
        self._deciding_run = OBSERVED_RUNS
        self._limits = RequestLimits()
        self._is_requested = False
        self._others: weakref.ref[DerivedValues] | None = None
        self._other_runs = 0
        self._crowded_runs = 0
        self._has_failed = False  # a compilation, so that it is not worth another

    @property
    def state_name(self) -> str:
        """The state, as metrics and the model's information show it."""
        return self.state.value

    # Numpy runs

    def _run_numpy(
        self, context: OpKernelContext, sample: Sample, inputs: Sequence[TensorValue]
    ) -> Sequence[TensorValue]:
        started = time.perf_counter()
        outputs = self._evaluate(context.step, inputs)
        seconds = time.perf_counter() - started
        # Inputs that are empty, or for which the kernels raise, decide nothing.
        if not is_empty(sample):
            self._note_numpy_run(sample, seconds)
            self._want_form(sample, context.step.derived, context.step.is_low_priority)
        return outputs

    def _note_numpy_run(self, sample: Sample, seconds: float) -> None:
        with self._lock:
            self._numpy_runs += 1
            if self._numpy_runs < OBSERVED_RUNS:
                return
            known = self.numpy_seconds.get(sample)
            if known is not None or len(self.numpy_seconds) < _MAX_MEASURED:
                self.numpy_seconds[sample] = min(seconds, known or seconds)
            if self.state is not State.OBSERVED or self._numpy_runs != self._deciding_run:
                return
            seconds = max(self.numpy_seconds.values())
        limit = WORTH_SECONDS_IF_HEAVY if self._is_heavy else WORTH_SECONDS
        if seconds < limit:
            self._dissolve()

    # Requests

    def _missed(
        self, sample: Sample, derived: DerivedValues | None, use: Use
    ) -> CompiledForm | None:
        return None  # a form is requested when the numpy kernels have taken the inputs

    def _want_form(
        self, sample: Sample, derived: DerivedValues | None, is_low_priority: bool
    ) -> None:
        """Request a form for a run that had none."""
        if self.state is State.DISSOLVED:
            return
        with self._lock:
            if not self._limits.recurs(sample):
                return
        fitting = [form for form in self._forms if form.fits(sample) and form.is_baked]
        is_baked = not fitting or any(form.holds(derived) for form in fitting)
        if is_low_priority:
            use = Use.LOW
        else:
            is_narrow = self._is_short(sample) and thread_width() > 1
            use = Use.NARROW if is_narrow else Use.WIDE
        if any(use in form.uses and form.holds(derived) for form in fitting):
            return  # it was compiled while the numpy kernels ran
        if is_baked or self._are_steady(derived):
            self._request(sample, derived, is_baked, use)

    def _request(
        self, sample: Sample, derived: DerivedValues | None, is_baked: bool, use: Use
    ) -> None:
        """Have a form compiled, unless another is being compiled or there were too many."""
        with self._lock:
            if self._is_requested or self._numpy_runs < self._deciding_run:
                return
            samples = self._limits.request(sample, self._forms)
            if samples is None:
                return
            self._is_requested = True
            if self.state is State.OBSERVED:
                self.state = State.COMPILING
        request = FormRequest(
            self.graph,
            self.source_positions,
            samples,
            None if derived is None else weakref.ref(derived),
            is_baked,
            use,
            thread_width() if use is Use.WIDE else 1,
            self._table,
        )
        self._queue.submit(_job(self, request), self._interrupt)

    def _wants_crowded(self, sample: Sample, derived: DerivedValues | None) -> bool:
        self._crowded_runs += 1
        if self._crowded_runs < _CROWDED_RUNS:
            return True
        self._crowded_runs = 0
        self._request(sample, derived, is_baked=True, use=Use.CROWDED)
        return False

    def _missed_narrow(self, sample: Sample, derived: DerivedValues | None) -> CompiledForm | None:
        if not self._has_failed:
            self._request(sample, derived, is_baked=True, use=Use.CROWDED)
        return None  # as a whole, until it is compiled

    def _judge(self, form: CompiledForm, sample: Sample, derived: DerivedValues | None) -> None:
        is_first = form.runs < LAST_JUDGED_RUN
        if is_first:  # what the numpy kernels worked in while it was compiled is free by now
            self._queue.submit(give_back_memory, self._interrupt)
        seconds, numpy_seconds = form.best.get(sample), self.numpy_seconds.get(sample)
        if seconds is None or form not in self._forms:
            return
        pays = any(each < self.numpy_seconds.get(key, 0.0) for key, each in form.best.items())
        if numpy_seconds is not None and seconds > numpy_seconds and not pays:
            if not is_first:
                _log.info("A cluster stays on numpy kernels, which take less time than the engine")
                self._dissolve()
            return
        is_main = Use.WIDE in form.uses or Use.NARROW in form.uses
        # The first runs of a form with helpers may be slow ones, so it is compared after the last.
        is_due = is_first != (form.threads > 1)
        if is_due and is_main and (self._is_short(sample) or seconds < NARROW_SECONDS):
            self._judge_width(form, sample, derived)

    def _judge_width(
        self, form: CompiledForm, sample: Sample, derived: DerivedValues | None
    ) -> None:
        """Keep the width with which short runs of `sample` are better; have the other compiled.

        The wide one goes only after WIDTH_JUDGED_RUN runs. A form that has all uses of normal runs,
        because there is one thread only, has no other.
        """
        if form.uses >= {Use.WIDE, Use.NARROW}:
            return
        other_use = Use.NARROW if form.threads > 1 else Use.WIDE
        others = [each for each in self._forms if each.fits(sample) and other_use in each.uses]
        if not others:
            if form.threads > 1:
                self._request(sample, derived, is_baked=form.is_baked, use=Use.NARROW)
            elif thread_width() > 1 and run_width.may_pay(
                form.bytes_held, form.best.get(sample, math.inf)
            ):
                self._request(sample, derived, is_baked=form.is_baked, use=Use.WIDE)
        for other in others:
            wide, narrow = (form, other) if form.threads > 1 else (other, form)
            seconds, narrow_seconds = wide.best.get(sample), narrow.best.get(sample)
            if seconds is None or narrow_seconds is None or wide.runs < WIDTH_JUDGED_RUN:
                continue
            if not run_width.pays(narrow_seconds, seconds, wide.threads):
                self.remove_form(wide)

    def _are_steady(self, derived: DerivedValues | None) -> bool:
        """Return whether the last runs had these derived values, which no baked form has."""
        if derived is None:
            return False
        is_same = self._others is not None and self._others() is derived
        self._other_runs = self._other_runs + 1 if is_same else 1
        self._others = weakref.ref(derived)
        return self._other_runs >= _STEADY_RUNS

    def _is_short(self, sample: Sample) -> bool:
        seconds = self.numpy_seconds.get(sample)
        return seconds is not None and seconds < NARROW_SECONDS

    # Results, in the queue's thread

    def accept(self, form: CompiledForm, request: FormRequest) -> None:
        """Use a form that was compiled for `request`."""
        engine = self.engine
        cluster_counts.compiled(form, form.compile_seconds, engine.name, engine.precision)
        _log.info(
            "Compiled a cluster of %d nodes in %.2f s by %s in %s",
            len(request.cluster.nodes),
            form.compile_seconds,
            engine.name,
            engine.precision,
        )
        replaced = [
            each
            for each in self._forms
            if each.is_baked == form.is_baked
            and each.uses == form.uses
            and (any(form.fits(sample) for sample in each.best) or form.replaces(each))
        ]
        with self._lock:
            self._limits.accept(form, request.samples)
        others = [each for each in self._forms if each not in replaced]
        self.add_form(form, [*replaced, *surplus(form, others)])
        if self.is_spare(form):
            _free_when_idle(weakref.ref(self), weakref.ref(form))
        self._end_request(State.COMPILED)

    def is_spare(self, form: CompiledForm) -> bool:
        """Return whether a form can be freed when it is idle."""
        return is_spare(form.uses, [each.uses for each in self._forms if each is not form])

    def refuse(self, error: RefusedError) -> None:
        """Leave out the nodes that can't be written."""
        _log.info("Nodes stay on numpy kernels: %s", error)
        cluster_counts.refused(len(error.reasons))
        if self._forms:  # other shapes can be written; these stay on numpy kernels
            self._end_request(State.COMPILED)
            return
        divided = self._split(error.reasons)
        if divided is None:
            self._end_request(State.DISSOLVED)
            return
        self._evaluate = divided
        self.is_split = True
        self._end_request(State.COMPILED)

    def drop_request(self) -> None:
        """Go back to where the cluster was before a request that nobody needs any more."""
        self._end_request(State.COMPILED if self._forms else State.OBSERVED)

    def fail(self, error: BaseException) -> None:
        """Stay on numpy kernels, unless there is a form for other shapes."""
        cluster_counts.compile_failed()
        self._has_failed = True
        _log.warning("A cluster stays on numpy kernels, because compiling it failed: %s", error)
        self._end_request(State.COMPILED if self._forms else State.DISSOLVED)

    def observe_again(self) -> None:
        """Leave DISSOLVED for OBSERVED, unless compiling failed."""
        with self._lock:
            if self.state is State.DISSOLVED and not self._has_failed:
                self.state = State.OBSERVED
                self._numpy_runs = 0
                self._deciding_run = _RENEWED_RUNS
                self.numpy_seconds.clear()

    def _end_request(self, state: State) -> None:
        with self._lock:
            self._is_requested = False
            changed, self.state = self.state is not state, state
        if changed:
            self._settled()

    def _dissolve(self) -> None:
        self._set_forms(())
        with self._lock:
            self.state = State.DISSOLVED
        self._settled()


def _job(cluster: BackgroundCluster, request: FormRequest) -> Callable[[], None]:
    """Return the job that compiles `request`; it doesn't keep the cluster alive."""
    reference = weakref.ref(cluster)
    interrupt, engine = cluster._interrupt, cluster.engine

    def run() -> None:
        started = time.monotonic()
        form: CompiledForm | None = None
        error: BaseException | None = None
        try:
            form = compile_form(request, engine, interrupt)
        except BaseException as raised:  # SystemExit too: the cluster must not wait for ever
            error = raised
        cluster = reference()
        if cluster is None:
            return
        try:
            if form is not None:
                form.compile_seconds = time.monotonic() - started
                cluster.accept(form, request)
            elif isinstance(error, SourcesGoneError) or interrupt.is_set:
                cluster.drop_request()
            elif isinstance(error, RefusedError):
                cluster.refuse(error)
            elif error is not None:
                cluster.fail(error)
        except BaseException as raised:
            cluster.fail(raised)

    return run


def _free_when_idle(
    cluster: weakref.ref[BackgroundCluster], form: weakref.ref[CompiledForm]
) -> None:
    """Free a form when it was not used for a while; it is compiled again if it is missed."""

    def check() -> None:
        owner, used = cluster(), form()
        if owner is None or used is None:
            return
        if now() - used.last_used < IDLE_SECONDS:
            _free_when_idle(cluster, form)
        elif owner.is_spare(used):
            owner.remove_form(used)

    deadline_timer.call_at(time.monotonic() + IDLE_SECONDS, check)
