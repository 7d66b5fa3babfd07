"""Generates the Python code of a step plan.

The code of a Program consists of parts, which are functions without loops:

    def part0(s, step):
        stop = step.cancellation.error
        v0 = s[0]
        if stop: check(step)
        v2 = k2(v0, c1)
        if stop: check(step)
        v3 = k3(context(n3, step), v2)
        del v2
        try: v3 += c2
        except ValueError: v3 = k4(v3, c2)
        s[3] = v3

A group of small operations (`expressions/groups.py`) has two ways; the shapes and strides of its
inputs decide:

        g5 = (v3.shape, v3.strides)
        if stop or g5 not in o5.known:
         …                          # its instructions, one by one
         if o5.learns: o5.learn(g5, v9)
        else:
         v9 = o5(v3)

`v0` is the value of slot 0 (`instructions.py` explains slots), `k2` the kernel of instruction 2,
`n3` the node of instruction 3 and `c1` a constant. The list `s` holds the values that pass from one
part to another. Parts are compiled one by one, because Python's compiler takes 45 µs for each node
and blocks all other threads in that time.

The code contains generated numbers only. Names, attributes and values of the graph are bound as
objects and never become code, so a graph can't inject any.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from runtime.executors.expressions.expression import Expression
from runtime.executors.expressions.groups import Group
from runtime.executors.instructions import Instruction, Program
from runtime.executors.step import Step
from runtime.foundation.gradual_freeing import free_gradually
from runtime.foundation.priority_gate import gate
from runtime.framework.op_kernel import OpKernelContext
from runtime.framework.tensor_value import TensorValue
from runtime.graph.node import Node

NODES_A_PART = 100  # number of instructions in a part; Python compiles them in 5 ms
# The interpreter switches threads only at calls and loop ends, and `v += w` is neither. So a plan
# calls `check` every _NODES_A_CALL nodes, and a low-priority plan has no such assignments.
_NODES_A_CALL = 16
_plan_numbers = itertools.count()


@dataclasses.dataclass(frozen=True, slots=True)
class GeneratedPlan:
    """A program as Python functions, which must be called in order."""

    parts: tuple[Callable[[list[TensorValue], Step], None], ...]
    nodes: dict[tuple[str, int], Node]  # (file name, line) of the code → node that it runs

    def __del__(self) -> None:
        # The functions have one namespace. None is running, because a run holds its plan.
        namespace = self.parts[0].__globals__ if self.parts else {}
        owned = [*self.nodes, *self.nodes.values(), *self.parts, *namespace, *namespace.values()]
        namespace.clear()
        object.__setattr__(self, "nodes", {})
        object.__setattr__(self, "parts", ())
        free_gradually(owned)

    def failed_node(self, error: BaseException) -> Node | None:
        """Return the node whose line raised the error, or None if the cancellation check did."""
        trace = error.__traceback__
        while trace is not None:
            where = trace.tb_frame.f_code.co_filename, trace.tb_lineno
            if where in self.nodes:
                return self.nodes[where]
            trace = trace.tb_next
        return None


def generate(program: Program, is_low_priority: bool, groups: Groups) -> GeneratedPlan:
    """Write and compile the code of a program, with the expressions of its groups.

    If `is_low_priority` is true, the code waits at the priority gate before every node.
    """
    return generate_with(program, is_low_priority, PartWriter, {}, groups)


def generate_with(
    program: Program,
    is_low_priority: bool,
    make_writer: MakeWriter,
    bound: Mapping[str, object],
    groups: Groups,
) -> GeneratedPlan:
    """Write and compile the code of a program by the writers that `make_writer` returns.

    `bound` are further objects by the names that the code has for them.
    """
    name = f"step plan {next(_plan_numbers)}"
    namespace: dict[str, Any] = {f"v{slot}": value for slot, value in program.constants}
    namespace |= {"context": OpKernelContext, "gate": gate, "check": _check, **bound}
    nodes: dict[tuple[str, int], Node] = {}
    parts = []
    writers = _writers(program, is_low_priority, namespace, make_writer, groups)
    for number, writer in enumerate(writers):
        filename = f"<{name} part {number}>"
        exec(compile(writer.text(), filename, "exec"), namespace)
        parts.append(namespace.pop("part"))
        nodes |= {(filename, line): node for line, node in writer.lines.items()}
    return GeneratedPlan(tuple(parts), nodes)


def _writers(
    program: Program,
    is_low_priority: bool,
    namespace: dict[str, object],
    make_writer: MakeWriter,
    groups: Groups,
) -> Iterator[PartWriter]:
    """Yield one finished writer for each part, in order."""
    names = Names()
    constants = {slot for slot, _ in program.constants}
    parts = _parts(len(program.instructions), groups)
    for part, later in zip(parts, _read_later(program, parts), strict=True):
        writer = make_writer(is_low_priority, namespace, names, constants, groups)
        writer.write(part.start, program.instructions[part.start : part.stop], later)
        yield writer


def _parts(count: int, groups: Groups) -> list[range]:
    """Return the numbers of the instructions of each part, which divides no group."""
    parts: list[range] = []
    begin = number = 0
    while number < count:
        number = groups[number][0].end if number in groups else number + 1
        if number - begin >= NODES_A_PART or number == count:
            parts.append(range(begin, number))
            begin = number
    return parts


def _read_later(program: Program, parts: Sequence[range]) -> list[set[int]]:
    """Return for each part those of its slots that are fetched or that later parts read.

    All such slots, for each part, would be quadratic in the nodes.
    """
    instructions = program.instructions
    last_readers: dict[int, int] = {}  # slot → number of the last part that reads it
    for index, part in enumerate(parts):
        for number in part:
            last_readers.update((slot, index) for slot, _ in instructions[number].inputs)
    last_readers.update((slot, len(parts)) for slot in program.fetch_slots)
    return [
        {
            slot
            for number in part
            for slot in _slots(instructions[number])
            if last_readers.get(slot, -1) > index
        }
        for index, part in enumerate(parts)
    ]


def _slots(instruction: Instruction) -> list[int]:
    return [*instruction.outputs, *(slot for slot, _ in instruction.inputs)]


class Names:
    """The variable name of each slot: `v<slot>`, or the input's name if it is overwritten."""

    def __init__(self) -> None:
        self._reused: dict[int, str] = {}

    def of(self, slot: int) -> str:
        """Return the name of the variable that holds the value of a slot."""
        return self._reused.get(slot) or f"v{slot}"

    def reuse(self, slot: int, name: str) -> None:
        """Let the variable `name` hold the value of a slot."""
        self._reused[slot] = name


