"""Gradient functions of function calls, If, Case and While, which recompute the forward functions.

A gradient needs intermediate values of the forward functions. Existing operations are never changed
to return them. Instead, the functions are computed again beside the gradient. A call or a branch is
computed again once. For a loop, a second loop stores the variables of each iteration in tensor
lists, and the gradient loop recomputes each iteration from them. If a function has operations that
must not run twice, such as random numbers and assignments, its gradient raises LookupError.

TF: tensorflow/python/ops/cond_v2.py (_IfGrad), while_v2.py (_WhileGrad)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.client.framework.argument_types import Structure
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.framework.tensor_shape import TensorShape
from runtime.client.ops import op_function
from runtime.client.ops.construction import constant, convert_to_tensor
from runtime.client.ops.control_flow import cond, while_loop
from runtime.client.ops.gradients.backpropagation import (
    Gradient,
    GradientOptions,
    backpropagate,
    is_trainable,
    zeros_of,
)
from runtime.client.ops.gradients.function_replay import Replay
from runtime.client.ops.gradients.gradient_registry import Derivation


def _function_gradients(
    replay: Replay, inputs: Sequence[Tensor], grads: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """Return the gradients of a function's inputs, from `grads`, the gradients of its results.

    If a tensor is given twice, only its first index has its gradient, the other has None.
    """
    arguments = [convert_to_tensor(each) for each in inputs]
    gradients = [None if each is None else convert_to_tensor(each) for each in grads]
    options = GradientOptions(stops=frozenset(arguments))
    found = backpropagate(replay.results(arguments), arguments, gradients, options)
    return [
        None if each is None or arguments.index(argument) < place else convert_to_tensor(each)
        for place, (argument, each) in enumerate(zip(arguments, found, strict=True))
    ]


def _dense(grads: Sequence[Gradient | None]) -> list[Tensor | None]:
    return [None if each is None else convert_to_tensor(each) for each in grads]


def _call(operation: Operation, *grads: Gradient | None) -> list[Tensor | None]:
    return _function_gradients(Replay.of(operation, "f"), operation.inputs, _dense(grads))


def _if(operation: Operation, *grads: Gradient | None) -> list[Tensor | None]:
    """Add an If operation whose branches compute the gradients of the branches."""
    replays = [Replay.of(operation, attr) for attr in ("then_branch", "else_branch")]
    pred = operation.inputs[0]
    return _branches(operation, replays, [pred], grads)


def _case(operation: Operation, *grads: Gradient | None) -> list[Tensor | None]:
    """Add If operations that choose among the gradients of the branches.

    An index that is not in the range chooses the last branch.
    """
    functions = operation.node.attr("branches")
    library = operation.graph.library
    replays = [Replay(library, each, operation.name) for each in functions]
    index = operation.inputs[0]
    equal = op_function("Equal")
    choices = [equal(index, place) for place in range(len(replays) - 1)]
    return _branches(operation, replays, choices, grads)


def _branches(
    operation: Operation,
    replays: Sequence[Replay],
    choices: Sequence[Tensor],
    grads: Sequence[Gradient | None],
) -> list[Tensor | None]:
    """Return the gradients of the inputs after the first, which chooses the branch.

    A branch is taken if its choice is true and none before it; the last one has no choice. An input
    that some branches don't read has zeros for its gradient in these.
    """
    inputs = operation.inputs[1:]
    places = [place for place, each in enumerate(inputs) if is_trainable(each)]
    given = _dense(grads)

    def branch(replay: Replay) -> list[Tensor]:
        found = _function_gradients(replay, inputs, given)
        return [
            zeros_of(convert_to_tensor(inputs[place])) if dx is None else dx
            for place, dx in enumerate(found)
            if place in places
        ]

    def rest(first: int) -> list[Tensor]:
        if first == len(choices):
            return branch(replays[first])
        chosen = cond(choices[first], lambda: branch(replays[first]), lambda: rest(first + 1))
        return chosen if isinstance(chosen, list) else [chosen]

    if not places:
        return [None] * len(operation.inputs)
    by_place = dict(zip(places, rest(0), strict=True))
    return [None, *(by_place.get(place) for place in range(len(inputs)))]


# --- loops ----------------------------------------------------------------------------------------


def _while(operation: Operation, *grads: Gradient | None) -> list[Tensor | None]:
    loop = _Loop(operation)
    count, saved = loop.repeat_forward()
    return loop.gradients(count, saved, _dense(grads))


class _Loop:
    """The gradient of one While operation.

    A `place` is the index of a loop variable. A variable is changing if the loop body does not
    return it as it is, else unchanging.
    """

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._inputs = list(operation.inputs)
        self._condition, self._body = (Replay.of(operation, attr) for attr in ("cond", "body"))
        places = range(len(self._inputs))
        self._changing = [place for place in places if not self._body.returns_argument(place)]
        trainable = {place for place in places if is_trainable(self._inputs[place])}
        self._carried = [place for place in self._changing if place in trainable]
        self._read_only = [place for place in places if place in trainable - {*self._changing}]
        self._parallel: int = operation.get_attr("parallel_iterations")

    def _shape(self, place: int) -> TensorShape:
        return self._operation.outputs[place].shape

    def _variables(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Return all loop variables, with `values` for the changing variables."""
        by_place = dict(zip(self._changing, values, strict=True))
        return [by_place.get(place, outside) for place, outside in enumerate(self._inputs)]

    def repeat_forward(self) -> tuple[Tensor, list[Tensor]]:
        """Add a loop that repeats the operation's, and return what it recorded.

        Returns the number of iterations and one tensor list for each changing variable. Element i
        of a list is the value of the variable before iteration i.
        """

        def condition(_: Tensor, values: list[Tensor], __: list[Tensor]) -> Tensor:
            return self._condition.results(self._variables(values))[0]

        def step(count: Tensor, values: list[Tensor], saved: list[Tensor]) -> Structure:
            after = self._body.results(self._variables(values))
            push = op_function("TensorListPushBack")
            pairs = zip(saved, values, strict=True)
            return (
                count + 1,
                [after[place] for place in self._changing],
                [push(kept, value) for kept, value in pairs],
            )

        initial = [self._inputs[place] for place in self._changing]
        lists = [self._empty_list(place) for place in self._changing]
        shapes = [self._shape(place) for place in self._changing]
        count, _, saved = while_loop(
            condition,
            step,
            (constant(0), initial, lists),
            [TensorShape(()), *shapes, *(TensorShape(()) for _ in lists)],
            self._parallel,
            name="repeated",
        )
        return count, saved

    def _empty_list(self, place: int) -> Tensor:
        empty: Tensor = op_function("EmptyTensorList")(
            self._sizes(place), -1, element_dtype=self._inputs[place].dtype
        )
        return empty

    def _sizes(self, place: int) -> np.ndarray:
        """Return a variable's static shape as tensor list ops take it: −1 if a size is unknown."""
        sizes = self._shape(place).sizes
        return np.array(-1 if sizes is None else sizes, np.int32)

    def gradients(
        self, count: Tensor, saved: list[Tensor], grads: Sequence[Tensor | None]
    ) -> list[Tensor | None]:
        """Return the gradients of the inputs, from a loop over the iterations in reverse order.

        The loop passes on the gradients of the changing variables and sums the gradients of the
        unchanging ones.
        """
        carried = [
            _or_zeros(grads[place], self._operation.outputs[place]) for place in self._carried
        ]
        sums = [zeros_of(self._inputs[place]) for place in self._read_only]

        def step(
            left: Tensor, saved: list[Tensor], carried: list[Tensor], sums: list[Tensor]
        ) -> Structure:
            rest, values = self._pop_back(saved)
            arguments = [convert_to_tensor(each) for each in self._variables(values)]
            outgoing: list[Tensor | None] = [None] * len(arguments)
            for place, gradient in zip(self._carried, carried, strict=True):
                outgoing[place] = gradient
            found = _function_gradients(self._body, arguments, outgoing)
            before = [_or_zeros(found[place], arguments[place]) for place in self._carried]
            more = [
                total if found[place] is None else op_function("AddN")([total, found[place]])
                for place, total in zip(self._read_only, sums, strict=True)
            ]
            return left - 1, rest, before, more

        flags = [TensorShape(()) for _ in saved]
        shapes = [each.shape for each in (*carried, *sums)]
        _, _, carried, sums = while_loop(
            lambda left, *_: left > 0,
            step,
            (count, saved, carried, sums),
            [TensorShape(()), *flags, *shapes],
            self._parallel,
            name="back",
        )
        found: list[Tensor | None] = [None] * len(self._inputs)
        for place, gradient in zip(self._carried, carried, strict=True):
            found[place] = gradient
        for place, total in zip(self._read_only, sums, strict=True):
            direct = grads[place]  # an unchanging variable's output is its input
            found[place] = total if direct is None else op_function("AddN")([total, direct])
        return found

    def _pop_back(self, saved: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Remove the last element of each list; return the shorter lists and the elements."""
        rest, values = [], []
        for place, kept in zip(self._changing, saved, strict=True):
            dtype = self._inputs[place].dtype
            shorter, value = op_function("TensorListPopBack")(kept, self._sizes(place), dtype)
            value.set_shape(self._shape(place))
            rest.append(shorter)
            values.append(value)
        return rest, values


def _or_zeros(gradient: Tensor | None, tensor: Tensor) -> Tensor:
    return zeros_of(tensor) if gradient is None else gradient


CALL_GRADIENTS: dict[str, Derivation] = {
    op: Derivation(function, fills_zeros=False)
    for function, names in (
        (_call, ("PartitionedCall", "StatefulPartitionedCall")),
        (_if, ("If", "StatelessIf")),
        (_case, ("Case", "StatelessCase")),
        (_while, ("While", "StatelessWhile")),
    )
    for op in names
}
