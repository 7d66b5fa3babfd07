"""Cluster: runs the nodes of a cluster as a compiled model where one holds, else by numpy kernels.

The numpy kernels are the reference: whatever a model can't take (other shapes, changed variables,
an error of the engine) they compute, and so they give TensorFlow's values and errors. Empty inputs
are always theirs: an engine has ended the process for some.

Guarantees: thread-safe and re-entrant; a model is used only for shapes that it was compiled for,
and for the sources whose values it has; a step that is cancelled ends with the cancellation's
error.
"""

from __future__ import annotations

import abc
import logging
import math
import operator
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from runtime.clusters.emit_cluster import ClusterGraph
from runtime.clusters.engine_choice import FLOAT32
from runtime.clusters.running.cluster_counts import ClusterSummary, cluster_counts
from runtime.clusters.running.compiled_form import CompiledForm, now
from runtime.clusters.running.engine import Engine, UncheckedRunError
from runtime.clusters.running.form_runs import LONG_SECONDS, run_slices, run_whole
from runtime.clusters.running.form_use import Use, rank
from runtime.clusters.running.input_shapes import Sample, is_empty
from runtime.clusters.running.row_slices import (
    MOST_BYTES,
    WORTH_SECONDS,
    RowSlices,
    batch_of,
    can_run_slices,
    runs_slices,
)
from runtime.foundation.errors import ResourceExhaustedError
from runtime.foundation.global_thread_pools import schedulable_cores
from runtime.foundation.intra_op_pool import thread_width
from runtime.framework.derived_values import DerivedValues
from runtime.framework.op_kernel import OpKernelContext, StepState
from runtime.framework.tensor_value import TensorValue
from runtime.graph.node import Node

# Runs the nodes of a cluster by numpy kernels: (step, inputs) → outputs.
Evaluate: TypeAlias = Callable[[StepState, Sequence[TensorValue]], Sequence[TensorValue]]
# Returns how to run a cluster in which the given nodes must not be part of a model; None if it was
# divided too often already.
Split: TypeAlias = Callable[[Mapping[Node, str]], Evaluate | None]

_MAX_KNOWN = 64  # samples whose form is remembered
_UNCOUNTED_BYTES = 1 << 26  # of a run; what needs more is set aside in the step's account
_MAX_FAILURES = 3  # runs of a form that may fail where numpy kernels don't
# The runs of a form after which its time is compared. If something else on the machine takes half a
# millisecond, it slows the first 16 of a small model.
FIRST_JUDGED_RUN, LAST_JUDGED_RUN = 16, 256
# Whether helper threads pay is judged again, and they are given up no earlier: 256 runs of 40 µs
# take 10 ms, for which a host that is busy may take another core away.
WIDTH_JUDGED_RUN = 4096
_JUDGED_RUNS = frozenset((FIRST_JUDGED_RUN, LAST_JUDGED_RUN, WIDTH_JUDGED_RUN))
_shape = operator.attrgetter("shape")
_as_array = np.asarray
# Python takes 0.1 µs for a member of an enumeration, and every run needs three.
_WIDE, _CROWDED, _LOW = Use.WIDE, Use.CROWDED, Use.LOW
_log = logging.getLogger(__name__)
# One element for each run of a model in this process; append and pop are atomic.
_at_work: list[None] = []
# With more other runs than this, further threads would only take cores from each other.
_MAX_OTHERS = schedulable_cores() // 2
# A run beside others, with one thread, may take this many times longer than one that waits for the
# run before it. On average it would wait as long as it takes.
_MOST_LONGER = 2.0