class PartWriter:
    """Writes the code of one part of a plan."""

    first_line = " stop = step.cancellation.error"

    def __init__(
        self,
        is_low_priority: bool,
        namespace: dict[str, object],
        names: Names,
        constants: set[int],
        groups: Groups,
    ) -> None:
        self.is_gated = is_low_priority
        self.namespace = namespace
        self.names = names
        self._constants = constants
        self.text_lines: list[str] = ["def part(s, step):", self.first_line]
        self.lines: dict[int, Node] = {}
        self._groups = groups

    def text(self) -> str:
        """Return the code that has been written so far."""
        return "\n".join(self.text_lines) + "\n"

    def write(self, begin: int, part: Sequence[Instruction], later: set[int]) -> None:
        """Write the instructions of `part`, whose numbers start at `begin`.

        `later` holds those of its slots that are fetched or that later parts read.
        """
        here: set[int] = set()
        number = begin
        while number < begin + len(part):
            group, expression = self._groups.get(number, (None, None))
            end = number + 1 if group is None else group.end
            instructions = part[number - begin : end - begin]
            inputs = {slot for each in instructions for slot, _ in each.inputs}
            made = {slot for each in instructions for slot in each.outputs if slot >= 0}
            self._load(inputs - made - here - self._constants, later)
            if group is None or expression is None:
                self._write(number, part[number - begin])
            else:
                self._write_group(group, expression, instructions)
            here |= inputs | made
            number = end
        self.write_end()
        made = {slot for each in part for slot in each.outputs if slot >= 0}
        for slot in sorted(made & later):
            self.text_lines.append(f" s[{slot}] = {self.names.of(slot)}")

    def _load(self, slots: set[int], later: set[int]) -> None:
        for slot in sorted(slots):
            self.text_lines.append(f" {self.names.of(slot)} = s[{slot}]")
            if slot not in later:  # otherwise the list would keep the value alive
                self.text_lines.append(f" s[{slot}] = None")

    def _write_group(
        self, group: Group, expression: Expression, instructions: Sequence[Instruction]
    ) -> None:
        """Write both ways of a group."""
        number, last = group.begin, instructions[-1]
        self.namespace[f"o{number}"] = expression
        values = [self.names.of(slot) for slot in group.slots]
        inputs = ", ".join(f"{value}.shape, {value}.strides" for value in values)
        if self.is_gated:
            self.text_lines.append(" if gate.pending: gate.wait()")
        self.text_lines += [
            f" g{number} = ({inputs})",
            f" if stop or g{number} not in o{number}.known:",
        ]
        first = len(self.text_lines)
        for each, instruction in enumerate(instructions, number):
            self._write(each, instruction)
        result = self.names.of(last.outputs[0])
        self.text_lines.append(f" if o{number}.learns: o{number}.learn(g{number}, {result})")
        self.text_lines[first:] = [f" {line}" for line in self.text_lines[first:]]
        self.text_lines.append(" else:")
        self._line(f" {result} = o{number}({', '.join(values)})", last.node)
        dropped = {slot for each in instructions for slot in each.dropped} & set(group.slots)
        unused = [name for slot in sorted(dropped) if (name := self.names.of(slot)) != result]
        if unused:
            self.text_lines.append(f"  del {', '.join(unused)}")

    def _write(self, number: int, instruction: Instruction) -> None:
        node = instruction.node
        self.namespace[f"k{number}"] = instruction.kernel
        values = [
            f"{self.names.of(slot)}.read()" if deref else self.names.of(slot)
            for slot, deref in instruction.inputs
        ]
        is_due = number % _NODES_A_CALL == 0 and bool(self.lines)  # a part begins with a call
        self.write_checks(number, instruction, values, is_due)
        if self.is_gated:
            self.text_lines.append(" if gate.pending: gate.wait()")
        if instruction.needs_context:
            self.namespace[f"n{number}"] = node
            values.insert(0, f"context(n{number}, step)")
        call = f"k{number}({', '.join(values)})"
        used = [(i, slot) for i, slot in enumerate(instruction.outputs) if slot >= 0]
        if isinstance(instruction.in_place, str) and not self.is_gated:
            self._write_assignment(number, instruction, instruction.in_place, *values)
            return
        if callable(instruction.in_place):
            self.namespace[f"k{number}"] = instruction.in_place
        if not used:
            self._line(call, node)
        elif instruction.has_single_output:
            self._line(f"{self.names.of(used[0][1])} = {call}", node)
        else:
            self._line(f"result = {call}", node)
            for index, slot in used:
                self._line(f"{self.names.of(slot)} = result[{index}]", node)
            self._line("del result", node)
        self.write_after(number, instruction, values)
        self._drop(instruction.dropped)

    def write_checks(
        self, number: int, instruction: Instruction, values: Sequence[str], is_due: bool
    ) -> None:
        """Write what comes before a node; `values` are the texts of its inputs.

        If `is_due`, other threads must be able to run.
        """
        self.text_lines.append(" check(step)" if is_due else " if stop: check(step)")

    def write_growth_check(
        self, number: int, instruction: Instruction, values: Sequence[str]
    ) -> None:
        """Write what comes before the kernel if an assignment was not possible."""

    def write_after(self, number: int, instruction: Instruction, values: Sequence[str]) -> None:
        """Write what comes after a node, before inputs are dropped."""

    def write_end(self) -> None:
        """Write what comes after the last node of the part."""

    def _write_assignment(
        self, number: int, instruction: Instruction, operator: str, value: str, other: str
    ) -> None:
        """Write `v += w`, which is twice as fast as a ufunc call on small arrays.

        On large arrays it saves an allocation. If broadcasting makes the output larger than `v`,
        `+=` raises ValueError and the kernel is called instead.
        """
        self._line(f"try: {value} {operator} {other}", instruction.node)
        self.text_lines.append(" except ValueError:")
        self.write_growth_check(number, instruction, [value, other])
        self._line(f" {value} = k{number}({value}, {other})", instruction.node)
        self.names.reuse(instruction.outputs[0], value)
        self.write_after(number, instruction, [value, other])
        first = instruction.inputs[0][0]
        self._drop([slot for slot in instruction.dropped if slot != first])

    def _drop(self, slots: Sequence[int]) -> None:
        if slots:
            self.text_lines.append(f" del {', '.join(self.names.of(slot) for slot in slots)}")

    def _line(self, text: str, node: Node) -> None:
        self.text_lines.append(f" {text}")
        self.lines[len(self.text_lines)] = node


# Groups with their expressions, by the numbers of their first instructions.
Groups: TypeAlias = Mapping[int, tuple[Group, Expression]]
# Makes the writer of a part: (whether it is gated, the objects of the names, names, constants,
# groups).
MakeWriter: TypeAlias = Callable[[bool, dict[str, object], Names, set[int], Groups], PartWriter]


def _check(step: Step) -> None:
    step.cancellation.check()
