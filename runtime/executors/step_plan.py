"""The step plan: a pruned graph as straight-line Python.

A graph without v1 control flow and without operations that wait becomes a list of instructions in
topological order. The first runs, and traced ones, go through the list; a plan that is run again
is generated as one Python function with kernels and constants bound to its globals:

    def plan(arguments, step):
        v0, v1, = arguments
        stop = step.cancellation.error
        v2 = k2(v0, c1)
        if stop: check(step)
        v3 = k3(context(n3, step), v2)
        del v2
        try: v3 += c2
        except ValueError: v3 = k4(v3, c2)
        return [v3,]

The text is made of our own numbers only; names, attributes and values of the graph are bound as
objects and never become text.

Guarantees: re-entrant, no value lives in a plan between runs; a value is dropped after its last
reader; cancellation is looked at before every node; the generated form works in place only on
memory that a kernel of the same run made (`KernelDef.fresh`) and that has no other reader, so never
on a feed, a constant, a variable or a fetched value.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from runtime.executors.step import Executor, Step, as_op_error
from runtime.executors.step_stats import now_nanos
from runtime.foundation.errors import InvalidArgumentError, OpError
from runtime.foundation.priority_gate import gate
from runtime.framework.dtypes import DataType
from runtime.framework.kernel_registry import KernelRegistry, bind, bind_in_place
from runtime.framework.op_kernel import Deferred, OpKernelContext
from runtime.graph.node import Endpoint, Node
from runtime.graph.pruning import StepGraph
from runtime.graph.topology import topological_order

GENERATE_AT_RUN = 2  # a plan that runs once (restore, init) is not worth generating
_MAX_GENERATED = 20_000  # instructions; the compiler's time and memory grow with the text
# The interpreter lets other threads run at calls and loops only; `v += w` is neither. So plans call
# something now and then, and low-priority ones call their kernels for every node.
_NODES_A_CALL = 16
# Ops whose only output is their first input: no call at all.
ALIAS_OPS = frozenset(("Identity", "StopGradient", "PreventGradient", "_Retval", "IdentityN"))
_plan_numbers = itertools.count()


@dataclasses.dataclass(slots=True)
class Instruction:
    """One node to run: `outputs[i]` is the slot of output i, −1 when nobody reads it.

    An input is (slot, whether to read the value out of a `Variable`).
    """

    node: Node
    kernel: Callable[..., Any]
    needs_context: bool
    is_expensive: bool
    inputs: list[tuple[int, bool]]
    outputs: list[int]
    has_single_output: bool
    fresh: bool = False
    in_place: Callable[..., Any] | str | None = None
    dropped: list[int] = dataclasses.field(default_factory=list)


class StepPlan(Executor):
    """Runs a graph node after node, in one thread."""

    may_block = False

    def __init__(self, graph: StepGraph, kernels: KernelRegistry) -> None:
        super().__init__(graph)
        builder = _Builder(graph, kernels)
        self._instructions = builder.instructions
        self._constants = builder.constants
        self._slot_count = builder.slot_count
        self._argument_slots = builder.argument_slots
        self._fetch_slots = builder.fetch_slots
        self._runs = itertools.count(1)  # next() is atomic
        self._generated: dict[bool, Callable[..., list[Any]]] = {}
        self._filename = f"<step plan {next(_plan_numbers)}>"
        # Line of the generated text → the node that it runs.
        self._lines: dict[int, Node] = {}

    @property
    def node_count(self) -> int:
        """Nodes that a run executes; constants and aliases cost nothing."""
        return len(self._instructions)

    @property
    def expensive_count(self) -> int:
        """Nodes whose kernels are worth a thread of their own."""
        return sum(instruction.is_expensive for instruction in self._instructions)

    def run(self, step: Step, arguments: Sequence[Any]) -> list[Any]:
        """Run all instructions in order."""
        if step.collector is None:
            function = self._generated.get(step.is_low_priority)
            if function is not None:
                return self._run_generated(function, step, arguments)
            if next(self._runs) >= GENERATE_AT_RUN and len(self._instructions) <= _MAX_GENERATED:
                function = self._generated[step.is_low_priority] = self._generate(
                    step.is_low_priority
                )
                return self._run_generated(function, step, arguments)
        return self._interpret(step, arguments)

    def run_measured(
        self, step: Step, arguments: Sequence[Any], seconds: dict[Node, float]
    ) -> list[Any]:
        """Run, and note how long each node took."""
        return self._interpret(step, arguments, seconds)

    def _interpret(
        self, step: Step, arguments: Sequence[Any], seconds: dict[Node, float] | None = None
    ) -> list[Any]:
        slots: list[Any] = [None] * self._slot_count
        for slot, value in self._constants:
            slots[slot] = value
        for slot, value in zip(self._argument_slots, arguments, strict=True):
            slots[slot] = value
        with np.errstate(all="ignore"):
            for instruction in self._instructions:
                if step.cancellation.error:
                    step.cancellation.check()
                if step.is_low_priority and gate.pending:
                    gate.wait()
                started = time.perf_counter() if seconds is not None else 0.0
                try:
                    _execute(instruction, slots, step)
                except OpError as error:
                    error.with_node(instruction.node.name)
                    raise
                except Exception as error:
                    raise as_op_error(error, instruction.node.name) from error
                if seconds is not None:
                    seconds[instruction.node] = time.perf_counter() - started
        return [slots[slot] for slot in self._fetch_slots]

    def _run_generated(
        self, function: Callable[..., list[Any]], step: Step, arguments: Sequence[Any]
    ) -> list[Any]:
        try:
            with np.errstate(all="ignore"):
                return function(arguments, step)
        except Exception as error:
            node = self._failed_node(error)
            if node is None:  # the cancellation check: no node's fault
                raise
            if isinstance(error, OpError):
                error.with_node(node.name)
                raise
            raise as_op_error(error, node.name) from error

    def _failed_node(self, error: BaseException) -> Node | None:
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._filename:
                return self._lines.get(trace.tb_lineno)
            trace = trace.tb_next
        return None

    def _generate(self, is_low_priority: bool) -> Callable[..., list[Any]]:
        text, namespace, lines = _Generator(self, is_low_priority).generate()
        code: CodeType = compile(text, self._filename, "exec")
        exec(code, namespace)
        self._lines = lines
        function: Callable[..., list[Any]] = namespace["plan"]
        return function


def _execute(instruction: Instruction, slots: list[Any], step: Step) -> None:
    started = now_nanos() if step.collector is not None else 0
    values = [slots[slot].read() if deref else slots[slot] for slot, deref in instruction.inputs]
    if instruction.needs_context:
        result = instruction.kernel(OpKernelContext(instruction.node, step), *values)
    else:
        result = instruction.kernel(*values)
    if isinstance(result, Deferred):
        result = result.wait()
    outputs = (result,) if instruction.has_single_output else (result or ())
    for slot, value in zip(instruction.outputs, outputs, strict=True):
        if slot >= 0:
            slots[slot] = value
    for slot in instruction.dropped:
        slots[slot] = None
    if step.collector is not None:
        node = instruction.node
        step.collector.add(node.device, node.name, node.op, started, now_nanos(), outputs)


class _Builder:
    """Orders the nodes and gives every value a slot."""

    def __init__(self, graph: StepGraph, kernels: KernelRegistry) -> None:
        self._kernels = kernels
        self.slot_count = 0
        self.constants: list[tuple[int, Any]] = []
        self.instructions: list[Instruction] = []
        self._slots: dict[Endpoint, int] = {}
        self._refs: set[int] = set()  # slots that hold a Variable
        self.argument_slots = [
            self._new_slot((node, 0)) if node is not None else self._new_slot(None)
            for node in graph.arguments
        ]
        self._read = {endpoint for node in graph.nodes for endpoint in node.inputs} | set(
            graph.fetches
        )
        for node in topological_order(graph.nodes):
            self._place(node)
        self.fetch_slots = [self._fetch(endpoint) for endpoint in graph.fetches]
        self._drop_after_last_use()
        self._find_work_in_place()

    def _new_slot(self, endpoint: Endpoint | None) -> int:
        slot = self.slot_count
        self.slot_count += 1
        if endpoint is not None:
            self._slots[endpoint] = slot
        return slot

    def _place(self, node: Node) -> None:
        if node.op == "NoOp" or (node, 0) in self._slots:  # an argument
            return
        check_complete(node)
        if node.op == "Const":
            if (node, 0) in self._read:
                self.constants.append((self._new_slot((node, 0)), constant_value(node)))
            return
        if node.op in ALIAS_OPS and not any(
            self._slots[source] in self._refs for source in node.inputs
        ):
            for index, source in enumerate(node.inputs):
                self._slots[(node, index)] = self._slots[source]
            return
        kernel = self._kernels.find(node)
        self.instructions.append(
            Instruction(
                node,
                bind(kernel, node),
                kernel.needs_context,
                kernel.expensive,
                [self._input(node, position) for position in range(len(node.inputs))],
                [self._output(node, index) for index in range(len(node.output_types))],
                node.info.has_single_output,
                kernel.fresh,
                bind_in_place(kernel, node),
            )
        )

    def _input(self, node: Node, position: int) -> tuple[int, bool]:
        slot = self._slots[node.inputs[position]]
        return slot, slot in self._refs and not node.input_is_ref[position]

    def _output(self, node: Node, index: int) -> int:
        if (node, index) not in self._read:
            return -1
        slot = self._new_slot((node, index))
        if node.output_is_ref[index]:
            self._refs.add(slot)
        return slot

    def _fetch(self, endpoint: Endpoint) -> int:
        """The slot to return; a fetched ref is read by an instruction of its own at the end."""
        slot = self._slots[endpoint]
        if slot not in self._refs:
            return slot
        node = endpoint[0]
        copy = self._new_slot(None)
        self.instructions.append(
            Instruction(node, _pass_on, False, False, [(slot, True)], [copy], True)
        )
        return copy

    def _drop_after_last_use(self) -> None:
        keep = set(self.fetch_slots) | {slot for slot, _ in self.constants}
        seen = set(keep)
        for instruction in reversed(self.instructions):
            touched = {slot for slot, _ in instruction.inputs}
            last = touched - seen
            seen |= touched | {slot for slot in instruction.outputs if slot >= 0}
            instruction.dropped = sorted(last)

    def _find_work_in_place(self) -> None:
        """Leave `in_place` only to instructions whose first input is theirs to overwrite."""
        fresh: set[int] = set()
        for instruction in self.instructions:
            slots = [slot for slot, _ in instruction.inputs]
            if not (
                instruction.in_place is not None
                and slots[0] in fresh
                and slots[0] in instruction.dropped
                and slots.count(slots[0]) == 1
                and instruction.outputs[0] >= 0
                and _type_of(instruction.node.inputs[0]) is instruction.node.output_types[0]
            ):
                instruction.in_place = None
            if instruction.fresh and instruction.outputs[0] >= 0:
                fresh.add(instruction.outputs[0])


def _type_of(endpoint: Endpoint) -> DataType:
    node, index = endpoint
    return node.output_types[index]


def _pass_on(value: Any) -> Any:
    return value


class _Generator:
    """Writes the Python text of a plan."""

    def __init__(self, plan: StepPlan, is_low_priority: bool) -> None:
        self._plan = plan
        self._gated = is_low_priority
        self._constants = {slot for slot, _ in plan._constants}
        self._namespace: dict[str, Any] = {f"v{slot}": value for slot, value in plan._constants}
        self._namespace |= {"context": OpKernelContext, "gate": gate, "check": _check}
        self._text: list[str] = ["def plan(arguments, step):"]
        self._reused: dict[int, str] = {}  # slot that was computed in place → the variable's name
        self._lines: dict[int, Node] = {}

    def generate(self) -> tuple[str, dict[str, Any], dict[int, Node]]:
        plan = self._plan
        if plan._argument_slots:
            names = "".join(f"{self._name(slot)}, " for slot in plan._argument_slots)
            self._text.append(f" {names}= arguments")
        self._text.append(" stop = step.cancellation.error")
        for number, instruction in enumerate(plan._instructions):
            self._write(number, instruction)
        fetched = "".join(f"{self._name(slot)}, " for slot in plan._fetch_slots)
        self._text.append(f" return [{fetched}]")
        return "\n".join(self._text) + "\n", self._namespace, self._lines

    def _write(self, number: int, instruction: Instruction) -> None:
        node = instruction.node
        self._namespace[f"k{number}"] = instruction.kernel
        if number % _NODES_A_CALL:
            self._text.append(" if stop: check(step)")
        else:
            self._text.append(" check(step)")
        if self._gated:
            self._text.append(" if gate.pending: gate.wait()")
        values = [
            f"{self._name(slot)}.read()" if deref else self._name(slot)
            for slot, deref in instruction.inputs
        ]
        if instruction.needs_context:
            self._namespace[f"n{number}"] = node
            values.insert(0, f"context(n{number}, step)")
        call = f"k{number}({', '.join(values)})"
        used = [(i, slot) for i, slot in enumerate(instruction.outputs) if slot >= 0]
        if isinstance(instruction.in_place, str) and not self._gated:
            self._write_assignment(number, instruction, instruction.in_place, *values)
            return
        if callable(instruction.in_place):
            self._namespace[f"k{number}"] = instruction.in_place
        if not used:
            self._line(call, node)
        elif instruction.has_single_output:
            self._line(f"{self._name(used[0][1])} = {call}", node)
        else:
            self._line(f"result = {call}", node)
            for index, slot in used:
                self._line(f"{self._name(slot)} = result[{index}]", node)
            self._line("del result", node)
        self._drop(instruction.dropped)

    def _write_assignment(
        self, number: int, instruction: Instruction, operator: str, value: str, other: str
    ) -> None:
        """`v += w`: half the time of a ufunc's call on small arrays, no new memory for big ones.

        Shapes that do not fit a work in place raise ValueError; the kernel knows what to do.
        """
        self._line(f"try: {value} {operator} {other}", instruction.node)
        self._line(f"except ValueError: {value} = k{number}({value}, {other})", instruction.node)
        self._reused[instruction.outputs[0]] = value
        first = instruction.inputs[0][0]
        self._drop([slot for slot in instruction.dropped if slot != first])

    def _drop(self, slots: Sequence[int]) -> None:
        if slots:
            self._text.append(f" del {', '.join(self._name(slot) for slot in slots)}")

    def _name(self, slot: int) -> str:
        return self._reused.get(slot) or f"v{slot}"

    def _line(self, text: str, node: Node) -> None:
        self._text.append(f" {text}")
        self._lines[len(self._text)] = node


def _check(step: Step) -> None:
    step.cancellation.check()


def constant_value(node: Node) -> Any:
    """The value of a Const node, read-only: plans and steps share it."""
    value = node.attr("value")
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
        if value.dtype != node.output_types[0].numpy:
            raise InvalidArgumentError(
                f"Const has dtype {node.output_types[0].tf_name}, its value {value.dtype}",
                node.name,
            )
    return value


def check_complete(node: Node) -> None:
    """Refuse a node whose inputs were never all given."""
    if node.missing_inputs:
        raise InvalidArgumentError(
            f"Incomplete graph, missing {node.missing_inputs} inputs for {node.name}", node.name
        )