class Cluster(abc.ABC):
    """One cluster of a compiled step, which may be run by many threads.

    Low-priority steps, and others when callers keep the cores busy, have forms with one thread: see
    `Use`.
    """

    def __init__(
        self,
        graph: ClusterGraph,
        source_positions: Sequence[int],
        evaluate: Evaluate,
        engine: Engine,
    ) -> None:
        """`source_positions` says where the sources of `graph` are among the derived values."""
        self.graph = graph
        self.engine = engine
        self.source_positions = tuple(source_positions)
        self._evaluate = evaluate
        self.is_split = False
        self._forms: tuple[CompiledForm, ...] = ()  # replaced as a whole
        # Of long runs of several rows: (use, threads, sample) → their slices.
        self._slices: dict[tuple[Use, int, Sample], RowSlices] = {}
        # Forms found before, by use of the run; replaced as a whole with `_forms`.
        self._known: tuple[dict[Sample, CompiledForm], ...] = tuple({} for _ in Use)

    @property
    def forms(self) -> tuple[CompiledForm, ...]:
        """The compiled forms, the newest first."""
        return self._forms

    @property
    def summary(self) -> ClusterSummary:
        """What the cluster is at present."""
        forms = self._forms
        return ClusterSummary(
            len(self.graph.nodes),
            self.state_name,
            self.engine.name if forms else "",
            self.engine.precision if forms else FLOAT32,
            len(forms),
            sum(form.bytes_held for form in forms),
            sum(form.compile_seconds for form in forms),
        )

    @property
    def state_name(self) -> str:
        """The state, as metrics and the model's information show it."""
        return "compiled" if self._forms else "observed"

    @property
    def is_compiled(self) -> bool:
        """Whether there is a compiled form."""
        return bool(self._forms)

    def __call__(
        self, context: OpKernelContext, inputs: Sequence[TensorValue]
    ) -> Sequence[TensorValue]:
        """Return the outputs for the arrays of the inputs; the sources are in the step."""
        step = context.step
        if self.is_split:
            return self._evaluate(step, inputs)
        sample: Sample = tuple(map(_shape, inputs))
        derived = step.derived
        if step.is_low_priority:
            use = _LOW
        else:
            use = _CROWDED if len(_at_work) > _MAX_OTHERS else _WIDE
        form = self._known[use].get(sample)
        if form is None or not form.holds(derived):
            form = self._other_form(sample, derived, use)
            if form is None:
                return self._run_numpy(context, sample, inputs)
            need = form.need(sample)
            if need > _UNCOUNTED_BYTES and step.memory is not None:
                return self._run_counted(context, form, use, sample, inputs, derived, need)
        if use is _WIDE and form.model.is_busy:
            form = self._form_beside(form, sample, derived)
        return self._run(context, form, use, sample, inputs, derived)

    def _run_counted(
        self,
        context: OpKernelContext,
        form: CompiledForm,
        use: Use,
        sample: Sample,
        inputs: Sequence[TensorValue],
        derived: DerivedValues | None,
        need: int,
    ) -> Sequence[TensorValue]:
        """Run a form with `need` bytes set aside, or numpy kernels if they are not left."""
        memory = context.step.memory
        assert memory is not None
        try:
            memory.reserve(need)
        except ResourceExhaustedError:
            return self._run_numpy(context, sample, inputs)
        try:
            return self._run(context, form, use, sample, inputs, derived)
        finally:
            memory.release(need)

    def _run(
        self,
        context: OpKernelContext,
        form: CompiledForm,
        use: Use,
        sample: Sample,
        inputs: Sequence[TensorValue],
        derived: DerivedValues | None,
    ) -> Sequence[TensorValue]:
        """Run a form; run the numpy kernels if that fails."""
        _at_work.append(None)
        failure: Exception | None = None
        # For a small model each call of Python counts, so this method has few.
        try:
            arrays = [*map(_as_array, inputs)]
            if form.has_weights:
                arrays += form.weights_for(derived)
            slices = self._slices_of(use, sample) if self._slices and form.is_baked else None
            started = now()
            if slices is not None:
                outputs = self._run_divisible(context, form, slices, sample, arrays, derived)
            elif form.seconds > LONG_SECONDS:
                outputs = run_whole(context, form, arrays)
            else:
                outputs = form.model.run(arrays)
            ended = now()
            form.note_run(sample, started, ended)
            if slices is None and ended - started > WORTH_SECONDS and form.rows is not None:
                self._consider_slices(form, use, sample)
            if form.runs in _JUDGED_RUNS:
                self._judge(form, sample, derived)
            return outputs
        except UncheckedRunError as error:
            _log.debug("A run of a cluster falls back to numpy kernels: %s", error)
        except Exception as error:
            context.cancellation.check()
            failure = error.with_traceback(None)
        finally:
            _at_work.pop()
        outputs = self._evaluate(context.step, inputs)
        if failure is not None:  # the fault is not in the inputs, for which numpy raises as well
            self._note_failure(form, failure)
        return outputs

    # Runs in slices

    def _slices_of(self, use: Use, sample: Sample) -> RowSlices | None:
        return self._slices.get((use, _width(use), sample))

    def _consider_slices(self, form: CompiledForm, use: Use, sample: Sample) -> None:
        """Take notice of a long run, which may be faster in slices."""
        width, batch = _width(use), batch_of(form, sample)
        if form.is_baked and batch >= max(2, width) and can_run_slices(self.engine.backend):
            for oldest in list(self._slices)[: 1 - _MAX_KNOWN]:
                self._slices.pop(oldest, None)
            self._slices[use, width, sample] = RowSlices(batch, width)

    def _run_divisible(
        self,
        context: OpKernelContext,
        form: CompiledForm,
        slices: RowSlices,
        sample: Sample,
        arrays: Sequence[np.ndarray],
        derived: DerivedValues | None,
    ) -> Sequence[TensorValue]:
        """Run a form, or slices if it is their turn; measure the run if nothing disturbs it."""
        if slices.is_wanted is False:
            return run_whole(context, form, arrays)
        is_undisturbed = slices.width == 1 or len(_at_work) == 1
        narrow: CompiledForm | None = None
        if slices.take_turn() and (is_undisturbed or slices.is_wanted is not None):
            narrow = self._form_for_slices(slices, form, sample, derived)
        began, work_began = slices.now(), time.thread_time()
        if narrow is None:
            outputs: Sequence[TensorValue] = run_whole(context, form, arrays)
        else:
            try:
                outputs = run_slices(context, narrow, slices, arrays)
            except UncheckedRunError:
                raise
            except Exception:
                context.cancellation.check()
                slices.is_wanted = False
                raise
        if len(_at_work) == 1 if slices.width > 1 else runs_slices(narrow or form):
            work_seconds = time.thread_time() - work_began
            slices.note(narrow is not None, slices.now() - began, work_seconds)
        return outputs

    def _form_for_slices(
        self, slices: RowSlices, form: CompiledForm, sample: Sample, derived: DerivedValues | None
    ) -> CompiledForm | None:
        """Return the form with which a run is divided; None if there is none, or not yet."""
        if runs_slices(form):
            return form
        narrow = self._find(sample, derived, Use.NARROW)
        if narrow is not None and runs_slices(narrow):
            return narrow
        if form.bytes_held > MOST_BYTES or (narrow is not None and Use.NARROW in narrow.uses):
            slices.is_wanted = False  # a form for fixed sizes has no rows
        elif slices.misses_form():
            return self._missed_narrow(sample, derived)
        return None

    def _missed_narrow(self, sample: Sample, derived: DerivedValues | None) -> CompiledForm | None:
        """Take notice that no form runs slices; return one if it is there now."""
        return None

    def _judge(self, form: CompiledForm, sample: Sample, derived: DerivedValues | None) -> None:
        """Take notice that a form has run often enough to tell whether it pays."""
        _log.debug("A form has run %d times", form.runs)

    def _run_numpy(
        self, context: OpKernelContext, sample: Sample, inputs: Sequence[TensorValue]
    ) -> Sequence[TensorValue]:
        return self._evaluate(context.step, inputs)

    def _other_form(
        self, sample: Sample, derived: DerivedValues | None, use: Use
    ) -> CompiledForm | None:
        """Return a form that is not the one known for `sample`; None if numpy must run."""
        known = self._known[use]
        form = self._find(sample, derived, use)
        if form is None and is_empty(sample):
            return None
        if form is None:
            return self._missed(sample, derived, use)
        is_wanted = use is Use.CROWDED and use not in form.uses
        if is_wanted and self._wants_crowded(sample, derived):
            return form
        if (
            form.is_baked  # a derived one would hide it
            and len(known) < _MAX_KNOWN
            and form.need(sample) <= _UNCOUNTED_BYTES
        ):
            known[sample] = form
        return form

    def _form_beside(
        self, form: CompiledForm, sample: Sample, derived: DerivedValues | None
    ) -> CompiledForm:
        """Return the form for a run that would wait if it had `form`, which is in use."""
        other = self._find(sample, derived, Use.CROWDED)
        if other is None or Use.CROWDED not in other.uses:
            self._wants_crowded(sample, derived)
            return form
        if other.best.get(sample, 0.0) <= _MOST_LONGER * form.best.get(sample, math.inf):
            return other
        return form

    def _wants_crowded(self, sample: Sample, derived: DerivedValues | None) -> bool:
        """Take notice of a run beside others that has no form for it.

        Returns whether to be notified again.
        """
        return False

    def _find(self, sample: Sample, derived: DerivedValues | None, use: Use) -> CompiledForm | None:
        """Return the best form that holds: with baked weights, and made for `use`."""
        if is_empty(sample):
            return None
        best: CompiledForm | None = None
        best_key = (False, 0, 0)
        for each in self._forms:
            place = rank(each.uses, use)
            if place is None or not (each.fits(sample) and each.holds(derived)):
                continue
            key = (each.is_baked, -place, each.threads)
            if best is None or key > best_key:
                best, best_key = each, key
        return best

    @abc.abstractmethod
    def _missed(
        self, sample: Sample, derived: DerivedValues | None, use: Use
    ) -> CompiledForm | None:
        """Take notice that no form holds for a run; return one if it is there now."""

    def add_form(self, form: CompiledForm, replaced: Sequence[CompiledForm] = ()) -> None:
        """Use `form` from now on, and `replaced` no longer."""
        kept = [each for each in self._forms if each not in replaced]
        self._set_forms((form, *kept))

    def remove_form(self, form: CompiledForm) -> None:
        """Use `form` no longer."""
        self._set_forms(tuple(each for each in self._forms if each is not form))

    def _set_forms(self, forms: tuple[CompiledForm, ...]) -> None:
        self._forms = forms
        self._known = tuple({} for _ in Use)

    def _note_failure(self, form: CompiledForm, error: Exception) -> None:
        cluster_counts.run_failed()
        form.failures += 1
        _log.debug("A run of a cluster falls back to numpy kernels: %s", error)
        if form.failures == _MAX_FAILURES:
            _log.warning("A cluster stays on numpy kernels, because its runs fail: %s", error)
            self.remove_form(form)


def _width(use: Use) -> int:
    """Return how many threads a run has; `Use.WIDE` is that of a run that nothing limits."""
    return thread_width() if use is Use.WIDE else 1
