"""The gradient function of loops of version 1: a While operation over the iterations in reverse.

Unlike in a While operation, nothing of the loop is computed again: the loop records what its way
back needs. So random numbers, reads and writes of TensorArrays, branches and inner loops are
allowed in it, and second derivatives too.

TF: tensorflow/python/ops/control_flow_grad.py, control_flow_state.py
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.client.framework.argument_types import Structure
from runtime.client.framework.function_graph import FunctionGraph
from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.framework.tensor_shape import TensorShape
from runtime.client.ops import op_function
from runtime.client.ops.construction import convert_to_tensor
from runtime.client.ops.control_flow import while_loop
from runtime.client.ops.gradients.backpropagation import (
    Gradient,
    GradientOptions,
    backpropagate,
    connected,
    current_call,
    has_variable,
    is_trainable,
    zeros_of,
)
from runtime.client.ops.gradients.gradient_registry import Derivation
from runtime.client.ops.gradients.loop_frames import LoopFrame, LoopVariable
from runtime.client.ops.gradients.loop_history import IterationValues, LoopHistory
from runtime.framework.dtypes import DataType


def _loop(frame: LoopFrame, *grads: Gradient | None) -> list[Tensor | None]:
    """Return the gradients of what enters the loop."""
    return _WayBack(
        frame, [None if each is None else convert_to_tensor(each) for each in grads]
    ).gradients()


class _WayBack:
    """The gradient of one loop.

    The way back carries the gradients of the variables, and sums those of the invariants.
    """

    def __init__(self, frame: LoopFrame, grads: Sequence[Tensor | None]) -> None:
        self._frame = frame
        self._given: dict[LoopVariable, list[Tensor]] = {}
        for (variable, _), grad in zip(frame.ends, grads, strict=True):
            if grad is not None:
                self._given.setdefault(variable, []).append(grad)
        self._stops = [
            *(each.value for each in frame.variables),
            *(each.outputs[0] for each in frame.invariants),
        ]
        self._variables, reached = self._reached()
        self._invariants = [
            each
            for each in frame.invariants
            if each.outputs[0] in reached and _is_summed(each.inputs[0])
        ]

    def _reached(self) -> tuple[list[LoopVariable], set[Tensor]]:
        """Return (variables, tensors) on which the results of any iteration depend."""
        variables = [each for each in self._frame.variables if each in self._given]
        while True:
            reached = connected([each.following for each in variables], self._stops)
            more = [
                each
                for each in self._frame.variables
                if each.value in reached and each not in variables and _is_carried(each.value)
            ]
            if not more:
                return variables, reached
            variables += more

    def gradients(self) -> list[Tensor | None]:
        """Add the While operation, and return the gradients of what enters."""
        history = _history(self._frame)
        carried = [self._last(each) for each in self._variables]
        sums = [zeros_of(each.inputs[0]) for each in self._invariants]

        def step(left: Tensor, carried: list[Tensor], sums: list[Tensor]) -> Structure:
            graph = get_default_graph()
            assert isinstance(graph, FunctionGraph)
            index = left - 1
            graph.stand_in = IterationValues(history, graph, index)
            return index, *self._step(graph, carried, sums)

        shapes = [TensorShape(())]
        shapes += [_constant_shape(each.value) for each in self._variables]
        shapes += [each.shape for each in sums]
        _, carried, sums = while_loop(
            lambda left, *_: left > 0,
            step,
            (history.count(), carried, sums),
            shapes,
            self._frame.enter.get_attr("parallel_iterations"),
            name="back",
        )
        of_variables = dict(zip(self._variables, carried, strict=True))
        of_invariants = dict(zip(self._invariants, sums, strict=True))
        return [
            *(of_variables.get(each) for each in self._frame.variables),
            *(of_invariants.get(each) for each in self._frame.invariants),
        ]

    def _last(self, variable: LoopVariable) -> Tensor:
        """Return the gradient of a variable after the last iteration."""
        given = self._given.get(variable)
        if given:
            return given[0] if len(given) == 1 else op_function("AddN")(given)
        ends = [tensor for each, tensor in self._frame.ends if each is variable]
        if not ends:
            ends = [op_function("Exit")(variable.switch.outputs[0])]
        return zeros_of(ends[0])

    def _step(
        self, graph: FunctionGraph, carried: Sequence[Tensor], sums: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Return (carried, sums) before an iteration, from those after it."""
        of_variables = [each.value for each in self._variables]
        of_invariants = [each.outputs[0] for each in self._invariants]
        found = backpropagate(
            [each.following for each in self._variables],
            [*of_variables, *of_invariants],
            carried,
            GradientOptions(stops=frozenset(self._stops)),
        )
        count = len(of_variables)
        before = [
            graph.capture(zeros_of(value) if each is None else convert_to_tensor(each))
            for value, each in zip(of_variables, found[:count], strict=True)
        ]
        more = [
            total if each is None else op_function("AddN")([total, convert_to_tensor(each)])
            for total, each in zip(sums, found[count:], strict=True)
        ]
        return before, more


def _is_carried(tensor: Tensor) -> bool:
    return is_trainable(tensor) and tensor.dtype is not DataType.RESOURCE


def _is_summed(tensor: Tensor) -> bool:
    """Return whether an invariant has a gradient; handles of TensorArrays have none."""
    if not is_trainable(tensor):
        return False
    return tensor.dtype is not DataType.RESOURCE or has_variable(tensor)


def _constant_shape(tensor: Tensor) -> TensorShape:
    is_known = tensor.shape.is_fully_defined() and tensor.dtype is not DataType.VARIANT
    return tensor.shape if is_known else TensorShape(None)


def _history(frame: LoopFrame) -> LoopHistory:
    """Return the history of a loop, which all gradients in one call share."""
    histories = current_call().histories
    found = histories.get(frame)
    if not isinstance(found, LoopHistory):
        outside = None if frame.parent is None else _history(frame.parent)
        histories[frame] = found = LoopHistory(frame, outside)
    return found


def _inside(operation: Operation, *_: Gradient | None) -> list[Tensor | None]:
    raise LookupError(
        f"No gradient for operation '{operation.name}' ({operation.type}): it is inside a loop of "
        "version 1; what leaves the loop has a gradient"
    )


LOOP_GRADIENTS: dict[str, Derivation] = {
    **{op: Derivation(_loop, fills_zeros=False) for op in ("Exit", "RefExit")},
    **{
        op: Derivation(_inside, fills_zeros=False)
        for op in ("Enter", "RefEnter", "NextIteration", "RefNextIteration")
    },
}
