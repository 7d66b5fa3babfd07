"""The executor of a step that runs on several devices: one dataflow executor for each partition.

Guarantees: every partition is started; partitions exchange values through the step's rendezvous;
the first error cancels the step, which ends every partition; the partition of the client device
returns the fetched values.

TF: tensorflow/core/common_runtime/direct_session.cc (RunInternal, ExecutorBarrier)
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from runtime.executors.dataflow import DataflowExecutor
from runtime.executors.step import AsynchronousExecutor, Done, Step
from runtime.foundation.errors import OpError
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.rendezvous import Rendezvous
from runtime.framework.tensor_value import TensorValue
from runtime.graph.passes.partition import Partition
from runtime.graph.passes.pruning import StepGraph


class PartitionedExecutor(AsynchronousExecutor):
    """Runs the partitions of a graph; the first partition belongs to the client device."""

    def __init__(self, partitions: Sequence[Partition], kernels: KernelRegistry) -> None:
        nodes = [node for part in partitions for node in part.graph.nodes]
        client = partitions[0].graph
        super().__init__(
            StepGraph(nodes, client.arguments, client.fetches, client.targets, client.retvals)
        )
        self.partitions = tuple(partitions)
        self._executors = [DataflowExecutor(part.graph, kernels) for part in partitions]

    def run_async(self, step: Step, arguments: Sequence[TensorValue], done: Done) -> None:
        """Start every partition in this thread.

        A partition that waits for a value continues on the step's pool; if the step has no pool, it
        continues in the thread that sends the value.
        """
        barrier = _Barrier(step, len(self._executors), done)
        for position, executor in enumerate(self._executors):
            given = arguments if position == 0 else ()
            executor.run_async(step, given, barrier.part(is_client=position == 0))


class _Barrier:
    """Calls `done` after all partitions have ended, with the fetched values or the first error."""

    def __init__(self, step: Step, count: int, done: Done) -> None:
        self._rendezvous = Rendezvous(step.cancellation)
        step.rendezvous = self._rendezvous
        self._step = step
        self._lock = threading.Lock()  # guards _left, _values and _error
        self._left = count
        self._values: list[TensorValue] | None = None
        self._error: OpError | None = None
        self._done = done

    def part(self, *, is_client: bool) -> Done:
        """Return the `done` callback of one partition; `is_client` if it has the fetched values."""

        def ended(values: list[TensorValue] | None, error: OpError | None) -> None:
            with self._lock:
                self._left -= 1
                is_last = self._left == 0
                if is_client:
                    self._values = values
                self._error = self._error or error
            if is_last:
                self._rendezvous.close()
                self._done(None if self._error else self._values, self._error)

        return ended
