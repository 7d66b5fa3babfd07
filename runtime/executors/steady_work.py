"""Whether the sizes of a step's feeds bound its work, so that past runs predict the next one.

A step that was short may run on an event loop, which no other thread can interrupt. That is safe
only if the next run is short too. The values of feeds must therefore not determine how much there
is to do, as they do for Fill, While and IteratorGetNext; the sizes of feeds may.

A value is *given* if it depends on the values of feeds, variables or other state, and not only on
their shapes. Given numbers with a fraction determine no work, except in `ITERATIVE_OPS`. Given
integers, strings, resources and variants may determine work, except in the inputs that the tables
below name.

Guarantees: a given integer, string, resource or variant that reaches an op which no table names
makes the work of the step unsteady; so do functions, version 1 loops and other ops with state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from runtime.framework.dtypes import DataType
from runtime.graph.node import Node
from runtime.graph.passes.pruning import StepGraph
from runtime.graph.topology import is_loop_node, topological_order


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Ops that depend on the shapes of their inputs only.
_SHAPE_OPS = frozenset(("Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike"))

# Ops with state whose work the sizes of their inputs and of their variables or tables bound.
_STEADY_STATE = _names(
    """
    VarHandleOp VariableV2 Variable ReadVariableOp AssignVariableOp AssignAddVariableOp
    AssignSubVariableOp VarIsInitializedOp IsVariableInitialized Assign AssignAdd AssignSub
    VariableShape ResourceGather ResourceGatherNd ResourceScatterAdd ResourceScatterUpdate
    HashTable HashTableV2 MutableHashTable MutableHashTableV2 LookupTableFind LookupTableFindV2
    LookupTableInsert LookupTableInsertV2 LookupTableSize LookupTableSizeV2 _Arg Placeholder
    PlaceholderV2 NoOp RandomUniform RandomUniformInt RandomStandardNormal TruncatedNormal
    CheckNumerics CheckNumericsV2
    """
)

# Ops of which no integer or string input determines more work than its size does.
STEADY_OPS = _names(
    """
    _Arg _Retval Identity IdentityN StopGradient PreventGradient Snapshot NoOp Cast Bitcast
    PlaceholderWithDefault EnsureShape Add AddV2 AddN Sub Mul Div RealDiv FloorDiv TruncateDiv
    FloorMod Mod TruncateMod DivNoNan Neg Abs Sign Square SquaredDifference Maximum Minimum
    Equal NotEqual Less LessEqual Greater GreaterEqual ApproximateEqual LogicalAnd LogicalOr
    LogicalNot BitwiseAnd BitwiseOr BitwiseXor Invert Select SelectV2 ClipByValue BiasAdd Sum
    Prod Max Min Mean Any All ArgMax ArgMin Cumsum MatMul BatchMatMul BatchMatMulV2 Reshape
    ExpandDims Squeeze Transpose Concat ConcatV2 Pack Unpack Split SplitV Slice
    StridedSlice Reverse ReverseV2 Gather GatherV2 GatherNd ReverseSequence TopK TopKV2 Where
    Unique UniqueV2 InvertPermutation VarHandleOp VariableV2 Variable ReadVariableOp
    AssignVariableOp AssignAddVariableOp AssignSubVariableOp VarIsInitializedOp
    IsVariableInitialized Assign AssignAdd AssignSub VariableShape ResourceGather
    ResourceGatherNd ResourceScatterAdd ResourceScatterUpdate LookupTableFind LookupTableFindV2
    LookupTableInsert LookupTableInsertV2 LookupTableSize LookupTableSizeV2 AsString
    StringToNumber StringLength StringLower StringUpper StringStrip StringJoin
    StringToHashBucket StringToHashBucketFast StringToHashBucketStrong RegexFullMatch
    StaticRegexFullMatch StringSplit StringSplitV2
    """
)

# Ops of which only the given inputs, by position, determine no more work than their sizes do.
_STEADY_INPUTS: dict[str, frozenset[int]] = {
    "OneHot": frozenset((0,)),  # indices
    "SparseToDense": frozenset((0,)),
    "Pad": frozenset((0,)),
    "PadV2": frozenset((0, 2)),
    "Tile": frozenset((0,)),
    "BroadcastTo": frozenset((0,)),
    "Fill": frozenset((1,)),
    "SparseSoftmaxCrossEntropyWithLogits": frozenset((1,)),
    "InTopK": frozenset((1,)),
    "InTopKV2": frozenset((1,)),
}

# Ops whose number of iterations or outputs depends on the values of floating-point inputs.
ITERATIVE_OPS = _names(
    """
    Range LinSpace RandomGamma RandomGammaGrad RandomPoisson RandomPoissonV2 Multinomial
    ParameterizedTruncatedNormal StatelessParameterizedTruncatedNormal StatelessRandomGammaV2
    StatelessRandomGammaV3 StatelessRandomPoisson StatelessRandomBinomial StatefulRandomBinomial
    StatelessMultinomial Betainc Igamma Igammac IgammaGradA Zeta Polygamma
    GenerateBoundingBoxProposals CTCBeamSearchDecoder ImageProjectiveTransformV3
    """
)

NUMBERS = frozenset(
    (DataType.BOOL, DataType.HALF, DataType.BFLOAT16, DataType.FLOAT, DataType.DOUBLE,
     DataType.COMPLEX64, DataType.COMPLEX128)
)  # fmt: skip


def has_steady_work(graph: StepGraph, written: Collection[Node] = ()) -> bool:
    """Return whether the sizes of the feeds of a pruned and optimised graph bound its work.

    `written` are nodes that a model of clusters was written for. A loop among them has as many
    iterations as its lists have elements, whoever runs it, and its lists are among them too.
    """
    given: set[Node] = {node for node in graph.arguments if node is not None}
    for node in topological_order(graph.nodes):
        if node.op == "Const":
            continue
        if node in written and (calls_function(node) or _has_list(node)):
            given.add(node)
            continue
        if (
            is_loop_node(node)
            or calls_function(node)
            or (node.info.is_stateful and node.op not in _STEADY_STATE)
        ):
            return False
        positions = [
            position for position, (source, _) in enumerate(node.inputs) if source in given
        ]
        if not _is_steady(node, positions):
            return False
        if node.op not in _SHAPE_OPS and (positions or node.info.is_stateful):
            given.add(node)
    return True


def _is_steady(node: Node, given: Iterable[int]) -> bool:
    """Return whether the given inputs at these positions determine no work of `node`."""
    if node.op in STEADY_OPS:
        return True
    allowed = _STEADY_INPUTS.get(node.op, frozenset())
    for position in given:
        source, index = node.inputs[position]
        if source.output_types[index] in NUMBERS:
            if node.op in ITERATIVE_OPS:
                return False
        elif node.op not in _SHAPE_OPS and position not in allowed:
            return False
    return True


def calls_function(node: Node) -> bool:
    """Return whether an attribute of the node is a function, as those of a loop or a call are."""
    return any(kind in ("func", "list(func)") for kind in node.info.attr_types.values())


def _has_list(node: Node) -> bool:
    read = (source.output_types[index] for source, index in node.inputs)
    return DataType.VARIANT in (*read, *node.output_types)
