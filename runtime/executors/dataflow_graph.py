"""The immutable data of the dataflow executor: nodes by index, their out edges and input counts.

TF: tensorflow/core/common_runtime/immutable_executor_state.h, graph_view.h
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from runtime.executors.instructions import constant_value
from runtime.executors.memory_checks import MemoryCheck, large_bytes, memory_checks
from runtime.foundation.errors import InvalidArgumentError, OpError
from runtime.foundation.gradual_freeing import free_elements
from runtime.framework.kernel_registry import KernelRegistry, bind
from runtime.framework.op_kernel import Kernel
from runtime.framework.tensor_value import TensorValue
from runtime.graph.node import Node
from runtime.graph.passes.pruning import StepGraph

_MERGE = frozenset(("Merge", "RefMerge"))
_ENTER = frozenset(("Enter", "RefEnter"))
_EXIT = frozenset(("Exit", "RefExit"))
_NEXT_ITERATION = frozenset(("NextIteration", "RefNextIteration"))
V1_CONTROL_FLOW = _MERGE | _ENTER | _EXIT | _NEXT_ITERATION | {"Switch", "RefSwitch", "LoopCond"}
_FLAGS: dict[str, str] = {
    **dict.fromkeys(_MERGE, "is_merge"),
    **dict.fromkeys(_ENTER, "is_enter"),
    **dict.fromkeys(_EXIT, "is_exit"),
    **dict.fromkeys(_NEXT_ITERATION, "is_next_iteration"),
    "ControlTrigger": "is_control_trigger",
    "_Send": "is_send",
    "_HostSend": "is_send",
}
# Ops that return their input unchanged; a reference to a Variable stays a reference.
_PASS_THROUGH = _ENTER | _EXIT | _NEXT_ITERATION | {"LoopCond"}


@dataclasses.dataclass(slots=True)
class Item:
    """A node with everything that the executor needs to run it.

    `data_edges` holds (output index, reader, input index of the reader) for every reader of an
    output. `control_edges` holds the items that have this item as a control input.
    """

    index: int
    node: Node
    kernel: Kernel | None = None
    needs_context: bool = False
    is_expensive: bool = False
    constant: TensorValue = None
    is_constant: bool = False
    argument: int = -1  # index of the feed whose value this `_Arg` returns; −1 for any other op
    input_count: int = 0
    control_count: int = 0
    initial_pending: int = 0  # number of inputs to wait for; a Merge waits for one data input
    data_edges: list[tuple[int, Item, int]] = dataclasses.field(default_factory=list)
    control_edges: list[Item] = dataclasses.field(default_factory=list)
    is_merge: bool = False
    is_enter: bool = False
    is_exit: bool = False
    is_next_iteration: bool = False
    is_control_trigger: bool = False  # runs even if its control inputs are dead
    is_constant_enter: bool = False
    is_send: bool = False
    frame_name: str = ""  # name of the frame that an Enter opens; "" for any other op
    # For each input, true if it is a reference whose value the kernel needs; () if all are false.
    derefs: tuple[bool, ...] = ()
    # (output index, fetch index) for every fetched output
    fetches: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    memory: MemoryCheck | None = None  # set when the first step that is counted runs
    error: OpError | None = None  # raised when the node runs, if it lacks a kernel or inputs


class DataflowGraph:
    """The items of a step's graph; `roots` are the items that have no inputs."""

    def __init__(self, graph: StepGraph, kernels: KernelRegistry) -> None:
        self._kernels = kernels
        self._graph = graph
        self.large = large_bytes(len(graph.nodes))  # bytes above which a value is large
        self._has_checks = False
        self.items = [Item(index, node) for index, node in enumerate(graph.nodes)]
        by_node = {item.node: item for item in self.items}
        for position, node in enumerate(graph.arguments):
            if node is not None:
                by_node[node].argument = position
        for item in self.items:
            self._prepare(item, by_node)
        for position, (node, output) in enumerate(graph.fetches):
            by_node[node].fetches.append((output, position))
        self.fetch_count = len(graph.fetches)
        self.fetch_is_ref = [node.output_is_ref[output] for node, output in graph.fetches]
        self.roots = [item for item in self.items if not item.input_count + item.control_count]
        _check_frames(self.items)
        self.initial_state = _InitialState(self.items, self.roots)
        # Frame name → number of its Enter nodes; a frame ends only after all of them have run.
        self.enters: dict[str, int] = {}
        for item in self.items:
            if item.is_enter:
                self.enters[item.frame_name] = self.enters.get(item.frame_name, 0) + 1

    def __del__(self) -> None:
        free_elements(self, "items")

    def add_checks(self) -> None:
        """Set the memory checks of the items, which only steps with an account need."""
        if self._has_checks:
            return
        checks = memory_checks(self._graph, self._kernels, self.large, in_order=False)
        for item in self.items:
            item.memory = checks.get(item.node)
        self._has_checks = True

    def _prepare(self, item: Item, by_node: dict[Node, Item]) -> None:
        node = item.node
        flag = _FLAGS.get(node.op)
        if flag is not None:
            setattr(item, flag, True)
            if item.is_enter:
                item.frame_name = node.attr("frame_name")
                item.is_constant_enter = node.attr("is_constant")
        item.input_count = len(node.inputs)
        item.control_count = len(node.control_inputs)
        item.initial_pending = item.control_count + (1 if item.is_merge else item.input_count)
        reads_refs = False
        for slot, (source, output) in enumerate(node.inputs):
            by_node[source].data_edges.append((output, item, slot))
            reads_refs = reads_refs or source.output_is_ref[output]
        for control in node.control_inputs:
            by_node[control].control_edges.append(item)
        if reads_refs:
            item.derefs = _derefs(node)
        self._bind(item)

    def _bind(self, item: Item) -> None:
        """Find the item's kernel; keep an error, which is raised only when the node runs."""
        node = item.node
        if item.argument >= 0 or item.is_merge or node.op in _PASS_THROUGH or node.op == "NoOp":
            return
        try:
            if node.op == "Const":
                item.constant, item.is_constant = constant_value(node), True
                return
            kernel = self._kernels.find(node)
            item.kernel = bind(kernel, node)
            item.needs_context, item.is_expensive = kernel.needs_context, kernel.expensive
        except OpError as error:
            item.error = error


