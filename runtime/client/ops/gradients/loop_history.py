"""What the iterations of a version 1 loop computed, for its way back.

A loop variable is added that appends a tensor's value to a tensor list in each iteration; no
operation of the loop is changed. In the graph that computes the way back of one iteration,
`IterationValues` replaces the tensors of the iteration by elements of these lists.

TF: tensorflow/python/ops/control_flow_state.py (AddForwardAccumulator)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

import protos as pb
from runtime.client.framework.function_graph import FunctionGraph
from runtime.client.framework.graph_import import import_graph_def
from runtime.client.framework.operation import Operation, OperationGraph, Tensor
from runtime.client.ops import op_function
from runtime.client.ops.construction import constant
from runtime.client.ops.control_flow import merge, switch
from runtime.client.ops.gradients.loop_frames import Branches, LoopFrame, is_branch
from runtime.framework.dtypes import DataType

_ANY_SHAPE = np.int32(-1)


class LoopHistory:
    """The lists of values that were added to one loop."""

    def __init__(self, frame: LoopFrame, outside: LoopHistory | None) -> None:
        """Take the loop and the history of the loop around it."""
        self.frame = frame
        self._outside = outside
        self._lists: dict[Tensor, Tensor] = {}

    def count(self) -> Tensor:
        """Return the number of iterations."""
        output: Tensor = op_function("TensorListLength")(self.of(self.frame.condition.outputs[0]))
        return output

    def of(self, tensor: Tensor) -> Tensor:
        """Return the list of a tensor's values, which leaves the loop with its last iteration.

        Where the tensor is dead, the list has a scalar without meaning.
        """
        if tensor not in self._lists:
            with _added_to(self.frame.graph):
                value = self._alive(tensor)
                empty = op_function("EmptyTensorList")(
                    _ANY_SHAPE, np.int32(-1), element_dtype=tensor.dtype
                )
                self._lists[tensor] = self._collected(self._entered(empty, False), value)
        return self._lists[tensor]

    def _entered(self, tensor: Tensor, is_constant: bool = True) -> Tensor:
        """Return a tensor from outside all loops as one of this loop's iterations."""
        if self._outside is not None:
            around = self._outside.frame.branches_around(self.frame.enter.inputs[0])
            tensor = _within(self._outside._entered(tensor), around)
        enter = self.frame.enter
        output: Tensor = op_function("Enter")(
            tensor,
            frame_name=enter.get_attr("frame_name"),
            is_constant=is_constant,
            parallel_iterations=enter.get_attr("parallel_iterations"),
        )
        return output

    def _alive(self, tensor: Tensor) -> Tensor:
        """Return the tensor, with a scalar in its place where it is dead."""
        around = self.frame.branches_around(tensor)
        if not around:
            return tensor
        if tensor.dtype is DataType.VARIANT:
            nothing = op_function("EmptyTensorList")(
                _ANY_SHAPE, np.int32(-1), element_dtype=DataType.FLOAT
            )
        else:
            nothing = constant(np.zeros((), tensor.dtype.numpy), tensor.dtype)
        nothing = self._entered(nothing)
        for depth in reversed(range(len(around))):
            pred, index = around[depth]
            other = _within(nothing, (*around[:depth], (pred, 1 - index)))
            tensor, _ = merge([tensor, other])
        return tensor

    def _collected(self, empty: Tensor, value: Tensor) -> Tensor:
        """Add the loop variable that begins as `empty`, and return its last value."""
        graph = pb.GraphDef()
        of_list = {"T": pb.AttrValue(type=int(DataType.VARIANT))}  # type: ignore[arg-type] # same
        element = {"element_dtype": pb.AttrValue(type=int(value.dtype))}  # type: ignore[arg-type] # numbers
        for name, op, inputs, attrs in (
            ("merge", "Merge", ["empty", "next"], {**of_list, "N": pb.AttrValue(i=2)}),
            ("switch", "Switch", ["merge", "holds"], of_list),
            ("push", "TensorListPushBack", ["switch:1", "value"], element),
            ("next", "NextIteration", ["push"], of_list),
            ("exit", "Exit", ["switch"], of_list),
        ):
            graph.node.add(name=name, op=op, input=inputs, attr=attrs)
        holds = self.frame.condition.outputs[0]
        mapped = {"empty:0": empty, "value:0": value, "holds:0": holds}
        found = import_graph_def(graph, mapped, ["exit:0"], "history")
        assert found is not None
        assert isinstance(found[0], Tensor)
        return found[0]


@contextlib.contextmanager
def _added_to(graph: OperationGraph) -> Iterator[None]:
    with (
        graph.as_default(),
        graph.name_scope(None),
        graph.control_dependencies(None),
        graph.colocate_with(None, True),
    ):
        yield


def _within(tensor: Tensor, around: Branches) -> Tensor:
    """Return the tensor in the branches `around`."""
    for pred, index in around:
        tensor = switch(tensor, pred)[index]
    return tensor


class IterationValues:
    """What stands for the tensors of one iteration in the graph that computes its way back."""

    def __init__(self, history: LoopHistory, graph: FunctionGraph, index: Tensor) -> None:
        """Take the graph and the index of the iteration, a tensor of the graph."""
        self._history = history
        self._frame = history.frame
        self._graph = graph
        self._index = index
        self._found: dict[Tensor, Tensor] = {}

    def __call__(self, tensor: Tensor) -> Tensor | None:
        """Return the tensor of the graph for a tensor of the loop; None for all others."""
        if tensor.graph is not self._frame.graph or not self._frame.contains(tensor.op):
            return None
        tensor = self._same(tensor)
        if not self._frame.contains(tensor.op):
            return self._graph.capture(tensor)
        if tensor not in self._found:
            with _added_to(self._graph):
                self._found[tensor] = self._value(tensor)
        return self._found[tensor]

    def _same(self, tensor: Tensor) -> Tensor:
        """Return the first tensor that has the same value as `tensor` wherever this is alive."""
        merges = {each.merge: each for each in self._frame.variables}
        while self._frame.contains(tensor.op):
            operation = tensor.op
            if operation in merges and tensor.value_index == 0:
                return merges[operation].value
            is_passed = operation.type == "Identity" or operation in self._frame.invariants
            if not is_passed and not is_branch(operation):
                break
            tensor = operation.inputs[0]
        return tensor

    def _value(self, tensor: Tensor) -> Tensor:
        operation = tensor.op
        if operation.type == "Const":
            return _copy(self._graph, operation)
        values = self._graph.capture(self._history.of(tensor))
        around = self._frame.branches_around(tensor)
        sizes = None if around else tensor.shape.sizes
        value: Tensor = op_function("TensorListGetItem")(
            values,
            self._index,
            _ANY_SHAPE if sizes is None else np.array(sizes, np.int32),
            element_dtype=tensor.dtype,
        )
        for pred, index in around:
            taken = self(pred)
            assert taken is not None  # the predicate of a member is a member
            value = switch(value, taken)[index]
        value.set_shape(tensor.shape)
        return value


def _copy(graph: FunctionGraph, operation: Operation) -> Tensor:
    attrs = {
        name: value
        for name, value in operation.node_def.attr.items()
        if name != "_class"  # names operations of the other graph
    }
    return graph.create_op(operation.type, (), attrs, "const").outputs[0]
