"""Reverse-mode differentiation, from the results back to the sources.

Guarantees: operations are only added, never changed. Each operation is differentiated once, with
the sums of the gradients of its outputs. If all gradients that are summed are IndexedSlices, their
sum is too; otherwise it is a tensor. A loop of version 1 is differentiated as one operation.

TF: tensorflow/python/ops/gradients_util.py (_GradientsHelper)
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from runtime.client.framework.function_graph import FunctionGraph
from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.op_call import graph_of
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.framework.tensor_shape import TensorShape
from runtime.client.ops import op_function
from runtime.client.ops.construction import convert_to_tensor, tuple_
from runtime.client.ops.gradients.gradient_registry import Derivation, find_derivation
from runtime.client.ops.gradients.loop_frames import EXITS, LoopFrame, LoopFrames
from runtime.client.ops.indexed_slices import IndexedSlices, with_values
from runtime.framework.dtypes import DataType

Gradient = Tensor | IndexedSlices
_Unit = Operation | LoopFrame  # what is differentiated at once
_HANDLES = (DataType.RESOURCE, DataType.VARIANT)


@dataclasses.dataclass(frozen=True, slots=True)
class GradientOptions:
    """Options of `backpropagate`."""

    colocate: bool = False  # place new operations beside the ones that they differentiate
    gate: bool = False  # use no gradient of an operation before all its gradients exist
    stops: frozenset[Tensor] = frozenset()  # tensors to treat as constants


@dataclasses.dataclass(frozen=True, slots=True)
class GradientCall:
    """What all gradient functions share that one call of `gradients` runs."""

    source: str  # names the call; unique in the graph
    frames: LoopFrames = dataclasses.field(default_factory=LoopFrames)
    histories: dict[LoopFrame, object] = dataclasses.field(default_factory=dict)

    def producer(self, tensor: Tensor) -> _Unit:
        """Return the operation that computes a tensor, or the loop that it leaves."""
        return self.frames.of(tensor.op) if tensor.op.type in EXITS else tensor.op


_current_call: contextvars.ContextVar[GradientCall] = contextvars.ContextVar("gradients")


@contextlib.contextmanager
def gradient_call() -> Iterator[None]:
    """Begin a call of `gradients`, known by the current name scope."""
    token = _current_call.set(GradientCall(get_default_graph().get_name_scope()))
    try:
        yield
    finally:
        _current_call.reset(token)


def current_call() -> GradientCall:
    """Return the call of `gradients` that is running."""
    return _current_call.get()


def gradient_source() -> str:
    """Return the name of the current call of `gradients`, which is unique in the graph."""
    return current_call().source


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
    order = _dependent(results, sources, options.stops)
    backpropagation = _Backpropagation(order, options)
    for result, gradient in zip(results, gradients, strict=True):
        if gradient is not None and is_trainable(result):
            backpropagation.add(result, gradient)
    for operation in reversed(order):
        backpropagation.differentiate(operation)
    return [backpropagation.total(source) for source in sources]


def connected(results: Iterable[Tensor], sources: Sequence[Tensor]) -> set[Tensor]:
    """Return the sources on which results depend without another source between."""
    results = list(results)
    read = {each for unit in _dependent(results, sources, sources) for each in unit.inputs}
    return {each for each in sources if each in read or each in results}


def _dependent(
    results: Iterable[Tensor], sources: Sequence[Tensor], stops: Iterable[Tensor]
) -> list[_Unit]:
    """Return the units between sources and results, in topological order."""
    producer = current_call().producer
    wanted, ends = set(sources), {each.op for each in stops}
    depends: dict[_Unit, bool] = {}
    order: list[_Unit] = []
    pending = [(producer(result), False) for result in results]
    while pending:
        unit, is_read = pending.pop()
        if is_read:
            depends[unit] = _depends(unit, wanted, depends)
            if depends[unit]:
                order.append(unit)
        elif unit not in depends:
            depends[unit] = False  # provisional; the back edge of a loop reads this
            pending.append((unit, True))
            if unit not in ends:
                pending += [(producer(tensor), False) for tensor in unit.inputs]
    return order


def _depends(unit: _Unit, wanted: set[Tensor], known: dict[_Unit, bool]) -> bool:
    if any(tensor in wanted for tensor in unit.outputs):
        return True
    producer = current_call().producer
    if not any(known.get(producer(tensor), False) for tensor in unit.inputs):
        return False
    derivation = _derivation(unit)
    return derivation is None or derivation.function is not None


def _derivation(unit: _Unit) -> Derivation | None:
    return find_derivation(unit.ends[0][1].op if isinstance(unit, LoopFrame) else unit)


class _Backpropagation:
    """The state of one `backpropagate`: the gradients found so far for each tensor."""

    def __init__(self, dependent: Sequence[_Unit], options: GradientOptions) -> None:
        self._options = options
        self._dependent = set(dependent)
        self._producer = current_call().producer
        self._stops = {self._producer(tensor) for tensor in options.stops}
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

    def differentiate(self, unit: _Unit) -> None:
        """Propagate the gradients of the outputs of `unit` to its inputs."""
        totals = [self.total(output) for output in unit.outputs]
        is_wanted = any(self._is_dependent(tensor) for tensor in unit.inputs)
        is_reached = any(total is not None for total in totals)
        if unit in self._stops or not is_wanted or not is_reached:
            return
        derivation = _derivation(unit)
        if derivation is None:
            raise LookupError(_no_gradient_message(unit))
        if derivation.function is None:
            return
        graph = graph_of((), lambda: unit.graph)
        with contextlib.ExitStack() as scopes:
            scopes.enter_context(graph.name_scope(f"{unit.name}_grad"))
            if self._options.colocate and isinstance(unit, Operation) and graph is unit.graph:
                scopes.enter_context(graph.colocate_with(unit, ignore_existing=True))
            found = self._derive(unit, derivation, totals)
            for tensor, gradient in zip(unit.inputs, found, strict=True):
                if gradient is not None and self._is_dependent(tensor) and is_trainable(tensor):
                    self.add(tensor, _with_shape_of(gradient, tensor, unit))

    def _is_dependent(self, tensor: Tensor) -> bool:
        return self._producer(tensor) in self._dependent

    def _derive(
        self, operation: _Unit, derivation: Derivation, totals: list[Gradient | None]
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


def _no_gradient_message(operation: _Unit) -> str:
    return (
        f"No gradient defined for operation '{operation.name}' (op type: {operation.type}). "
        "`RegisterGradient` gives an op a gradient function, `NotDifferentiable` or "
        "`stop_gradient` says that there is none"
    )


def _gated(found: list[Gradient | None]) -> list[Gradient | None]:
    values = [each.values if isinstance(each, IndexedSlices) else each for each in found]
    return [
        None if value is None else with_values(each, value)
        for each, value in zip(found, tuple_(values), strict=True)
    ]


def _with_shape_of(gradient: Gradient, tensor: Tensor, operation: _Unit) -> Gradient:
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
    handle = _origin(handle)
    if handle.op.type != "VarHandleOp":
        raise LookupError(
            f"The variable of '{handle.name}' is not known: it comes from {handle.op.type}, "
            "VarHandleOp was expected"
        )
    return handle.op.get_attr("dtype"), TensorShape(handle.op.get_attr("shape"))


def has_variable(handle: Tensor) -> bool:
    """Return whether `variable_type` knows the variable of a resource handle."""
    return _origin(handle).op.type == "VarHandleOp"


def _origin(handle: Tensor) -> Tensor:
    """Return the output of the operation that created a handle, outside functions and loops."""
    graph: object = handle.graph
    while isinstance(graph, FunctionGraph):
        outside = {argument: tensor for tensor, argument in graph.captures.items()}
        if handle not in outside:
            break
        handle, graph = outside[handle], graph.outer
    while handle.op.type in ("Enter", "Switch"):
        handle = handle.op.inputs[0]
    return handle
