"""Instructions: the nodes of a pruned graph in execution order.

A run keeps its values in a list; a value slot, or slot for short, is an index into this list.
Constants and ops that return their input unchanged need no instruction. A value is dropped after
its last reader. An instruction may write its result into the memory of an input ("in place") only
if a kernel of the same run has allocated this memory (`KernelDef.fresh`) and the input has no other
reader. Feeds, constants, variables and fetched values are never overwritten.
"""

from __future__ import annotations

import collections
import dataclasses

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.gradual_freeing import free_elements
from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.kernel_registry import KernelRegistry, bind, bind_in_place
from runtime.framework.op_kernel import Deferred, Kernel, KernelResult
from runtime.framework.tensor_value import TensorValue
from runtime.graph.node import Endpoint, Node
from runtime.graph.passes.pruning import StepGraph
from runtime.graph.topology import topological_order

# Ops that return their inputs unchanged, so output i shares the value slot of input i.
ALIAS_OPS = frozenset(("Identity", "StopGradient", "PreventGradient", "_Retval", "IdentityN"))
# Ops whose output 0 is a view or copy of input 0; the other inputs only give the shape.
_RESHAPING_OPS = frozenset(("Reshape", "ExpandDims", "Squeeze"))
# Types of attributes that name functions. The op calls them, and they may wait for other steps.
_FUNCTIONS = frozenset(("func", "list(func)"))


@dataclasses.dataclass(slots=True)
class Instruction:
    """One node to run. `outputs[i]` is the slot of output i, or −1 if the output has no reader.

    `inputs` holds (slot, deref) pairs: deref is true if the slot holds a `Variable` whose value the
    kernel needs. `dropped` holds the slots to clear after the run, because no later instruction
    reads them.
    """

    node: Node
    kernel: Kernel
    needs_context: bool
    is_expensive: bool
    inputs: list[tuple[int, bool]]
    outputs: list[int]
    has_single_output: bool
    fresh: bool = False
    in_place: Kernel | str | None = None
    dropped: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """The instructions of a step, and the slots of its constants and fetches.

    The arguments have the first slots.
    """

    instructions: list[Instruction]
    constants: list[tuple[int, TensorValue]]  # (slot, value)
    slot_count: int
    argument_count: int
    fetch_slots: list[int]

    def __del__(self) -> None:
        free_elements(self, "instructions")


def assemble(graph: StepGraph, kernels: KernelRegistry) -> Program:
    """Order the nodes, find their kernels and assign a slot to every value.

    Raises InvalidArgumentError if a node has no kernel or lacks inputs.
    """
    builder = _Builder(graph, kernels)
    return Program(
        builder.instructions,
        builder.constants,
        builder.slot_count,
        len(graph.arguments),
        builder.fetch_slots,
    )


