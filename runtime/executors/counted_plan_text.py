"""The code of step plans whose sessions have a memory budget.

It differs from `plan_text.py` by the checks that `memory_checks.py` decides on. `stop` is true once
the step is cancelled or the run has met a large value; `s[-1]` is then the run's MemoryWatch:

    if stop: stop = watch(s, step, 262144, q2, (v1,), v0)    # before a node that can't grow
    try: big = m3(v2, v0) > 16777216                         # before one that can
    except Exception: big = True
    if stop or big: stop = watch(s, step, 262144, q3, (v2,), v2, v0)
    if stop or v2.shape != q4.known: …                   # before one whose shapes tell
    v3 = k3(v2, v0)
    if stop or v3.nbytes > 262144: stop = seen(s, step, 262144, q3, (v3,))

`m3` is the bound on the memory of node 3, `q3` its MemoryCheck, and `(v2,)` has the values that the
node before has made.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.executors.instructions import Instruction, Program
from runtime.executors.memory_checks import UNCOUNTED_BYTES, MemoryCheck
from runtime.executors.memory_plan import MemoryPlan
from runtime.executors.memory_watch import note_kept, watch_end, watch_node, watch_outputs
from runtime.executors.plan_text import (
    GeneratedPlan,
    Groups,
    Names,
    PartWriter,
    generate_with,
)
from runtime.framework.broadcast_memory import MOST_BYTES_A_PRODUCT
from runtime.framework.dtypes import DataType
from runtime.framework.memory_account import bytes_of
from runtime.graph.node import Node

_BOUND = {
    "watch": watch_node,
    "seen": watch_outputs,
    "ended": watch_end,
    "kept": note_kept,
    "bytes_of": bytes_of,
}
_WITHOUT_SIZE = frozenset((DataType.RESOURCE, DataType.VARIANT))


def generate_counted(
    program: Program,
    plan: MemoryPlan,
    is_low_priority: bool,
    groups: Groups,
) -> GeneratedPlan:
    """Write and compile the code of a program with the checks of `plan`.

    The expressions of `groups` have none, because their values have at most 2 KiB.
    """

    def writer(
        is_gated: bool,
        namespace: dict[str, object],
        names: Names,
        constants: set[int],
        groups: Groups,
    ) -> PartWriter:
        return _CountedPartWriter(is_gated, namespace, names, constants, groups, plan)

    return generate_with(program, is_low_priority, writer, _BOUND, groups)


def _shapes(values: Sequence[str]) -> str:
    shapes = [f"{value}.shape" for value in values]
    return shapes[0] if len(shapes) == 1 else f"({', '.join(shapes)})"


class _CountedPartWriter(PartWriter):
    """Writes the code of one part with its memory checks."""

    first_line = " stop = s[-1] or step.cancellation.error"

    def __init__(
        self,
        is_low_priority: bool,
        namespace: dict[str, object],
        names: Names,
        constants: set[int],
        groups: Groups,
        plan: MemoryPlan,
    ) -> None:
        super().__init__(is_low_priority, namespace, names, constants, groups)
        self._plan = plan
        self._made = "()"  # what the node before has made, as a tuple's text

    def write_checks(
        self, number: int, instruction: Instruction, values: Sequence[str], is_due: bool
    ) -> None:
        """Write the check of memory, which is one of cancellation too."""
        if is_due:
            self.text_lines.append(" check(step)")
        check = self._plan.check_of(instruction)
        if check is None:
            if not is_due:
                self.text_lines.append(" if stop: check(step)")
            return
        self.namespace[f"q{number}"] = check
        is_assignment = isinstance(instruction.in_place, str) and not self.is_gated
        if is_assignment and check.is_broadcast:  # it grows only if the assignment raises
            self._write_watch(number, instruction.node, check, values, "stop", " ")
        else:
            self._write_condition(number, instruction.node, check, values, " ")

    def write_growth_check(
        self, number: int, instruction: Instruction, values: Sequence[str]
    ) -> None:
        """Write the check of an assignment that was not possible."""
        check = self._plan.check_of(instruction)
        if check is not None and check.is_grower:
            self._write_condition(number, instruction.node, check, values, "  ")

    def _write_condition(
        self, number: int, node: Node, check: MemoryCheck, values: Sequence[str], indent: str
    ) -> None:
        large = self._plan.large
        conditions = ["stop"]
        if check.is_grower and check.is_broadcast:
            x, y = values
            conditions.append(
                f"{x}.size * {y}.size > {UNCOUNTED_BYTES // MOST_BYTES_A_PRODUCT} "
                f"and {_shapes(values)} != q{number}.known"
            )
        elif check.is_grower and check.is_of_shapes:
            shapes = _shapes([values[each] for each in check.varying])
            conditions.append(f"{shapes} != q{number}.known")
        elif check.is_grower:
            self.namespace[f"m{number}"] = check.need
            given = ", ".join(self._inputs(number, node, check, values))
            self.text_lines += [
                f"{indent}try: big = m{number}({given}) > {UNCOUNTED_BYTES}",
                f"{indent}except Exception: big = True",
            ]
            conditions.append("big")
        if check.joined:
            sizes = " + ".join(f"{values[each]}.nbytes" for each in check.joined)
            conditions.append(f"{sizes} > {large}")
        conditions += [f"{values[each]}.nbytes > {large}" for each in check.sources]
        conditions += [f"bytes_of({values[each]}) > {large}" for each in check.string_sources]
        self._write_watch(number, node, check, values, " or ".join(conditions), indent)

    def _write_watch(
        self,
        number: int,
        node: Node,
        check: MemoryCheck,
        values: Sequence[str],
        condition: str,
        indent: str,
    ) -> None:
        given = ", ".join((f"q{number}", self._made, *self._inputs(number, node, check, values)))
        self.text_lines.append(
            f"{indent}if {condition}: stop = watch(s, step, {self._plan.large}, {given})"
        )

    def _inputs(
        self, number: int, node: Node, check: MemoryCheck, values: Sequence[str]
    ) -> list[str]:
        """Return the arguments of the node's bound."""
        if not check.needs_context:
            return list(values)
        self.namespace[f"n{number}"] = node
        return [f"context(n{number}, step)", *values]

    def write_after(self, number: int, instruction: Instruction, values: Sequence[str]) -> None:
        """Write the look at outputs of unknown size, and note what the kernel may have kept."""
        check = self._plan.check_of(instruction)
        if check is None:
            self._made = "()"
            return
        node, large = instruction.node, self._plan.large
        made = [
            (self.names.of(slot), node.output_types[index])
            for index, slot in enumerate(instruction.outputs)
            if slot >= 0
            and not node.output_is_ref[index]
            and node.output_types[index] not in _WITHOUT_SIZE
        ]
        names = "".join(f"{name}, " for name, _ in made)
        self._made = f"({names})" if check.makes else "()"
        if check.looks_after and made:
            sizes = [
                f"bytes_of({name}) > {large}"
                if kind is DataType.STRING
                else f"{name}.nbytes > {large}"
                for name, kind in made
            ]
            self.text_lines.append(
                f" if stop or {' or '.join(sizes)}: "
                f"stop = seen(s, step, {large}, q{number}, ({names}))"
            )
            self._made = "()"
        if check.keeps:
            given = "".join(f"{value}, " for value in values)
            self.text_lines.append(f" kept(step, {large}, ({given}))")

    def write_end(self) -> None:
        """Write what counts the values of the last node."""
        if self._made != "()":
            self.text_lines.append(f" if s[-1] is not None: ended(s, {self._made})")
