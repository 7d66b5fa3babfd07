"""`cond` and `while_loop`, which add If and While operations with functions built in Python.

TF: tensorflow/python/ops/cond_v2.py, while_v2.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import protos as pb
from runtime.client.framework.argument_types import Structure, TensorLike
from runtime.client.framework.function_graph import FunctionGraph, output_shapes
from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.op_call import apply_op
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.framework.tensor_shape import ShapeLike, TensorShape
from runtime.client.ops import op_function
from runtime.client.ops.construction import convert_to_tensor
from runtime.client.structures import flatten, is_same_structure, pack_as
from runtime.framework import op_def_registry
from runtime.framework.dtypes import DataType


def cond(
    pred: TensorLike,
    true_fn: Callable[[], Structure],
    false_fn: Callable[[], Structure],
    name: str = "cond",
) -> Structure:
    """Return the result of `true_fn` if the bool scalar `pred` is true, else of `false_fn`.

    Both functions must return tensors (or values) in the same structure. If they return operations
    only, the result is the If operation. Raises ValueError if the results differ in type or
    structure, TypeError if a function is not callable or `pred` is a Python bool.
    """
    for argument, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise TypeError(f"'{argument}' must be callable.")
    if isinstance(pred, bool):
        raise TypeError("'pred' must not be a Python bool.")
    graph = get_default_graph()
    with graph.name_scope(name) as scope:
        base = scope[:-1].replace("/", "_")
        branches = [FunctionGraph(f"{base}_true", graph), FunctionGraph(f"{base}_false", graph)]
        results = [
            _build_branch(branch, function)
            for branch, function in zip(branches, (true_fn, false_fn), strict=True)
        ]
        _check_same(*branches, *results)
        captured = list(dict.fromkeys([*branches[0].captures, *branches[1].captures]))
        for branch in branches:
            _set_captured_arguments(branch, captured)
        operation = _add_if(scope, pred, branches, captured)
    if not branches[0].outputs:
        return operation
    packed = pack_as(results[0], list(operation.outputs))
    is_single = isinstance(packed, list | tuple) and len(packed) == 1
    return packed[0] if is_single else packed


def _build_branch(branch: FunctionGraph, function: Callable[[], Structure]) -> Structure:
    """Build a branch, and return its result with tensors of the branch as leaves."""
    result = branch.build(function)
    with branch.as_default():
        leaves = [leaf for leaf in flatten(result) if not _is_effect(leaf)]
        branch.outputs = [branch.capture(convert_to_tensor(leaf)) for leaf in leaves]
    if not branch.outputs:
        return ()
    return pack_as(result, list(branch.outputs))


def _is_effect(leaf: object) -> bool:
    return leaf is None or isinstance(leaf, Operation)


def _check_same(
    true_branch: FunctionGraph,
    false_branch: FunctionGraph,
    true_result: Structure,
    false_result: Structure,
) -> None:
    for argument, branch, other in (
        ("true_fn", true_branch, false_branch),
        ("false_fn", false_branch, true_branch),
    ):
        if not branch.outputs and other.outputs:
            raise ValueError(f"'{argument}' must have a return value.")
    if not is_same_structure(true_result, false_result):
        raise ValueError(
            "The two structures don't have the same nested structure.\n\n"
            f"First structure: {true_result}\n\nSecond structure: {false_result}"
        )
    pairs = zip(true_branch.outputs, false_branch.outputs, strict=True)
    for true_value, false_value in pairs:
        if true_value.dtype is not false_value.dtype:
            raise ValueError(
                "Outputs of 'true_fn' and 'false_fn' must have the same type(s). Received "
                f"{true_value.dtype.name_on_wire} from 'true_fn' and "
                f"{false_value.dtype.name_on_wire} from "
                "'false_fn'."
            )


def _set_captured_arguments(branch: FunctionGraph, captured: Sequence[Tensor]) -> None:
    """Make the arguments of a branch its captures of the tensors `captured`, in this order."""
    for tensor in captured:
        branch.capture(tensor)
    branch.arguments = [branch.captures[tensor] for tensor in captured]


def _add_if(
    scope: str, pred: TensorLike, branches: Sequence[FunctionGraph], captured: Sequence[Tensor]
) -> Operation:
    graph = branches[0].outer
    _add_to_library(branches)
    stateful = any(branch.is_stateful for branch in branches)
    arguments = {
        "cond": convert_to_tensor(pred, name="pred"),
        "input": captured,
        "Tout": [tensor.dtype for tensor in branches[0].outputs],
        "then_branch": branches[0],
        "else_branch": branches[1],
        "output_shapes": output_shapes([_with_common_shape(*pair) for pair in _pairs(branches)]),
    }
    op_def = op_def_registry.look_up("If" if stateful else "StatelessIf")
    operation = apply_op(graph, op_def, arguments, scope)
    for output, pair in zip(operation.outputs, _pairs(branches), strict=True):
        output.set_shape(_with_common_shape(*pair).shape)
    return operation


def _pairs(branches: Sequence[FunctionGraph]) -> list[tuple[Tensor, Tensor]]:
    return list(zip(branches[0].outputs, branches[1].outputs, strict=True))


def _with_common_shape(one: Tensor, other: Tensor) -> Tensor:
    """Return a tensor whose static shape is what `one` and `other` have in common.

    A size in which they differ is unknown.
    """
    if one.shape == other.shape:
        return one
    unknown = Tensor(one.op, one.value_index, one.dtype, False)
    if one.shape.rank is not None and one.shape.rank == other.shape.rank:
        sizes = zip(one.shape.as_list(), other.shape.as_list(), strict=True)
        unknown.set_shape([a if a == b else None for a, b in sizes])
    return unknown


def _add_to_library(functions: Sequence[FunctionGraph]) -> None:
    library = pb.FunctionDefLibrary(function=[each.to_function_def() for each in functions])
    functions[0].outer.add_functions(library)


def while_loop(
    cond: Callable[..., Structure],
    body: Callable[..., Structure],
    loop_vars: Sequence[Structure],
    shape_invariants: Sequence[ShapeLike] | None = None,
    parallel_iterations: int = 10,
    maximum_iterations: TensorLike | None = None,
    name: str = "while",
) -> Structure:
    """Apply `body` to the loop variables while `cond` is true, and return their last values.

    Both functions take the loop variables. `cond` must return a bool scalar, `body` the next values
    in the same structure. `shape_invariants` has one shape per variable, which must hold in every
    iteration (default: the initial shapes). A single loop variable is returned without a list.
    Raises TypeError and ValueError if types, shapes or structure change.
    """
    for argument, function in (("cond", cond), ("body", body)):
        if not callable(function):
            raise TypeError(f"'{argument}' must be callable.")
    graph = get_default_graph()
    with graph.name_scope(name) as scope:
        loop = _Loop(scope, list(loop_vars), shape_invariants, maximum_iterations)
        operation = loop.build(cond, body, parallel_iterations)
    results = operation.outputs[loop.hidden : loop.hidden + len(loop.initial)]
    packed = pack_as(loop_vars, list(results))
    return packed[0] if len(results) == 1 else packed


def switch(data: TensorLike, pred: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Put `data` on the output that `pred` selects; the other output is dead.

    Returns (output_false, output_true). This is control flow of TensorFlow 1: operations that read
    a dead output do not run, and `merge` joins both outputs.
    """
    op = "RefSwitch" if isinstance(data, Tensor) and data.is_ref else "Switch"
    result = op_function(op)(data, pred, name=name)
    return result[0], result[1]