class _Builder:
    """The state of `assemble`."""

    def __init__(self, graph: StepGraph, kernels: KernelRegistry) -> None:
        self._kernels = kernels
        self.slot_count = 0
        self.constants: list[tuple[int, TensorValue]] = []
        self.instructions: list[Instruction] = []
        self._slots: dict[Endpoint, int] = {}
        self._refs: set[int] = set()  # the slots that hold a Variable
        for argument in graph.arguments:
            self._new_slot(None if argument is None else (argument, 0))
        self._read_endpoints = {endpoint for node in graph.nodes for endpoint in node.inputs} | set(
            graph.fetches
        )
        for node in topological_order(graph.nodes):
            self._add_node(node)
        self.fetch_slots = [self._fetch_slot(endpoint) for endpoint in graph.fetches]
        self._drop_after_last_use()
        self._select_in_place()

    def _new_slot(self, endpoint: Endpoint | None) -> int:
        slot = self.slot_count
        self.slot_count += 1
        if endpoint is not None:
            self._slots[endpoint] = slot
        return slot

    def _add_node(self, node: Node) -> None:
        if node.op == "NoOp" or (node, 0) in self._slots:  # a feed's `_Arg`
            return
        if node.op == "Const":
            if (node, 0) in self._read_endpoints:
                self.constants.append((self._new_slot((node, 0)), constant_value(node)))
            return
        if node.op in ALIAS_OPS and not any(
            self._slots[source] in self._refs for source in node.inputs
        ):
            for index, source in enumerate(node.inputs):
                self._slots[(node, index)] = self._slots[source]
            return
        kernel = self._kernels.find(node)
        may_defer = kernel.asynchronous or bool(_FUNCTIONS & set(node.info.attr_types.values()))
        self.instructions.append(
            Instruction(
                node,
                _blocking(bind(kernel, node)) if may_defer else bind(kernel, node),
                kernel.needs_context,
                kernel.expensive,
                [self._input_slot(node, position) for position in range(len(node.inputs))],
                [self._output_slot(node, index) for index in range(len(node.output_types))],
                node.info.has_single_output,
                kernel.fresh,
                bind_in_place(kernel, node),
            )
        )

    def _input_slot(self, node: Node, position: int) -> tuple[int, bool]:
        slot = self._slots[node.inputs[position]]
        return slot, slot in self._refs and not node.input_is_ref[position]

    def _output_slot(self, node: Node, index: int) -> int:
        if (node, index) not in self._read_endpoints:
            return -1
        slot = self._new_slot((node, index))
        if node.output_is_ref[index]:
            self._refs.add(slot)
        return slot

    def _fetch_slot(self, endpoint: Endpoint) -> int:
        """Return the slot of a fetched value; for a reference, add an instruction that reads it."""
        slot = self._slots[endpoint]
        if slot not in self._refs:
            return slot
        node = endpoint[0]
        copy = self._new_slot(None)
        self.instructions.append(
            Instruction(node, identity, False, False, [(slot, True)], [copy], True)
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

    def _select_in_place(self) -> None:
        """Set `in_place` of every instruction that may not overwrite its first input to None.

        The input must have no other reader, because an earlier reader may have returned a view of
        it (Reshape) or may have stored it (AssignVariableOp, StackPushV2). The view itself may be
        overwritten if its reader is the only one, and the input is fresh and has no other reader.
        """
        readers = collections.Counter(
            slot for instruction in self.instructions for slot, _ in instruction.inputs
        )
        fresh: set[int] = set()
        for instruction in self.instructions:
            slots = [slot for slot, _ in instruction.inputs]
            is_only_reader = bool(slots) and (
                slots[0] in fresh and slots[0] in instruction.dropped and readers[slots[0]] == 1
            )
            if not (
                instruction.in_place is not None
                and is_only_reader
                and instruction.outputs[0] >= 0
                and _type_of(instruction.node.inputs[0]) is instruction.node.output_types[0]
            ):
                instruction.in_place = None
            is_fresh = instruction.fresh or (
                is_only_reader and instruction.node.op in _RESHAPING_OPS
            )
            if is_fresh and instruction.outputs[0] >= 0:
                fresh.add(instruction.outputs[0])


def _type_of(endpoint: Endpoint) -> DataType:
    node, index = endpoint
    return node.output_types[index]


def _blocking(kernel: Kernel) -> Kernel:
    """Return `kernel` wrapped so that it waits for the result if this is a `Deferred`."""

    def call(*values: TensorValue) -> KernelResult:
        result = kernel(*values)
        return result.wait() if isinstance(result, Deferred) else result

    return call


def identity(value: TensorValue) -> TensorValue:
    """Return `value`: the kernel of the instruction that reads a fetched reference."""
    return value


def constant_value(node: Node) -> TensorValue:
    """Return the value of a Const node; arrays are read-only, because plans and steps share them.

    Raises InvalidArgumentError if the element type of the value is not the node's `dtype`.
    """
    value = node.attr("value")
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
        if value.dtype != node.output_types[0].numpy:
            raise InvalidArgumentError(
                f"Type mismatch between value ({from_numpy(value.dtype).tf_name}) and dtype "
                f"({node.output_types[0].tf_name})",
                node.name,
            )
    return value
