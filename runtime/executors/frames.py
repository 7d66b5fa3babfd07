"""Frames and iterations: the inputs that have arrived at each node in one dataflow run.

A frame is one execution of a v1 while loop within one iteration of its parent frame; the root frame
has one iteration. Nothing here takes a lock: the caller must hold the lock of the run.

TF: tensorflow/core/common_runtime/propagator_state.h (FrameState, IterationState)
"""

from __future__ import annotations

from collections.abc import Mapping

from runtime.executors.dataflow_graph import DataflowGraph, Item
from runtime.framework.op_kernel import DEAD
from runtime.framework.tensor_value import TensorValue

Ready = list[tuple["Item", "Frame", "Iteration", bool]]


class Iteration:
    """One loop iteration: for each item index, its inputs so far and the number still missing."""

    __slots__ = (
        "children",
        "dead_counts",
        "dead_items",
        "inputs",
        "number",
        "outstanding",
        "pending",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.inputs: dict[int, list[TensorValue]] = {}
        self.pending: dict[int, int] = {}
        self.dead_counts: dict[int, int] = {}
        self.dead_items: set[int] = set()
        self.outstanding = 0  # number of items of this iteration that are ready or running
        self.children: dict[str, Frame] = {}

    def begin(self, inputs: Mapping[int, list[TensorValue]], pending: dict[int, int]) -> None:
        """Set copies of `inputs` and `pending` as the initial state."""
        self.inputs = {index: values.copy() for index, values in inputs.items()}
        self.pending = pending.copy()

    def take_inputs(self, item: Item) -> list[TensorValue]:
        """Remove and return the item's inputs, so that they are freed after their last reader."""
        return self.inputs.pop(item.index, [])

    def was_dead(self, item: Item) -> bool:
        """Return whether the item was dead, which outputs do not show if the item has none."""
        return item.index in self.dead_items


class Frame:
    """One execution of a while loop, or the root frame."""

    def __init__(
        self, name: str, parent: Frame | None, parent_iteration: Iteration | None, enters: int
    ) -> None:
        self.name = name
        self.parent = parent
        self.parent_iteration = parent_iteration
        self.pending_enters = enters  # number of Enter nodes that have not run yet
        self.iterations: dict[int, Iteration] = {0: Iteration(0)}
        self.newest = self.iterations[0]
        self.dead_exits: list[Item] = []
        self._invariants: list[tuple[Item, list[TensorValue], bool]] = []

    def child(self, enter: Item, iteration: Iteration, graph: DataflowGraph) -> Frame:
        """Return the child frame that `enter` opens in `iteration`; its first Enter creates it."""
        frame = iteration.children.get(enter.frame_name)
        if frame is None:
            frame = Frame(enter.frame_name, self, iteration, graph.enters[enter.frame_name])
            iteration.children[enter.frame_name] = frame
        return frame

    def enter(self, item: Item, outputs: list[TensorValue], is_dead: bool, ready: Ready) -> None:
        """Pass on the outputs of an Enter node, which has run in the parent of this frame."""
        self.pending_enters -= 1
        if item.is_constant_enter:
            self._invariants.append((item, outputs, is_dead))
            for iteration in list(self.iterations.values()):
                self.activate(item, iteration, outputs, is_dead, ready)
        else:
            self.activate(item, self.iterations[0], outputs, is_dead, ready)

    def next_iteration(
        self, item: Item, iteration: Iteration, outputs: list[TensorValue], ready: Ready
    ) -> None:
        """Pass the output of a NextIteration node to the next iteration; create it if needed."""
        number = iteration.number + 1
        following = self.iterations.get(number)
        if following is None:
            following = self.iterations[number] = self.newest = Iteration(number)
            self.dead_exits.clear()  # they belong to an iteration that is not the last
            for enter, values, is_dead in self._invariants:
                self.activate(enter, following, values, is_dead, ready)
        self.activate(item, following, outputs, False, ready)

    def activate(
        self,
        item: Item,
        iteration: Iteration,
        outputs: list[TensorValue],
        is_dead: bool,
        ready: Ready,
    ) -> None:
        """Pass `outputs` to the readers of `item`; append the readers that are ready to `ready`."""
        for output, reader, slot in item.data_edges:
            value = DEAD if is_dead else outputs[output]
            if reader.is_merge:
                self._arrive_at_merge(item, reader, slot, value, iteration, ready)
            else:
                inputs = iteration.inputs.get(reader.index)
                if inputs is None:
                    inputs = iteration.inputs[reader.index] = [None] * reader.input_count
                inputs[slot] = value
                self._arrive(reader, value is DEAD, iteration, ready)
        for reader in item.control_edges:
            if reader.is_merge:
                self._count_down_merge_control(reader, iteration, ready)
            else:
                self._arrive(reader, is_dead, iteration, ready)

    def _arrive(self, reader: Item, is_dead: bool, iteration: Iteration, ready: Ready) -> None:
        index = reader.index
        left = iteration.pending.get(index, reader.initial_pending) - 1
        iteration.pending[index] = left
        if is_dead and not reader.is_control_trigger:
            iteration.dead_items.add(index)
        if left == 0:
            self._make_ready(reader, iteration, index in iteration.dead_items, ready)

    def _arrive_at_merge(
        self,
        source: Item,
        merge: Item,
        slot: int,
        value: TensorValue,
        iteration: Iteration,
        ready: Ready,
    ) -> None:
        """Record an input of a Merge, which uses its first live input and ignores later inputs.

        The Merge is dead if all its inputs are dead, or if a dead input from an Enter comes first.
        """
        index = merge.index
        pending = iteration.pending.get(index, merge.initial_pending)
        if value is not DEAD:
            values = iteration.inputs.get(index)
            if values is not None or iteration.dead_counts.get(index, 0) < 0:
                return
            values = iteration.inputs[index] = [DEAD] * merge.input_count
            values[slot] = value
            iteration.dead_counts[index] = -1  # decided: later inputs are ignored
            iteration.pending[index] = pending - 1
            if pending == 1:
                self._make_ready(merge, iteration, False, ready)
            return
        dead = iteration.dead_counts.get(index, 0)
        if dead < 0:
            return
        iteration.dead_counts[index] = dead + 1
        if dead + 1 == merge.input_count or source.is_enter:
            iteration.dead_counts[index] = -1
            iteration.dead_items.add(index)
            iteration.pending[index] = pending - 1
            if pending == 1:
                self._make_ready(merge, iteration, True, ready)

    def _count_down_merge_control(self, merge: Item, iteration: Iteration, ready: Ready) -> None:
        index = merge.index
        left = iteration.pending.get(index, merge.initial_pending) - 1
        iteration.pending[index] = left
        if left == 0:
            self._make_ready(merge, iteration, index in iteration.dead_items, ready)

    def _make_ready(self, item: Item, iteration: Iteration, is_dead: bool, ready: Ready) -> None:
        iteration.outstanding += 1
        ready.append((item, self, iteration, is_dead))

    def clean_up(self, ready: Ready) -> None:
        """Delete finished iterations and frames; pass the dead Exits of a frame to its parent.

        If this frame is deleted, its parent frames are checked too, because they may now be
        finished.
        """
        frame: Frame = self
        while frame.parent is not None and frame.parent_iteration is not None:
            frame._drop_finished_iterations()
            if frame.iterations or frame.pending_enters:
                return
            parent, parent_iteration = frame.parent, frame.parent_iteration
            del parent_iteration.children[frame.name]
            for item in frame.dead_exits:
                parent.activate(
                    item, parent_iteration, [DEAD] * len(item.node.output_types), True, ready
                )
            frame = parent

    def _drop_finished_iterations(self) -> None:
        """Delete iterations in order, but stop at an unfinished one, which may start others."""
        for number in sorted(self.iterations):
            iteration = self.iterations[number]
            if iteration.outstanding or iteration.children:
                return
            if number == 0 and self.pending_enters:
                return
            del self.iterations[number]
