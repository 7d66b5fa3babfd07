"""DerivedExecutor: computes what depends on variables and constants only once, not in every step.

`graph.passes.variable_only_part` divides the graph of a step. A run of the step looks up the
outputs of the variable-only part (DerivedValues) and passes them to the executor of the rest as
additional arguments; a cluster can compare `Step.derived` by identity.

When values are computed anew: a run uses the values of the run before while
`variable_changes.newest` is the same object, that is while no variable of the process was written.
If it differs, the run compares the array and the generation of every variable that the values
depend on. Only if one of them differs, the values are looked up among those of other sessions, and
then computed. Arrays that were read never change: a read clears the exclusive flag, so that a later
update copies. The generation shows that a caller has assigned the same array with other elements.

Why the variables may be read when the step begins: no node of the step writes them and nothing in
the step is ordered before the reads (see `variable_only_part`). A write that ended before the run
began has changed `newest`; a write that is running at the same time is not ordered with the step.

What holds values, and how long: a resource manager (usually of one session) holds the values that
its newest run of the step used until one of their variables is written, the step is evicted or the
session ends; an executor that belongs to a template holds the values for the variables of the
template. All else refers to values weakly. So sessions of one template share values while
they share arrays. Values that need more than LIMIT times the memory of what they derive from, and
more than constant folding allows, are not kept; the step then runs undivided.

The undivided graph runs also when the step is traced (so traces and cost models show all nodes),
when a variable has no value, or another type, and when the part raises an error: so errors, their
order and their nodes are those of the undivided graph.

Guarantees: re-entrant. No lock is held while kernels run; if two threads compute the same values,
one result is kept. The part runs with the cancellation and the priority of the step.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from runtime.clusters.running.cluster_counts import ClusterSummary
from runtime.executors.portable_step import PortableStep
from runtime.executors.step import Done, Executor, Step
from runtime.executors.step_plan import StepPlan
from runtime.foundation.errors import OpError
from runtime.framework.derived_values import DerivedValues, DerivedValuesUse
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.op_kernel import SessionState
from runtime.framework.resource_manager import ResourceManager, variable_changes
from runtime.framework.tensor_value import TensorValue
from runtime.graph.node import Endpoint
from runtime.graph.passes.pruning import StepGraph
from runtime.graph.passes.variable_only_part import VariableOnlyPart

LIMIT = 2  # how many times larger derived values may be than the variables


# Puts clusters into an executor: (executor, kernels, its arguments that are derived values and
# their positions among these) → the same or another executor.
Clustering: TypeAlias = Callable[[Executor, KernelRegistry, Mapping[Endpoint, int]], Executor]


def without_clusters(
    executor: Executor, kernels: KernelRegistry, sources: Mapping[Endpoint, int]
) -> Executor:
    """Return `executor` as it is: the Clustering that makes no clusters."""
    return executor


class _VariableState(NamedTuple):
    """The values of the variables that a part reads."""

    arrays: tuple[np.ndarray, ...]
    generations: tuple[int, ...]  # read before the arrays, so an array may be newer


class DerivedExecutor(Executor):
    """Runs a step whose graph has a variable-only part."""

    def __init__(
        self,
        graph: StepGraph,
        split: VariableOnlyPart,
        kernels: KernelRegistry,
        build: Callable[[StepGraph], Executor],
        max_bytes: int,
        add_clusters: Clustering = without_clusters,
    ) -> None:
        """`graph` is undivided; `build` returns an executor of a graph.

        `add_clusters` is applied to the executor of the rest.
        Values of more than `max_bytes` are kept only if they are within LIMIT.
        """
        super().__init__(graph)
        self.split = split
        given = enumerate(split.rest.arguments[split.feed_count :])
        sources = {(node, 0): position for position, node in given if node is not None}
        self.rest = add_clusters(build(split.rest), kernels, sources)
        self.rest.duration = self.duration  # whose runs are noted as those of this executor
        self.may_block = self.rest.may_block
        self._part = StepPlan(split.part, kernels)
        self._build = build
        self._undivided: list[Executor] = []  # empty until the undivided graph is first needed
        self._max_bytes = max_bytes
        self._is_too_large = False
        self._reference = weakref.ref(self)
        self._lock = threading.Lock()  # guards the two attributes below
        self._known: weakref.WeakValueDictionary[tuple[int, ...], DerivedValues]
        self._known = weakref.WeakValueDictionary()
        self._of_template: DerivedValues | None = None

    def run(self, step: Step, arguments: Sequence[TensorValue]) -> list[TensorValue]:
        """Run the rest with the derived values in this thread; compute them first if necessary."""
        executor, arguments = self._prepared(step, arguments)
        values = executor.run(step, arguments)
        self.uses_threads = executor.uses_threads
        return self._unshared(values) if self.split.sharing_fetches else values

    def run_async(self, step: Step, arguments: Sequence[TensorValue], done: Done) -> None:
        """Run like `run`; the values are computed in this thread before the rest starts."""
        try:
            executor, arguments = self._prepared(step, arguments)
        except OpError as error:
            done(None, error)
            return
        if self.split.sharing_fetches:
            executor.run_async(step, arguments, self._unsharing(done))
        else:
            executor.run_async(step, arguments, done)
        self.uses_threads = executor.uses_threads

    @property
    def portable(self) -> PortableStep | None:
        """The step for another process; None if the executor of the rest stays in this one."""
        return None if self.rest.stays_in_process else super().portable

    @property
    def clusters(self) -> list[ClusterSummary]:
        """The clusters of the rest."""
        return self.rest.clusters

    @property
    def is_bounded(self) -> bool:
        """Whether sizes bound the work of a run that finds its derived values."""
        return self.is_steady or self.rest.is_bounded

    def is_prepared(self, session: SessionState) -> bool:
        """Return whether the next run in `session` finds its values without computing them."""
        use = session.resources.derived.get(self._reference)
        return use is not None and use.newest is variable_changes.newest

    def _prepared(
        self, step: Step, arguments: Sequence[TensorValue]
    ) -> tuple[Executor, Sequence[TensorValue]]:
        """Return the executor of the run and its arguments."""
        use = step.session.resources.derived.get(self._reference)
        if use is not None and use[0] is variable_changes.newest and step.collector is None:
            derived: DerivedValues | None = use[1]
        else:
            derived = self._find_or_compute(step)
        if derived is None:
            return self._undivided_executor(), arguments
        step.derived = derived
        return self.rest, [*arguments, *derived.values]

    def _undivided_executor(self) -> Executor:
        if not self._undivided:
            self._undivided.append(self._build(self.graph))  # if two threads append, the first wins
        return self._undivided[0]

    # Fetches

    def _unshared(self, values: list[TensorValue]) -> list[TensorValue]:
        """Return fetched values with copies of those that are derived values, or views of them.

        The caller of the session may write into what it has fetched.
        """
        for position in self.split.sharing_fetches:
            value = values[position]
            if isinstance(value, np.ndarray) and not value.flags.writeable:
                values[position] = value.copy()
        return values

    def _unsharing(self, done: Done) -> Done:
        def ended(values: list[TensorValue] | None, error: OpError | None) -> None:
            done(None if values is None else self._unshared(values), error)

        return ended

    # Derived values

    def _find_or_compute(self, step: Step) -> DerivedValues | None:
        """Return the values for the variables as they are; None if the step must run undivided."""
        if self._is_too_large or step.collector is not None:
            return None
        resources = step.session.resources
        newest = variable_changes.newest  # read first, so that a later change is seen next time
        state = self._read_variables(resources)
        if state is None:
            return None
        use = resources.derived.get(self._reference)
        derived = None if use is None else _if_same(use.values, state)
        is_own = use is not None and use.is_own
        if derived is None:
            derived, is_own = self._find_known(state), False
        if derived is None:
            derived = self._compute(step, state)
            if derived is None:
                return None
            is_own = not self._keep(derived, resources.template)
            _drop_evicted(resources)
        resources.derived[self._reference] = DerivedValuesUse(newest, derived, is_own)
        return derived

    def _read_variables(self, resources: ResourceManager) -> _VariableState | None:
        """Read the variables; return None if one has no value, or a value of another type."""
        arrays = []
        generations = []
        find, in_use = resources.find, resources.derived
        for container, kind, name, dtype in self.split.keys:
            variable = find(container, kind, name)
            if variable is None or not variable.is_initialized or variable.dtype is not dtype:
                return None
            variable.derived = in_use
            generations.append(variable.generation)
            try:
                arrays.append(variable.read())
            except OpError:  # the variable has just lost its value
                return None
        return _VariableState(tuple(arrays), tuple(generations))

    def _find_known(self, state: _VariableState) -> DerivedValues | None:
        """Return the values of another session whose variables have the same arrays, or None."""
        with self._lock:
            known = self._known.get(state.generations)
        return None if known is None else _if_same(known, state)

    def _compute(self, step: Step, state: _VariableState) -> DerivedValues | None:
        """Run the part; return None if it raises an error or its values need too much memory.

        Raises the error of the step if the step was cancelled.
        """
        began = time.perf_counter()
        try:
            values = self._part.run(step, state.arrays)
        except OpError:
            if step.cancellation.error:
                raise
            return None
        self.preparation_seconds = time.perf_counter() - began
        bytes_held = _protect(values, state.arrays)
        if bytes_held > max(self._max_bytes, LIMIT * sum(array.nbytes for array in state.arrays)):
            self._is_too_large = True
            return None
        derived = DerivedValues(tuple(values), state.arrays, state.generations, bytes_held)
        with self._lock:
            known = self._known.get(state.generations)
            same = None if known is None else _if_same(known, state)
            if same is None:
                self._known[state.generations] = same = derived
        return same

    def _keep(self, derived: DerivedValues, template: ResourceManager | None) -> bool:
        """Hold `derived` if it has the variables of `template`; return whether this is so."""
        if template is None:
            return False
        for (container, kind, name, _), array in zip(self.split.keys, derived.arrays, strict=True):
            variable = template.find(container, kind, name)
            if variable is None or variable.peek() is not array:
                return False
        self._of_template = derived
        return True


def _if_same(derived: DerivedValues, state: _VariableState) -> DerivedValues | None:
    """Return `derived` if it was computed from `state`, else None."""
    is_same = derived.generations == state.generations and all(
        map(_is, derived.arrays, state.arrays)
    )
    return derived if is_same else None


def _is(one: object, other: object) -> bool:
    return one is other


def _protect(values: Iterable[TensorValue], arrays: Sequence[np.ndarray]) -> int:
    """Make computed arrays read-only; return their bytes, without views of `arrays`."""
    of_variables = set(map(id, arrays))
    count = 0
    for value in values:
        if not isinstance(value, np.ndarray) or id(value) in of_variables:
            continue
        value.flags.writeable = False
        if value.base is None or id(value.base) not in of_variables:
            count += value.nbytes
    return count


def _drop_evicted(resources: ResourceManager) -> None:
    """Drop the values of steps that the executor cache has evicted since."""
    for reference in list(resources.derived):
        if isinstance(reference, weakref.ref) and reference() is None:
            resources.derived.pop(reference, None)
