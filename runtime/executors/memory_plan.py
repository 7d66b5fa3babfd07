"""MemoryPlan, the memory checks of a program, and RunWatch, which makes them in an interpreted run.

Generated code makes the same checks in line; see `counted_plan_text.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.executors.instructions import Instruction, Program, identity
from runtime.executors.memory_checks import MemoryCheck, large_bytes, memory_checks
from runtime.executors.memory_watch import MemoryWatch, checked_need, note_kept
from runtime.executors.step import EdgeValue, Step
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.op_kernel import OpKernelContext
from runtime.framework.tensor_value import TensorValue
from runtime.graph.passes.pruning import StepGraph


class MemoryPlan:
    """The checks of a program, and the size above which its values are large."""

    def __init__(self, graph: StepGraph, kernels: KernelRegistry, program: Program) -> None:
        self.large = large_bytes(_width(program))
        self._by_node = memory_checks(graph, kernels, self.large, in_order=True)

    def check_of(self, instruction: Instruction) -> MemoryCheck | None:
        """Return the check of an instruction; None if it only passes a value on."""
        if instruction.kernel is identity:
            return None
        return self._by_node.get(instruction.node)


def _width(program: Program) -> int:
    """Return the largest number of values that exist at one time."""
    live = widest = program.argument_count
    for instruction in program.instructions:
        live += sum(slot >= 0 for slot in instruction.outputs)
        widest = max(widest, live)
        live -= len(instruction.dropped)
    return widest


class RunWatch:
    """Checks every node of a run whose program is interpreted."""

    def __init__(self, plan: MemoryPlan, step: Step) -> None:
        """`step` must have an account."""
        assert step.memory is not None
        self._plan = plan
        self._step = step
        self._watch = MemoryWatch(step.memory, plan.large)

    def begin(self, instruction: Instruction, inputs: Sequence[EdgeValue]) -> None:
        """Check a node before it is called; raises ResourceExhaustedError."""
        check = self._plan.check_of(instruction)
        context = OpKernelContext(instruction.node, self._step)
        need = checked_need(check, context, inputs)
        self._watch.begin_node(instruction.node.name, need, inputs)

    def end(
        self, instruction: Instruction, inputs: Sequence[EdgeValue], outputs: Sequence[TensorValue]
    ) -> None:
        """Count what a node has made, and what it may have kept."""
        check = self._plan.check_of(instruction)
        if check is None:
            return
        if check.makes:
            self._watch.end_node(outputs)
        if check.keeps:
            note_kept(self._step, self._plan.large, inputs)

    def close(self) -> None:
        """Give back what is set aside for a kernel that has raised."""
        self._watch.end()
