"""Reverse-mode differentiation, from the results back to the sources.

Guarantees: operations are only added, never changed. Each operation is differentiated once, with
the sums of the gradients of its outputs. If all gradients that are summed are IndexedSlices, their
sum is too; otherwise it is a tensor.

TF: tensorflow/python/ops/gradients_util.py (_GradientsHelper)
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Sequence

from runtime.client.framework.function_graph import FunctionGraph
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.framework.tensor_shape import TensorShape
from runtime.client.ops import op_function
from runtime.client.ops.construction import convert_to_tensor, tuple_
from runtime.client.ops.gradient_registry import Derivation, find_derivation
from runtime.client.ops.indexed_slices import IndexedSlices, with_values
from runtime.framework.dtypes import DataType
from runtime.graph.topology import is_loop_node

Gradient = Tensor | IndexedSlices
_HANDLES = (DataType.RESOURCE, DataType.VARIANT)


@dataclasses.dataclass(frozen=True, slots=True)
class GradientOptions:
    """Options of `backpropagate`."""

    colocate: bool = False  # place new operations beside the ones that they differentiate
    gate: bool = False  # use no gradient of an operation before all its gradients exist
    stops: frozenset[Tensor] = frozenset()  # tensors to treat as constants


def is_trainable(tensor: Tensor) -> bool:
    """Return whether a tensor can have a gradient: if it is floating-point, complex or a handle."""
    dtype = tensor.dtype
    return dtype.is_floating or dtype in _HANDLES or dtype.numpy.kind == "c"


def backpropagate(
    results: Sequence[Tensor],
    sources: Sequence[Tensor],
    gradients: Sequence[Gradient | None],
    options: GradientOptions = GradientOptions(),
) -> list[Gradient | None]:
    """Return the gradients of `sources`; None for a source on which no result depends.

    `gradients` are the gradients of the results. All tensors must belong to one graph. Raises
    LookupError if an operation between sources and results has no gradient function, ValueError if
    a gradient function does not return one gradient per input.
    """
    order = _dependent(results, sources)
    backpropagation = _Backpropagation(order, options)
    for result, gradient in zip(results, gradients, strict=True):
        if gradient is not None and is_trainable(result):
            backpropagation.add(result, gradient)
    for operation in reversed(order):
        backpropagation.differentiate(operation)
    return [backpropagation.total(source) for source in sources]


def _dependent(results: Iterable[Tensor], sources: Sequence[Tensor]) -> list[Operation]:
    """Return the operations between sources and results, in topological order."""
    wanted = set(sources)
    depends: dict[Operation, bool] = {}
    order: list[Operation] = []
    pending = [(result.op, False) for result in results]
    while pending:
        operation, is_read = pending.pop()
        if is_read:
            depends[operation] = _depends(operation, wanted, depends)
            if depends[operation]:
                order.append(operation)
        elif operation not in depends:
            depends[operation] = False  # provisional; the back edge of a loop reads this
            pending.append((operation, True))
            pending += [(tensor.op, False) for tensor in operation.inputs]
    return order


def _depends(operation: Operation, wanted: set[Tensor], known: dict[Operation, bool]) -> bool:
    if any(tensor in wanted for tensor in operation.outputs):
        return True
    if not any(known[tensor.op] for tensor in operation.inputs):
        return False
    derivation = find_derivation(operation)
    return derivation is None or derivation.function is not None


class _Backpropagation:
    """The state of one `backpropagate`: the gradients found so far for each tensor."""

    def __init__(self, dependent: Sequence[Operation], options: GradientOptions) -> None:
        self._options = options
        self._dependent = set(dependent)
        self._stops = {tensor.op for tensor in options.stops}
        self._found: dict[Tensor, list[Gradient]] = {}
        self._totals: dict[Tensor, Gradient] = {}

    def add(self, tensor: Tensor, gradient: Gradient) -> None:
        """Add `gradient` to the gradients of `tensor`, which `total` sums."""
        self._found.setdefault(tensor, []).append(gradient)

    def total(self, tensor: Tensor) -> Gradient | None:
        """Return the sum of the gradients added for `tensor`, or None if there are none."""
        found = self._found.get(tensor)
        if found is None:
            return None
        if tensor not in self._totals:
            self._totals[tensor] = _sum(found)
        return self._totals[tensor]

    def differentiate(self, operation: Operation) -> None:
        """Propagate the gradients of the outputs of `operation` to its inputs."""
        totals = [self.total(output) for output in operation.outputs]
        is_wanted = any(tensor.op in self._dependent for tensor in operation.inputs)
        is_reached = any(total is not None for total in totals)
        if operation in self._stops or not is_wanted or not is_reached:
            return
        derivation = find_derivation(operation)
        if derivation is None:
            raise LookupError(_no_gradient_message(operation))
        if derivation.function is None:
            return
        with contextlib.ExitStack() as scopes:
            scopes.enter_context(operation.graph.name_scope(f"{operation.name}_grad"))
            if self._options.colocate:
                scopes.enter_context(operation.graph.colocate_with(operation, ignore_existing=True))
            found = self._derive(operation, derivation, totals)
            for tensor, gradient in zip(operation.inputs, found, strict=True):
                if gradient is not None and tensor.op in self._dependent and is_trainable(tensor):
                    self.add(tensor, _with_shape_of(gradient, tensor, operation))

    def _derive(
        self, operation: Operation, derivation: Derivation, totals: list[Gradient | None]
    ) -> list[Gradient | None]:
        """Call the gradient function, and return one gradient per input (None if it has none)."""
        given: list[Gradient | None] = [
            zeros_of(output)
            if total is None and derivation.fills_zeros and is_trainable(output)
            else total
            for output, total in zip(operation.outputs, totals, strict=True)
        ]
        if not derivation.takes_slices:
            given = [convert_to_tensor(each) if each is not None else None for each in given]
        assert derivation.function is not None  # checked by the caller
        answer = derivation.function(operation, *given)
        answers = list(answer) if isinstance(answer, list | tuple) else [answer]
        if len(answers) != len(operation.inputs):
            raise ValueError(
                f"Num gradients {len(answers)} generated for op {operation.name} "
                f"({operation.type}) do not match num inputs {len(operation.inputs)}"
            )
        found: list[Gradient | None] = [
            each if each is None or isinstance(each, IndexedSlices) else convert_to_tensor(each)
            for each in answers
        ]
        if self._options.gate and sum(each is not None for each in found) > 1:
            return _gated(found)
        return found


def _no_gradient_message(operation: Operation) -> str:
    what = f"No gradient defined for operation '{operation.name}' (op type: {operation.type}). "
    if is_loop_node(operation.node):
        return (
            f"{what}Loops and branches of version 1 are not differentiated here; those of "
            "`while_loop` and `cond` are"
        )
    return (
        f"{what}`RegisterGradient` gives an op a gradient function, `NotDifferentiable` or "
        "`stop_gradient` says that there is none"
    )


def _gated(found: list[Gradient | None]) -> list[Gradient | None]:
    values = [each.values if isinstance(each, IndexedSlices) else each for each in found]
    return [
        None if value is None else with_values(each, value)
        for each, value in zip(found, tuple_(values), strict=True)
    ]


def _with_shape_of(gradient: Gradient, tensor: Tensor, operation: Operation) -> Gradient:
    """Give the gradient the static shape of its tensor, unless that is a handle.

    Raises ValueError if the shapes contradict.
    """
    if isinstance(gradient, Tensor) and tensor.dtype not in _HANDLES:
        try:
            gradient.set_shape(tensor.shape)
        except ValueError:
            raise ValueError(
                "Incompatible shapes between op input and calculated input gradient. Forward "
                f"operation: {operation.name}. Original input shape: {tensor.shape}. Calculated "
                f"input gradient shape: {gradient.shape}"
            ) from None
    return gradient


def _sum(found: list[Gradient]) -> Gradient:
    if len(found) == 1:
        return found[0]
    slices = [each for each in found if isinstance(each, IndexedSlices)]
    if len(slices) < len(found):
        total: Tensor = op_function("AddN")([convert_to_tensor(each) for each in found])
        return total
    wide = max((each.indices.dtype for each in slices), key=int)
    indices = [op_function("Cast")(each.indices, DstT=wide) for each in slices]
    shape = next((each.dense_shape for each in slices if each.dense_shape is not None), None)
    values = op_function("ConcatV2")([each.values for each in slices], 0)
    return IndexedSlices(values, op_function("ConcatV2")(indices, 0), shape)


# --- zeros ----------------------------------------------------------------------------------------


def zeros_of(tensor: Tensor) -> Tensor:
    """Return zeros of the shape and type of `tensor`; if it is a handle, of its variable."""
    zeros: Tensor
    if tensor.dtype is not DataType.RESOURCE:
        zeros = op_function("ZerosLike")(tensor)
        return zeros
    dtype, shape = variable_type(tensor)
    sizes = shape.sizes if shape.is_fully_defined() else op_function("VariableShape")(tensor)
    zero = convert_to_tensor(dtype.numpy.type(0), dtype)
    sizes = convert_to_tensor(sizes, DataType.INT32)
    zeros = op_function("Fill")(sizes, zero)
    return zeros


def variable_type(handle: Tensor) -> tuple[DataType, TensorShape]:
    """Return (element type, shape) of the variable that a resource handle refers to.

    Raises LookupError if no VarHandleOp created the handle.
    """
    graph: object = handle.graph
    while isinstance(graph, FunctionGraph):
        outside = {argument: tensor for tensor, argument in graph.captures.items()}
        if handle not in outside:
            break
        handle, graph = outside[handle], graph.outer
    if handle.op.type != "VarHandleOp":
        raise LookupError(
            f"The variable of '{handle.name}' is not known: it comes from {handle.op.type}, "
            "VarHandleOp was expected"
        )
    return handle.op.get_attr("dtype"), TensorShape(handle.op.get_attr("shape"))