class _InitialState:
    """The state of a run before its first node, when the readers of constants have their values.

    Constants that are fetched or that a Merge reads are not included. `inputs` and `pending` are
    the arguments of `Iteration.begin` for the root frame; `ready` are the items to run first.
    """

    def __init__(self, items: Sequence[Item], roots: Sequence[Item]) -> None:
        self.inputs: dict[int, list[TensorValue]] = {}
        self.pending: dict[int, int] = {}
        rest: list[Item] = []
        for root in roots:
            if root.is_constant and not root.fetches and not _has_merge_among_readers(root):
                self._propagate_constant(root)
            else:
                rest.append(root)
        self.ready = rest + [items[index] for index, left in self.pending.items() if left == 0]

    def _propagate_constant(self, constant: Item) -> None:
        for _, reader, slot in constant.data_edges:
            inputs = self.inputs.setdefault(reader.index, [None] * reader.input_count)
            inputs[slot] = constant.constant
        for reader in [each for _, each, _ in constant.data_edges] + constant.control_edges:
            left = self.pending.get(reader.index, reader.initial_pending)
            self.pending[reader.index] = left - 1


def _has_merge_among_readers(item: Item) -> bool:
    return any(reader.is_merge for _, reader, _ in item.data_edges) or any(
        reader.is_merge for reader in item.control_edges
    )


def _derefs(node: Node) -> tuple[bool, ...]:
    return tuple(
        source.output_is_ref[output]
        and not (node.input_is_ref[slot] if slot < len(node.input_is_ref) else False)
        and not (node.op in _PASS_THROUGH and node.op.startswith("Ref"))
        for slot, (source, output) in enumerate(node.inputs)
    )


def _check_frames(items: Sequence[Item]) -> None:
    """Raise InvalidArgumentError if the inputs of a node belong to different frames.

    TF: tensorflow/core/graph/control_flow.cc (BuildControlFlowInfo)
    """
    # Item index → frame of the item's outputs, as the tuple of frame names from the root.
    frames: dict[int, tuple[str, ...]] = {}
    pending = [item for item in items if not item.input_count + item.control_count]
    for item in pending:
        frames[item.index] = _frame_after(item, ())
    while pending:
        item = pending.pop()
        frame = frames[item.index]
        for reader in [each for _, each, _ in item.data_edges] + item.control_edges:
            known = frames.get(reader.index)
            expected = _frame_after(reader, frame)
            if known is None:
                frames[reader.index] = expected
                pending.append(reader)
            elif known != expected:
                raise InvalidArgumentError(
                    f"{{{{node {reader.node.name}}}}} has inputs from different frames. The input "
                    f"{{{{node {item.node.name}}}}} is in frame '{frame[-1] if frame else ''}'."
                )


def _frame_after(item: Item, frame: tuple[str, ...]) -> tuple[str, ...]:
    if item.is_enter:
        return (*frame, item.frame_name)
    return frame[:-1] if item.is_exit else frame


def evaluate_control_flow(item: Item, values: Sequence[TensorValue]) -> tuple[TensorValue, ...]:
    """Return (input,) for an Enter, Exit, NextIteration or LoopCond, and () for a NoOp."""
    if item.node.op in _PASS_THROUGH:
        if not values:
            raise InvalidArgumentError("No input", item.node.name)
        return (values[0],)
    return ()
