"""Loops of version 1 as units: their variables, invariants, members and branches.

A loop variable is Enter → Merge → Switch → … → NextIteration → Merge, and Exit after the Switch. An
invariant is an Enter with `is_constant`. The members of a loop are what one iteration computes,
without what its inner loops compute; the Exits of an inner loop are members.

TF: tensorflow/python/ops/while_v2.py, control_flow_ops.py (WhileContext)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from runtime.client.framework.operation import Operation, OperationGraph, Tensor

EXITS = frozenset(("Exit", "RefExit"))
_ENTERS = frozenset(("Enter", "RefEnter"))
_SWITCHES = frozenset(("Switch", "RefSwitch"))
_MERGES = frozenset(("Merge", "RefMerge"))
_NEXT_ITERATIONS = frozenset(("NextIteration", "RefNextIteration"))

# The branches of version 1 in which something is computed, outermost first: (predicate, index of
# the Switch output).
Branches = tuple[tuple[Tensor, int], ...]


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class LoopVariable:
    """A variable of a loop."""

    initial: Tensor  # what enters
    merge: Operation
    switch: Operation
    following: Tensor  # its value for the next iteration

    @property
    def value(self) -> Tensor:
        """The value in an iteration."""
        return self.switch.outputs[1]


def is_branch(operation: Operation) -> bool:
    """Return whether an operation is the Switch of a branch, not of a loop."""
    return operation.type in _SWITCHES and operation.inputs[1].op.type != "LoopCond"


class LoopFrames:
    """The loops of version 1 that one call of `gradients` meets."""

    def __init__(self) -> None:
        self._frames: dict[Operation, LoopFrame] = {}  # LoopCond → loop
        self._switches: dict[Operation, list[Operation]] = {}  # LoopCond → Switches of variables
        self._exits: dict[Operation, list[Operation]] = {}  # Switch → Exits

    def of(self, end: Operation, parent: LoopFrame | None = None) -> LoopFrame:
        """Return the loop that the Exit `end` leaves, which lies in one iteration of `parent`.

        Raises LookupError if the operations around the Exit are no loop.
        """
        condition = condition_of(end)
        if condition not in self._frames:
            if condition not in self._switches:
                self._scan(end.graph)
            self._frames[condition] = frame = LoopFrame(condition, end.graph, parent)
            frame.explore(self)
        return self._frames[condition]

    def _scan(self, graph: OperationGraph) -> None:
        self._switches, self._exits = {}, {}
        for each in graph.get_operations():
            if each.type in _SWITCHES and each.inputs[1].op.type == "LoopCond":
                self._switches.setdefault(each.inputs[1].op, []).append(each)
            elif each.type in EXITS:
                self._exits.setdefault(each.inputs[0].op, []).append(each)

    def variables(self, condition: Operation) -> list[tuple[LoopVariable, list[Operation]]]:
        """Return the variables of a loop, each with its Exits."""
        return [
            (_variable(switch), self._exits.get(switch, [])) for switch in self._switches[condition]
        ]


def condition_of(end: Operation) -> Operation:
    """Return the LoopCond of the loop that the Exit `end` leaves. Raises LookupError."""
    switch = end.inputs[0].op
    if switch.type not in _SWITCHES or switch.inputs[1].op.type != "LoopCond":
        raise LookupError(_malformed(end))
    return switch.inputs[1].op


def _variable(switch: Operation) -> LoopVariable:
    merge = switch.inputs[0].op
    if merge.type in _MERGES and len(merge.inputs) == 2:
        enter, again = (each.op for each in merge.inputs)
        if enter.type in _ENTERS and again.type in _NEXT_ITERATIONS:
            return LoopVariable(enter.inputs[0], merge, switch, again.inputs[0])
    raise LookupError(_malformed(switch))


def _malformed(operation: Operation) -> str:
    return (
        f"No gradient for operation '{operation.name}': what is around it is no loop of version 1 "
        "as TensorFlow builds them"
    )


class LoopFrame:
    """A loop of version 1, which backpropagation treats as one operation.

    `inputs` are the initial values of the variables and then the invariants, `outputs` the Exits.
    """

    def __init__(
        self, condition: Operation, graph: OperationGraph, parent: LoopFrame | None
    ) -> None:
        self.condition = condition  # LoopCond
        self.graph = graph
        self.parent = parent
        self.variables: list[LoopVariable] = []
        self.invariants: list[Operation] = []  # Enter
        self.ends: list[tuple[LoopVariable, Tensor]] = []  # the outputs of the Exits
        self._members: set[Operation] = set()
        self._inner: dict[Operation, LoopFrame] = {}  # LoopCond → loop
        self._branches: dict[Operation, Branches] = {}

    @property
    def name(self) -> str:
        """The name of the loop's condition."""
        return self.condition.name

    @property
    def type(self) -> str:
        """The op whose gradient function is the loop's."""
        return "Exit"

    @property
    def enter(self) -> Operation:
        """The Enter of the first variable, whose attributes all Enters of the loop share."""
        return self.variables[0].merge.inputs[0].op

    @property
    def inputs(self) -> Sequence[Tensor]:
        """What enters the loop."""
        initial = [each.initial for each in self.variables]
        return [*initial, *(each.inputs[0] for each in self.invariants)]

    @property
    def outputs(self) -> Sequence[Tensor]:
        """What leaves the loop."""
        return [tensor for _, tensor in self.ends]

    def explore(self, frames: LoopFrames) -> None:
        """Find the variables, invariants, members and inner loops."""
        pending = [self.condition.inputs[0].op]
        border = {self.condition}
        for variable, ends in frames.variables(self.condition):
            self.variables.append(variable)
            self.ends += [(variable, each.outputs[0]) for each in ends]
            pending.append(variable.following.op)
            border |= {variable.merge, variable.switch}
        self._members |= border
        while pending:
            operation = pending.pop()
            if operation in self._members:
                continue
            self._members.add(operation)
            if operation.type in _ENTERS:
                self.invariants.append(operation)
            elif operation.type in EXITS:
                inner = frames.of(operation, self)
                self._inner[inner.condition] = inner
                pending += [each.op for each in inner.inputs]
            else:
                pending += [each.op for each in operation.inputs]
                pending += operation.control_inputs
        self._branches = dict.fromkeys((*border, *self.invariants), ())

    def contains(self, operation: Operation) -> bool:
        """Return whether an operation is a member, also an Exit that was added to an inner loop."""
        if operation in self._members:
            return True
        return operation.type in EXITS and condition_of(operation) in self._inner

    # --- branches ---------------------------------------------------------------------------------

    def branches_around(self, tensor: Tensor) -> Branches:
        """Return the branches of an iteration in which the tensor of a member is computed.

        Where none of them is taken, the tensor is dead.
        """
        pending = [tensor.op]
        while pending:
            operation = pending[-1]
            missing = [each for each in self._before(operation) if each not in self._branches]
            if operation in self._branches or not missing:
                if operation not in self._branches:
                    self._branches[operation] = self._from_inputs(operation)
                pending.pop()
            else:
                pending += missing
        return self._of_output(tensor)

    def _before(self, operation: Operation) -> Iterator[Operation]:
        yield from (each.op for each in self._inputs(operation))
        if operation.type not in EXITS:
            yield from operation.control_inputs

    def _inputs(self, operation: Operation) -> Sequence[Tensor]:
        """Return what an operation reads; for the Exit of an inner loop, what enters the loop."""
        if operation.type in EXITS:
            return self._inner[condition_of(operation)].inputs
        return operation.inputs

    def _of_output(self, tensor: Tensor) -> Branches:
        around = self._branches[tensor.op]
        if is_branch(tensor.op):
            return (*around, (_origin(tensor.op.inputs[1]), tensor.value_index))
        return around

    def _from_inputs(self, operation: Operation) -> Branches:
        found = [self._of_output(each) for each in self._inputs(operation)]
        if operation.type in _MERGES:
            return _common_start(found)
        if operation.type not in EXITS:
            found += [self._branches[each] for each in operation.control_inputs]
        return max(found, key=len, default=())


def _origin(tensor: Tensor) -> Tensor:
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor


def _common_start(found: Sequence[Branches]) -> Branches:
    count = 0
    for steps in zip(*found, strict=False):
        if any(step != steps[0] for step in steps):
            break
        count += 1
    return found[0][:count]
