"""The dataflow executor: runs each node when its inputs have arrived; supports v1 control flow.

It runs graphs with v1 control flow (frames, iterations, dead tensors), graphs with operations that
wait, such as queues, and wide graphs in which each branch is expensive enough for a thread of its
own. The kernel of an operation that waits returns a `Deferred` and blocks no thread.

Rules of dead tensors and frames (TF: tensorflow/core/common_runtime/propagator_state.cc):
* A node with a dead input is dead: its kernel does not run and all its outputs are dead. Only
  ControlTrigger runs anyway.
* Merge forwards its first live input. It is dead if all its inputs are dead, or if the input
  from the Enter node of a loop is dead.
* Enter opens a child frame for each iteration of the parent frame, NextIteration starts the next
  iteration of its frame, and Exit passes a value to the parent frame. A dead NextIteration
  starts no iteration. A dead Exit is passed on when the frame has finished.
* A loop invariant (an Enter whose `is_constant` is true) is an input of every iteration.

Guarantees: one lock guards all state of a run and is not held while kernels run; the first error
cancels the step and is reported; `done` is called once, after the last kernel has ended.
"""

from __future__ import annotations

import collections
import functools
import threading
from collections.abc import Sequence

import numpy as np

from runtime.executors.dataflow_graph import DataflowGraph, Item, evaluate_control_flow
from runtime.executors.frames import Frame, Iteration
from runtime.executors.item_memory import ItemMemory
from runtime.executors.step import AsynchronousExecutor, Done, EdgeValue, Step
from runtime.foundation.errors import (
    InternalError,
    InvalidArgumentError,
    OpError,
    as_op_error,
)
from runtime.foundation.float_errors import float_errors_ignored
from runtime.foundation.priority_gate import gate
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.op_kernel import DEAD, Deferred, KernelResult, OpKernelContext
from runtime.framework.tensor_value import TensorValue
from runtime.graph.passes.pruning import StepGraph

MISSING = object()


class DataflowExecutor(AsynchronousExecutor):
    """Runs the nodes of a graph in any order that its edges allow."""

    def __init__(self, graph: StepGraph, kernels: KernelRegistry) -> None:
        super().__init__(graph)
        self.items = DataflowGraph(graph, kernels)

    def run_async(self, step: Step, arguments: Sequence[TensorValue], done: Done) -> None:
        """Run nodes in this thread until none is ready.

        When a kernel's `Deferred` completes, the readers of the node run on the step's pool; if the
        step has no pool, they run in the thread that completed the `Deferred`.
        """
        DataflowRun(self.items, step, arguments, done).start()