def merge(inputs: Sequence[TensorLike], name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return (value, index) of the input that is not dead.

    Raises ValueError if an input is None.
    """
    if any(each is None for each in inputs):
        raise ValueError(f"At least one of the merge inputs is None: {inputs}")
    result = op_function("Merge")(list(inputs), name=name)
    return result[0], result[1]


class _Loop:
    """The state of one `while_loop`: its variables, and the two functions under construction."""

    def __init__(
        self,
        scope: str,
        loop_vars: list[Structure],
        invariants: Sequence[ShapeLike] | None,
        maximum_iterations: TensorLike | None,
    ) -> None:
        self._graph = get_default_graph()
        self._scope = scope
        self._structure = loop_vars
        self.initial = [self._graph.capture(convert_to_tensor(leaf)) for leaf in flatten(loop_vars)]
        shapes = [each.shape for each in self.initial]
        if invariants is not None:
            shapes = [TensorShape(each) for each in invariants]
        self._shapes = shapes
        # `maximum_iterations` becomes a hidden first variable, the number of iterations left.
        self._limit = []
        if maximum_iterations is not None:
            self._limit = [convert_to_tensor(maximum_iterations, DataType.INT32, "limit")]
        self.hidden = len(self._limit)

    def build(
        self,
        cond: Callable[..., Structure],
        body: Callable[..., Structure],
        parallel_iterations: int,
    ) -> Operation:
        """Build both functions and add the While operation."""
        base = self._scope[:-1].replace("/", "_")
        condition = FunctionGraph(f"{base}_cond", self._graph)
        step = FunctionGraph(f"{base}_body", self._graph)
        for function in (condition, step):
            for tensor, shape in zip(self._limit + self.initial, self._all_shapes, strict=True):
                function.add_argument(tensor.dtype, shape)
        condition.outputs = [self._build_condition(condition, cond)]
        step.outputs = self._build_body(step, body)
        captured = list(dict.fromkeys([*condition.captures, *step.captures]))
        for function in (condition, step):
            variables = function.arguments[: self.hidden + len(self.initial)]
            _set_captured_arguments(function, captured)
            function.arguments = [*variables, *function.arguments]
        step.outputs += [step.captures[tensor] for tensor in captured]
        return self._add_while(condition, step, captured, parallel_iterations)

    @property
    def _all_shapes(self) -> list[TensorShape]:
        return [TensorShape(()) for _ in self._limit] + self._shapes

    def _variables(self, function: FunctionGraph) -> Structure:
        return pack_as(self._structure, list(function.arguments[self.hidden :]))

    def _build_condition(self, condition: FunctionGraph, cond: Callable[..., Structure]) -> Tensor:
        result = condition.build(cond, *self._variables(condition))
        with condition.as_default():
            holds = condition.capture(convert_to_tensor(result))
            if holds.dtype is not DataType.BOOL:
                raise TypeError(
                    f"Input 'input' of 'LoopCond' Op has type {holds.dtype.name_on_wire} that "
                    "does not match expected type of bool."
                )
            return holds & (condition.arguments[0] > 0) if self._limit else holds

    def _build_body(self, step: FunctionGraph, body: Callable[..., Structure]) -> list[Tensor]:
        result = step.build(body, *self._variables(step))
        if len(self._structure) == 1 and not isinstance(result, list | tuple):
            result = [result]
        leaves = flatten(result)
        if len(leaves) != len(self.initial):
            raise ValueError(
                "The two structures don't have the same nested structure.\n\n"
                f"First structure: {result}\n\nSecond structure: {self._structure}"
            )
        with step.as_default():
            outputs = [
                step.capture(convert_to_tensor(leaf, _type_hint(leaf, initial)))
                for leaf, initial in zip(leaves, self.initial, strict=True)
            ]
            for initial, shape, output in zip(self.initial, self._shapes, outputs, strict=True):
                _check_unchanged(initial, shape, output)
            return [step.arguments[0] - 1, *outputs] if self._limit else outputs

    def _add_while(
        self,
        condition: FunctionGraph,
        step: FunctionGraph,
        captured: list[Tensor],
        parallel_iterations: int,
    ) -> Operation:
        _add_to_library([condition, step])
        stateful = condition.is_stateful or step.is_stateful
        arguments = {
            "input": [*self._limit, *self.initial, *captured],
            "cond": condition,
            "body": step,
            "output_shapes": output_shapes(step.arguments),
            "parallel_iterations": parallel_iterations,
        }
        op_def = op_def_registry.look_up("While" if stateful else "StatelessWhile")
        operation = apply_op(self._graph, op_def, arguments, self._scope)
        for output, argument in zip(operation.outputs, step.arguments, strict=True):
            output.set_shape(argument.shape)
        return operation


def _type_hint(leaf: object, initial: Tensor) -> DataType | None:
    """Return the type of the loop variable if `leaf` is a Python number that fits it, else None.

    None means that the value keeps its own type.
    """
    if isinstance(leaf, bool) or not isinstance(leaf, int | float):
        return None
    fits = initial.dtype.is_floating or (isinstance(leaf, int) and initial.dtype.is_integer)
    return initial.dtype if fits else None


def _check_unchanged(initial: Tensor, shape: TensorShape, output: Tensor) -> None:
    if output.dtype is not initial.dtype:
        raise TypeError(
            f"Loop var {initial.name} enters the loop with type "
            f"<dtype: '{initial.dtype.name_on_wire}'> but has type "
            f"<dtype: '{output.dtype.name_on_wire}'> after 1 iteration. {initial.name} type "
            "should remain constant."
        )
    if not output.shape.is_compatible_with(shape):
        raise ValueError(
            f"Input tensor '{initial.name}' enters the loop with shape {shape}, but has shape "
            f"{output.shape} after one iteration. To allow the shape to vary across iterations, "
            "use the `shape_invariants` argument of tf.while_loop to specify a less-specific "
            "shape."
        )
