"""The adaptive executor: uses a step plan until the dataflow executor is estimated to be faster.

The second run measures every node; the first run fills caches. If the slowest path through the
graph takes much less time than all nodes together, later steps on a pool with several threads use
the dataflow executor, which runs expensive branches in parallel. All other steps use the plan.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from runtime.executors.dataflow import DataflowExecutor
from runtime.executors.step import Done, Executor, Step
from runtime.executors.step_plan import StepPlan
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.tensor_value import TensorValue
from runtime.graph.node import Node
from runtime.graph.passes.pruning import StepGraph

_MEASURED_RUN = 2
_NODE_SECONDS = 15e-6  # time that the dataflow executor adds to each node
_MIN_GAIN = 0.25  # the dataflow executor must save at least this fraction of the plan's time
_MIN_SECONDS = 1e-3  # a shorter step gains nothing from a second thread


class AdaptiveExecutor(Executor):
    """Chooses between a step plan and the dataflow executor for each run."""

    may_block = False

    def __init__(self, plan: StepPlan, kernels: KernelRegistry) -> None:
        super().__init__(plan.graph)
        self.plan = plan
        self._kernels = kernels
        self._is_candidate = True  # false after the measured run
        self._runs = itertools.count(1)  # next() is atomic
        self._parallel: DataflowExecutor | None = None

    def run(self, step: Step, arguments: Sequence[TensorValue]) -> list[TensorValue]:
        """Run the step plan in this thread; its second run also measures the nodes."""
        if self._is_candidate and next(self._runs) == _MEASURED_RUN and step.collector is None:
            seconds: dict[Node, float] = {}
            values = self.plan.run_measured(step, arguments, seconds)
            self._decide(seconds)
            return values
        return self.plan.run(step, arguments)

    def run_async(self, step: Step, arguments: Sequence[TensorValue], done: Done) -> None:
        """Run on the step's pool if this is estimated to be faster, otherwise in this thread."""
        if self._parallel is not None and step.can_run_in_parallel:
            self._parallel.run_async(step, arguments, done)
        else:
            super().run_async(step, arguments, done)

    def _decide(self, seconds: dict[Node, float]) -> None:
        self._is_candidate = False
        total = sum(seconds.values())
        longest = _longest_path(self.graph, seconds)
        gain = total - longest - _NODE_SECONDS * len(seconds)
        if total >= _MIN_SECONDS and gain >= _MIN_GAIN * total:
            self._parallel = DataflowExecutor(self.graph, self._kernels)
            self.uses_threads = True


def _longest_path(graph: StepGraph, seconds: dict[Node, float]) -> float:
    """Return the seconds of the slowest path; a node that was not measured counts as 0."""
    ends: dict[Node, float] = {}
    pending = [*graph.nodes]
    while pending:
        node = pending[-1]
        if node in ends:
            pending.pop()
            continue
        sources = [source for source, _ in node.inputs] + node.control_inputs
        missing = [source for source in sources if source not in ends]
        if missing:
            pending += missing
            continue
        begin = max((ends[source] for source in sources), default=0.0)
        ends[node] = begin + seconds.get(node, 0.0)
        pending.pop()
    return max(ends.values(), default=0.0)