class DataflowRun:
    """One run of a graph: its frames, the count of unfinished nodes and the fetched values."""

    def __init__(
        self, graph: DataflowGraph, step: Step, arguments: Sequence[TensorValue], done: Done
    ) -> None:
        self._graph = graph
        self._step = step
        self._arguments = arguments
        self._done = done
        self._lock = threading.Lock()  # guards everything below
        self._root = Frame("", None, None, 0)
        self._outstanding = 0  # number of items that are ready or running
        self._fetched: list[TensorValue] = [MISSING] * graph.fetch_count
        self._error: OpError | None = None
        self._memory: ItemMemory | None = None
        if step.memory is not None:
            graph.add_checks()
            self._memory = ItemMemory(step, graph.large)

    def start(self) -> None:
        """Run the nodes that have no inputs, then every node that becomes ready in this thread."""
        iteration = self._root.iterations[0]
        roots = self._graph.roots  # these include constants, which a trace must show
        if self._step.collector is None:
            initial = self._graph.initial_state
            iteration.begin(initial.inputs, initial.pending)
            roots = initial.ready
        ready = collections.deque((item, self._root, iteration, False) for item in roots)
        self._outstanding = len(ready)
        iteration.outstanding = len(ready)
        if not ready:
            self._finish()
            return
        self._process(ready)

    def _process(self, ready: collections.deque[tuple[Item, Frame, Iteration, bool]]) -> None:
        """Run the ready items, and the items that become ready because of them, in this thread."""
        with float_errors_ignored():
            while ready:
                item, frame, iteration, is_dead = ready.popleft()
                if len(ready) > 0 and item.is_expensive:
                    self._schedule_expensive(ready)
                outputs = self._execute(item, frame, iteration, is_dead)
                if outputs is not None:
                    ready.extend(self._complete(item, frame, iteration, outputs))

    def _schedule_expensive(
        self, ready: collections.deque[tuple[Item, Frame, Iteration, bool]]
    ) -> None:
        """Move each expensive item from `ready` to the pool, as a closure of its own."""
        runner = self._step.runner
        if runner is None:
            return
        kept: list[tuple[Item, Frame, Iteration, bool]] = []
        for entry in ready:
            if not entry[0].is_expensive:
                kept.append(entry)
                continue
            try:
                runner(functools.partial(self._process, collections.deque((entry,))))
            except OpError:  # the pool's queue is full: this thread runs the item
                kept.append(entry)
        ready.clear()
        ready.extend(kept)

    def _execute(
        self, item: Item, frame: Frame, iteration: Iteration, is_dead: bool
    ) -> list[TensorValue] | None:
        """Run one node and return its outputs, or None if its kernel has returned a `Deferred`."""
        if is_dead and item.is_send and self._error is None:
            # The receiving partition waits for this key, so DEAD is sent like a value.
            item.kernel(OpKernelContext(item.node, self._step), DEAD)  # type: ignore[misc]
        if is_dead or self._error is not None:
            return _dead_outputs(item)
        step = self._step
        if step.cancellation.error:
            self._fail(step.cancellation.copy_of_error())
            return _dead_outputs(item)
        if step.is_low_priority and gate.pending:
            gate.wait()
        started = 0 if step.collector is None else step.collector.now_nanos()
        try:
            result = self._call(item, iteration)
        except Exception as error:
            self._fail(as_op_error(error, item.node.name))
            return _dead_outputs(item)
        if isinstance(result, Deferred):
            result.when_done(
                lambda deferred: self._resume(item, frame, iteration, deferred, started)
            )
            return None
        outputs = self._outputs(item, result)
        if step.collector is not None:
            node = item.node
            step.collector.add(node.device, node.name, node.op, started, outputs)
        return outputs

    def _call(self, item: Item, iteration: Iteration) -> KernelResult:
        if item.error is not None:
            raise item.error.copy()
        if item.argument >= 0:
            return self._arguments[item.argument]
        if item.is_constant:
            return item.constant
        values: list[EdgeValue] = iteration.take_inputs(item)
        if item.is_merge:
            return _merge(item, values)
        if item.derefs:
            values = [
                value.read() if deref else value
                for value, deref in zip(values, item.derefs, strict=True)
            ]
        if item.kernel is None:
            return evaluate_control_flow(item, values)
        context = OpKernelContext(item.node, self._step) if item.needs_context else None
        if self._memory is not None and item.memory is not None:
            return self._memory.call(item.kernel, context, item, values)
        return item.kernel(*values) if context is None else item.kernel(context, *values)

    def _outputs(self, item: Item, result: KernelResult) -> list[TensorValue]:
        if item.kernel is None and not item.is_constant and item.argument < 0:
            return list(result)
        if item.node.info.has_single_output:
            return [result]
        return list(result or ())

    def _resume(
        self, item: Item, frame: Frame, iteration: Iteration, deferred: Deferred, started: int
    ) -> None:
        """Propagate the result of a completed `Deferred`; use the step's pool if there is one."""
        if deferred.error is not None:
            self._fail(deferred.error.with_node(item.node.name))

        def continue_run() -> None:
            if deferred.error is not None or not self._count_deferred(item, deferred):
                outputs = _dead_outputs(item)
            else:
                outputs = self._outputs(item, deferred.value)
                collector = self._step.collector
                if collector is not None:
                    node = item.node
                    collector.add(node.device, node.name, node.op, started, outputs)
            ready = collections.deque(self._complete(item, frame, iteration, outputs))
            self._process(ready)

        runner = self._step.runner
        if runner is None:
            continue_run()
            return
        try:
            runner(continue_run)
        except OpError:  # the pool's queue is full: without this call the step would never end
            continue_run()

    def _count_deferred(self, item: Item, deferred: Deferred) -> bool:
        """Count the outputs of a Deferred; fail and return False if there is no memory left."""
        if self._memory is not None:
            try:
                self._memory.add_outputs(item, None, deferred.value)
            except OpError as error:
                self._fail(error.with_node(item.node.name))
                return False
        return True

    def _fail(self, error: OpError) -> None:
        with self._lock:
            if self._error is not None:
                return
            self._error = error
        self._step.failure = self._step.failure or error
        # The cancellation ends the waits of the other kernels. Their errors come after `_error` is
        # set, so the step reports `error`.
        self._step.cancellation.cancel(error.copy())

    def _complete(
        self, item: Item, frame: Frame, iteration: Iteration, outputs: list[TensorValue] | None
    ) -> list[tuple[Item, Frame, Iteration, bool]]:
        """Pass a node's outputs to its readers and return the items that became ready."""
        is_last = False
        ready: list[tuple[Item, Frame, Iteration, bool]] = []
        with self._lock:
            if outputs is not None and self._error is None:
                for output, position in item.fetches:
                    if outputs[output] is DEAD:
                        continue
                    if self._fetched[position] is not MISSING:
                        self._error = InternalError(f"Retval[{position}] has already been set.")
                    self._fetched[position] = outputs[output]
                self._propagate(item, frame, iteration, outputs, ready)
            self._outstanding += len(ready) - 1
            iteration.outstanding -= 1
            if self._error is None and frame.parent is not None:
                before = len(ready)
                frame.clean_up(ready)
                self._outstanding += len(ready) - before
            is_last = self._outstanding == 0
        if is_last:
            self._finish()
        return ready

    def _propagate(
        self,
        item: Item,
        frame: Frame,
        iteration: Iteration,
        outputs: list[TensorValue],
        ready: list[tuple[Item, Frame, Iteration, bool]],
    ) -> None:
        if outputs:
            is_dead = outputs[0] is DEAD and all(value is DEAD for value in outputs)
        else:
            is_dead = iteration.was_dead(item)
        if item.is_enter:
            child = frame.child(item, iteration, self._graph)
            child.enter(item, outputs, is_dead, ready)
        elif item.is_exit:
            if is_dead:
                if iteration is frame.newest:
                    frame.dead_exits.append(item)
            elif frame.parent is not None and frame.parent_iteration is not None:
                frame.parent.activate(item, frame.parent_iteration, outputs, False, ready)
        elif item.is_next_iteration:
            if not is_dead:
                frame.next_iteration(item, iteration, outputs, ready)
        else:
            frame.activate(item, iteration, outputs, is_dead, ready)

    def _finish(self) -> None:
        if self._error is not None:
            self._done(None, self._error)
            return
        for position, value in enumerate(self._fetched):
            if value is MISSING:
                self._done(None, InvalidArgumentError(f"Retval[{position}] does not have value"))
                return
        try:
            values = [
                dereferenced(value, is_ref)
                for value, is_ref in zip(self._fetched, self._graph.fetch_is_ref, strict=True)
            ]
        except OpError as error:
            self._done(None, error)
            return
        self._done(values, None)


def _dead_outputs(item: Item) -> list[TensorValue]:
    return [DEAD] * len(item.node.output_types)


def dereferenced(value: EdgeValue, is_ref: bool) -> TensorValue:
    """Return `value`, or if it is a reference, the current value of its variable."""
    return value.read() if is_ref else value


def _merge(item: Item, values: Sequence[EdgeValue]) -> tuple[TensorValue, np.int32]:
    for index, value in enumerate(values):
        if value is not DEAD and value is not None:
            is_read = bool(item.derefs) and item.derefs[index]
            return value.read() if is_read else value, np.int32(index)
    raise InternalError("A Merge ran without a live input")
