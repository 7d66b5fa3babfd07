"""The step plan: runs the nodes of a pruned graph one after the other, in one thread.

A graph without v1 control flow and without ops that block becomes a list of instructions in
topological order (a Program). The first run and traced runs interpret the list. From the second run
on, Python functions with kernels and constants bound to them are generated (`plan_text.py`).

Guarantees: re-entrant, because a plan holds no value between runs; a value is dropped after its
last reader; cancellation is checked before every node. Only generated functions write results into
the memory of inputs.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Collection, Sequence

import numpy as np

from runtime.executors.counted_plan_text import generate_counted
from runtime.executors.expressions.expression import Expression, is_available
from runtime.executors.expressions.groups import find_groups
from runtime.executors.instructions import Instruction, assemble
from runtime.executors.memory_plan import MemoryPlan, RunWatch
from runtime.executors.plan_bytes import MAX_GENERATED
from runtime.executors.plan_text import GeneratedPlan, Groups, generate
from runtime.executors.step import EdgeValue, Executor, Step
from runtime.foundation.errors import OpError, as_op_error
from runtime.foundation.float_errors import are_ignored, float_errors_ignored
from runtime.foundation.model_objects import model_objects
from runtime.foundation.priority_gate import gate
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.op_kernel import OpKernelContext
from runtime.framework.tensor_value import TensorValue
from runtime.graph.node import Node
from runtime.graph.passes.pruning import StepGraph

GENERATE_AT_RUN = 2  # code for a plan that runs once (restore, init) is not worth its time


class StepPlan(Executor):
    """Runs the nodes of a graph one after the other, in one thread."""

    may_block = False

    def __init__(
        self,
        graph: StepGraph,
        kernels: KernelRegistry,
        own_error_state: Collection[str] = (),
    ) -> None:
        """`own_error_state` are ops whose kernels enter numpy's error state themselves."""
        super().__init__(graph)
        self._program = assemble(graph, kernels)
        self._runs = itertools.count(1)  # next() is atomic
        # Entering numpy's error state takes 1 µs.
        self._enters_error_state = any(
            instruction.node.op not in own_error_state for instruction in self._program.instructions
        )
        # Keys: whether the step is low-priority, and whether its memory is counted.
        self._generated: dict[tuple[bool, bool], GeneratedPlan] = {}
        self._groups: Groups | None = None  # found when the first code is generated
        self._groups_lock = threading.Lock()  # guards that `_groups` is set once
        self._kernels = kernels
        self._memory_plan: MemoryPlan | None = None  # made for the first step that is counted
        # Of a run of generated code, beside the arguments; the last one is for a MemoryWatch.
        self._other_slots = (None,) * (self._program.slot_count - self._program.argument_count + 1)
        fetched = set(self._program.fetch_slots)
        self._fetched_constants = [each for each in self._program.constants if each[0] in fetched]

    @property
    def node_count(self) -> int:
        """The number of nodes that a run executes; constants and aliases need no instruction."""
        return len(self._program.instructions)

    @property
    def expensive_count(self) -> int:
        """The number of nodes whose kernels are expensive enough for a thread of their own."""
        return sum(instruction.is_expensive for instruction in self._program.instructions)

    def run(self, step: Step, arguments: Sequence[TensorValue]) -> list[TensorValue]:
        """Run all instructions in order."""
        if step.collector is None:
            key = step.is_low_priority, step.memory is not None
            generated = self._generated.get(key)
            if generated is not None:
                return self._run_generated(generated, step, arguments)
            if next(self._runs) < GENERATE_AT_RUN:
                with model_objects:  # the first runs make what the model keeps
                    return self._interpret(step, arguments)
            if self.node_count <= MAX_GENERATED:
                generated = self._generated[key] = self._generate(step)
                return self._run_generated(generated, step, arguments)
        return self._interpret(step, arguments)

    def _generate(self, step: Step) -> GeneratedPlan:
        with model_objects:
            groups = self._found_groups()
            low = step.is_low_priority
            if step.memory is None:
                return generate(self._program, low, groups)
            return generate_counted(self._program, self._with_checks(), low, groups)

    def _found_groups(self) -> Groups:
        """Return the same groups to all threads, because an expression learns by its runs."""
        if self._groups is None:
            found = find_groups(self._program) if is_available() else ()
            groups = {each.begin: (each, Expression(each)) for each in found}
            with self._groups_lock:  # not held longer, so a low-priority thread delays no other
                if self._groups is None:
                    self._groups = groups
        return self._groups

    def _with_checks(self) -> MemoryPlan:
        plan = self._memory_plan
        if plan is None:
            plan = self._memory_plan = MemoryPlan(self.graph, self._kernels, self._program)
        return plan

    def run_measured(
        self, step: Step, arguments: Sequence[TensorValue], seconds: dict[Node, float]
    ) -> list[TensorValue]:
        """Run all instructions and store the seconds that each node took in `seconds`."""
        return self._interpret(step, arguments, seconds)

    def _interpret(
        self, step: Step, arguments: Sequence[TensorValue], seconds: dict[Node, float] | None = None
    ) -> list[TensorValue]:
        program = self._program
        slots: list[TensorValue] = [*arguments, *[None] * (program.slot_count - len(arguments))]
        for slot, value in program.constants:
            slots[slot] = value
        watch = None if step.memory is None else RunWatch(self._with_checks(), step)
        try:
            self._interpret_all(step, slots, watch, seconds)
        finally:
            if watch is not None:
                watch.close()
        return [slots[slot] for slot in program.fetch_slots]

    def _interpret_all(
        self,
        step: Step,
        slots: list[EdgeValue],
        watch: RunWatch | None,
        seconds: dict[Node, float] | None,
    ) -> None:
        with float_errors_ignored():
            for instruction in self._program.instructions:
                if step.cancellation.error:
                    step.cancellation.check()
                if step.is_low_priority and gate.pending:
                    gate.wait()
                started = time.perf_counter() if seconds is not None else 0.0
                try:
                    _execute(instruction, slots, step, watch)
                except OpError as error:
                    error.with_node(instruction.node.name)
                    raise
                except Exception as error:
                    raise as_op_error(error, instruction.node.name) from error
                if seconds is not None:
                    seconds[instruction.node] = time.perf_counter() - started

    def _run_generated(
        self, generated: GeneratedPlan, step: Step, arguments: Sequence[TensorValue]
    ) -> list[TensorValue]:
        slots: list[EdgeValue] = [*arguments, *self._other_slots]
        for slot, value in self._fetched_constants:
            slots[slot] = value
        try:
            # As `float_errors_ignored`, without its call.
            if self._enters_error_state and not are_ignored.get():
                with np.errstate(all="ignore"):
                    for part in generated.parts:
                        part(slots, step)
            else:
                for part in generated.parts:
                    part(slots, step)
        except Exception as error:
            if slots[-1] is not None:
                slots[-1].end()
            node = generated.failed_node(error)
            if node is None:  # raised by the cancellation check
                raise
            if isinstance(error, OpError):
                error.with_node(node.name)
                raise
            raise as_op_error(error, node.name) from error
        return list(map(slots.__getitem__, self._program.fetch_slots))


def _execute(
    instruction: Instruction, slots: list[EdgeValue], step: Step, watch: RunWatch | None
) -> None:
    started = 0 if step.collector is None else step.collector.now_nanos()
    values = [slots[slot].read() if deref else slots[slot] for slot, deref in instruction.inputs]
    if watch is not None:
        watch.begin(instruction, values)
    if instruction.needs_context:
        result = instruction.kernel(OpKernelContext(instruction.node, step), *values)
    else:
        result = instruction.kernel(*values)
    outputs = (result,) if instruction.has_single_output else (result or ())
    for slot, value in zip(instruction.outputs, outputs, strict=True):
        if slot >= 0:
            slots[slot] = value
    if watch is not None:
        watch.end(instruction, values, outputs)
    for slot in instruction.dropped:
        slots[slot] = None
    if step.collector is not None:
        node = instruction.node
        step.collector.add(node.device, node.name, node.op, started, outputs)
