"""Which nodes of a step graph check memory: decided once, when the step is compiled.

A value is *large* if it has more bytes than a limit of its graph (`large_bytes`). As long as a run
has met no large value, nothing needs to be counted: the values that exist at one time have few
bytes together. So only these nodes look for large values:

* A *grower*, whose kernel has a bound of its own (`KernelDef.memory`), is checked by that bound,
  and its outputs are looked at afterwards. A bound of less than UNCOUNTED_BYTES needs no check
  before the call: most of it are temporaries.
  Element-wise operations on two shapes are growers unless the analysis of shapes below shows that
  the output has the shape of an input.
* A reader of a *source*, that is of an argument, whose size is known only at run time, or of a
  large constant, looks at the size of that input. So do readers of such a value in function bodies.
* A node with several inputs that are not constants may join them, as Concat does, and looks at what
  they have together.
* A node that takes values from resources, lists, files or functions is looked at afterwards.

The outputs of any other node have no more elements than its input, so they need no check. As soon
as a run has met a large value, every node is checked and its outputs are counted
(`memory_watch.py`).

The shape of an element-wise output is the union of the shapes of its inputs: each is a set of
unknown shapes ("atoms") that broadcast together. An output whose set is that of an input has the
shape of this input. Adding a constant to a value a thousand times makes one grower, not a thousand.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from runtime.clusters.cluster_op import CLUSTER_OP
from runtime.executors.joined_outputs import JOINS, CheckJoin
from runtime.executors.steady_work import (
    ITERATIVE_OPS,
    NUMBERS,
    STEADY_OPS,
    calls_function,
)
from runtime.foundation.errors import OpError
from runtime.framework.broadcast_memory import broadcast_need
from runtime.framework.dtypes import DataType
from runtime.framework.kernel_registry import KernelRegistry, bind_memory
from runtime.framework.memory_account import bytes_of
from runtime.framework.op_kernel import MemoryNeed
from runtime.framework.tensor_value import TensorValue
from runtime.graph.node import Endpoint, Node
from runtime.graph.passes.pruning import StepGraph
from runtime.graph.topology import topological_order

MOST_LARGE_BYTES = 1 << 18
LEAST_LARGE_BYTES = 1 << 10
UNCOUNTED_BYTES = 1 << 24  # of the values of one run that are not large, all together
_MAX_ATOMS = 8  # of a shape; a larger union is a new atom

_OBJECTS = frozenset((DataType.RESOURCE, DataType.VARIANT))


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Ops whose output 0 has the shape of input 0.
_SHAPE_OF_INPUT = _names(
    """
    Identity StopGradient PreventGradient Snapshot Cast Neg Abs Sign Square Sqrt Rsqrt Exp
    Expm1 Log Log1p Sin Cos Tan Tanh Sigmoid Relu Relu6 Elu Selu LeakyRelu Softplus Softsign
    Softmax LogSoftmax BiasAdd BiasAddV1 Reciprocal Inv Floor Ceil Round Rint Erf Erfc IsNan
    IsInf IsFinite LogicalNot Invert ZerosLike OnesLike CheckNumerics TanhGrad SigmoidGrad
    ReluGrad Enter Exit NextIteration LoopCond _Retval
    """
)
# Ops whose outputs are inputs, views of inputs, or what a resource has: they allocate nothing.
_WITHOUT_MEMORY = _names(
    """
    Identity IdentityN StopGradient PreventGradient Reshape ExpandDims Squeeze Shape ShapeN
    Size Rank ReadVariableOp VariableShape VarHandleOp VarIsInitializedOp AssignVariableOp
    Assign VariableV2 Variable NoOp _Retval _Arg Enter Exit NextIteration LoopCond Switch
    Merge RefSwitch RefMerge RefEnter RefExit RefNextIteration ControlTrigger Const
    Placeholder Assert _Send _Recv _HostSend _HostRecv StackPush StackPushV2 Stage
    QueueEnqueueV2 TensorListPushBack TensorListSetItem TensorListGetItem TensorArrayWriteV3
    TensorArrayReadV3
    """
)


# Ops that copy an input only if its elements are not in order.
_VIEWS = _names("Reshape ExpandDims Squeeze")
# Ops with several inputs whose outputs have the shape of one of them.
_OF_ONE_SHAPE = _names(
    """
    AddN AccumulateNV2 BiasAdd BiasAddV1 BiasAddGrad ReluGrad Relu6Grad EluGrad SeluGrad TanhGrad
    SigmoidGrad SoftplusGrad SoftsignGrad LeakyReluGrad Reshape ExpandDims Squeeze Transpose
    StridedSlice Slice Split SplitV Unpack Sum Mean Prod Max Min All Any ArgMax ArgMin Cumsum
    Cumprod Reverse ReverseV2 IdentityN Switch Merge ClipByValue
    """
)
_FRACTIONS = NUMBERS - {DataType.BOOL}
_WITHOUT_NUMBERS = _OBJECTS | {DataType.STRING}
# How the names of ops begin that put their inputs into something that can grow without end.
_KEEPING = (
    "Stage", "MapStage", "OrderedMapStage", "StackPush", "QueueEnqueue", "TensorListPushBack",
    "TensorListSetItem", "TensorListScatter", "TensorArrayWrite", "TensorArrayScatter",
    "TensorMapInsert", "LookupTableInsert", "LookupTableImport", "BarrierInsert",
    "GetSessionHandle", "AddSparseToTensorsMap", "AddManySparseToTensorsMap", "CacheDataset",
)  # fmt: skip
# Inputs whose numbers, not only their shapes, determine the bound of the kernel: by position.
# `steady_work.py` and types tell the others: integers do unless an op is in STEADY_OPS, numbers
# with a fraction don't unless it is in ITERATIVE_OPS.
VALUE_INPUTS: dict[str, frozenset[int]] = {
    "ArgMax": frozenset((1,)),
    "ArgMin": frozenset((1,)),
    "Assert": frozenset((0,)),
    "GatherV2": frozenset((2,)),
    "QuantizedConcat": frozenset(range(1 << 10)),  # the ranges follow any number of tensors
    "RaggedRange": frozenset((0, 1, 2)),
    "ScaleAndTranslate": frozenset((1, 2, 3)),
    "ScaleAndTranslateGrad": frozenset((2, 3)),
    "Where": frozenset((0,)),
}
_SMALL_OUTPUTS = frozenset(("Shape", "ShapeN", "Size", "Rank"))


@dataclasses.dataclass(slots=True)
class MemoryCheck:
    """How the memory of one node is checked."""

    name: str  # of the node
    # The kernel's bound with the attributes; None if it needs no more than its inputs.
    need: MemoryNeed | None = None
    needs_context: bool = False
    is_grower: bool = False
    is_broadcast: bool = (
        False  # of two inputs; then `need` is called only if their product is large
    )
    joined: tuple[int, ...] = ()  # positions of the inputs that are looked at together
    sources: tuple[int, ...] = ()  # positions of the inputs whose size is looked at
    string_sources: tuple[int, ...] = ()  # those of them that are strings
    # Whether the shapes of the inputs at `varying` bound the need.
    is_of_shapes: bool = False
    varying: tuple[int, ...] = ()  # positions of the inputs that are not constants
    known: object = None  # the shapes of the inputs for which the need was last found to be small
    looks_after: bool = False  # whether the sizes of the outputs are looked at
    makes: bool = True  # whether outputs may be new memory, which is then counted
    keeps: bool = False  # whether the kernel may store inputs where they outlive the node
    multiple: int = 1  # of the bytes of its inputs that the kernel needs if it has no bound
    check_join: CheckJoin | None = None  # of a kernel that joins its inputs


def large_bytes(width: int) -> int:
    """Return the bytes above which a value is large, if at most `width` values exist at a time."""
    return max(LEAST_LARGE_BYTES, min(MOST_LARGE_BYTES, UNCOUNTED_BYTES // max(1, width)))


def memory_checks(
    graph: StepGraph, kernels: KernelRegistry, large: int, *, in_order: bool
) -> dict[Node, MemoryCheck]:
    """Return the check of each node that has a kernel.

    If `in_order`, the nodes run in their topological order, so only the first reader looks at a
    source.
    """
    return _Analysis(graph, kernels, large, in_order).checks


class _Analysis:
    """The state of `memory_checks`."""

    def __init__(
        self, graph: StepGraph, kernels: KernelRegistry, large: int, in_order: bool
    ) -> None:
        self._kernels = kernels
        self._large = large
        self._in_order = in_order
        self._sources: set[Endpoint] = {(node, 0) for node in graph.arguments if node is not None}
        self._shapes: dict[Endpoint, frozenset[object]] = {}
        self.checks: dict[Node, MemoryCheck] = {}
        arguments = set(graph.arguments)
        for node in topological_order(graph.nodes):
            if node.op == "Const":
                self._add_constant(node)
            elif node not in arguments:
                self.checks[node] = self._check(node)
            self._add_shapes(node)

    def _add_constant(self, node: Node) -> None:
        value = node.attr("value")
        if isinstance(value, np.ndarray | np.generic):
            if value.size <= 1:
                self._shapes[(node, 0)] = frozenset()
            else:
                self._shapes[(node, 0)] = frozenset((np.shape(value),))
            if value.nbytes > self._large or value.dtype.hasobject:
                self._sources.add((node, 0))

    def _shape(self, endpoint: Endpoint) -> frozenset[object]:
        known = self._shapes.get(endpoint)
        if known is None:
            known = self._shapes[endpoint] = frozenset((endpoint,))
        return known

    def _add_shapes(self, node: Node) -> None:
        if not node.inputs or len(node.output_types) != 1:
            return
        if node.op in _SHAPE_OF_INPUT:
            self._shapes[(node, 0)] = self._shape(node.inputs[0])
        elif node in self.checks and self.checks[node].need is broadcast_need:
            union = frozenset[object]().union(*map(self._shape, node.inputs))
            if len(union) <= _MAX_ATOMS:
                self._shapes[(node, 0)] = union

    def _check(self, node: Node) -> MemoryCheck:
        if node.op == CLUSTER_OP:  # what an engine allocates is not known before
            return MemoryCheck(node.name, looks_after=True)
        is_free = node.op in _WITHOUT_MEMORY
        check = MemoryCheck(node.name, multiple=0 if is_free else 1)
        check.check_join = JOINS.get(node.op)
        check.makes = not (is_free or calls_function(node))
        self._add_need(node, check)
        has_objects = _has_objects(node)
        check.keeps = node.op.startswith(_KEEPING)
        if check.is_grower:
            check.looks_after = True
            return check
        if node.op in _WITHOUT_MEMORY and not has_objects and node.inputs:
            if node.op not in _SMALL_OUTPUTS:
                self._pass_sources(node)
            return check
        check.looks_after |= bool(
            has_objects or not node.inputs or node.info.is_stateful or calls_function(node)
        )
        self._join(node, check)
        self._add_sources(node, check)
        return check

    def _pass_sources(self, node: Node) -> None:
        """Let the readers of outputs that are inputs look at them, if these are sources."""
        for index in range(len(node.output_types)):
            position = index if node.op == "IdentityN" else 0
            if node.inputs[position] in self._sources:
                self._sources.add((node, index))

    def _add_need(self, node: Node, check: MemoryCheck) -> None:
        try:
            kernel = self._kernels.find(node)
            bound = bind_memory(kernel, node)
        except OpError:  # the node has no kernel, which the executor reports
            return
        if node.op in _VIEWS:
            check.need = _copy_need
            return
        if bound is None:
            if isinstance(kernel.memory, int):
                check.multiple = kernel.memory
            else:
                check.looks_after = check.makes
            return
        check.need, check.needs_context = bound
        check.is_grower = True
        if check.need is broadcast_need:
            shapes = [self._shape(each) for each in node.inputs]
            union = frozenset[object]().union(*shapes)
            check.is_grower = union not in shapes
            check.is_broadcast = len(shapes) == 2
        varying = [at for at, (source, _) in enumerate(node.inputs) if source.op != "Const"]
        kinds = {_type_of(node.inputs[at]) for at in varying}
        is_steady = node.op in STEADY_OPS and kinds.isdisjoint(_WITHOUT_NUMBERS)
        check.varying = tuple(varying)
        reads_values = not VALUE_INPUTS.get(node.op, frozenset()).isdisjoint(varying)
        check.is_of_shapes = (
            bool(varying)
            and not reads_values
            and (
                check.is_broadcast
                or is_steady
                or (kinds <= _FRACTIONS and node.op not in ITERATIVE_OPS)
            )
        )

    def _join(self, node: Node, check: MemoryCheck) -> None:
        """Let a node that may join its inputs look at the numbers among them."""
        if node.op in _OF_ONE_SHAPE or len(node.inputs) < 2:
            return
        joined = [
            position
            for position, endpoint in enumerate(node.inputs)
            if endpoint[0].op != "Const"
            and _type_of(endpoint) not in _WITHOUT_NUMBERS
            and not node.input_is_ref[position]
        ]
        if len(joined) > 1:
            check.joined = tuple(joined)

    def _add_sources(self, node: Node, check: MemoryCheck) -> None:
        read = [
            (position, endpoint)
            for position, endpoint in enumerate(node.inputs)
            if _type_of(endpoint) not in _OBJECTS
            and (endpoint in self._sources or _is_dereferenced(node, position))
        ]
        is_string = {position: _type_of(each) is DataType.STRING for position, each in read}
        check.sources = tuple(position for position, _ in read if not is_string[position])
        check.string_sources = tuple(position for position, _ in read if is_string[position])
        if self._in_order:
            self._sources.difference_update(each for _, each in read)


def _copy_need(value: TensorValue, *shape: TensorValue) -> int:
    """Return the need of an op of _VIEWS."""
    is_view = not isinstance(value, np.ndarray) or value.flags.c_contiguous
    return 0 if is_view else bytes_of(value)


def _type_of(endpoint: Endpoint) -> DataType:
    node, index = endpoint
    return node.output_types[index]


def _has_objects(node: Node) -> bool:
    """Return whether an input is a resource, a variant, or a reference to a variable."""
    return any(node.input_is_ref) or any(_type_of(each) in _OBJECTS for each in node.inputs)


def _is_dereferenced(node: Node, position: int) -> bool:
    source, index = node.inputs[position]
    return source.output_is_ref[index] and not node.input_is_ref[position]
