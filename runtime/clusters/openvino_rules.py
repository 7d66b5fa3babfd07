"""What a model of OpenVINO must not have, and which of its runs count.

Emission writes operations as ONNX Runtime computes them. OpenVINO computes in float32: it rounds
doubles, keeps 32 bits of long integers, and has no 8 or 16 bit arithmetic that wraps around. So a
model has operations on float32 alone, and what leads to these: booleans, sizes, positions.

Nor does it keep NaN (its Relu gives 0) or raise for an index out of range. The caller of a model
checks that inputs and results are finite; operations that can make something else of finite numbers
get a check of their own here.

Nothing here imports the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from runtime.clusters import patterns
from runtime.clusters.emission import Emission, Operation, live_operations
from runtime.clusters.emit_cluster import EmittedCluster
from runtime.clusters.patterns.convolution_columns import take_channels_as_columns
from runtime.clusters.values import Value
from runtime.framework.dtypes import DataType

# Without what makes its models of one image slower.
PATTERNS = tuple(each for each in patterns.PATTERNS if each is not take_channels_as_columns)
# Operations that compute with float32 alone.
_COMPUTED = frozenset((
    "Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "AveragePool",
    "BatchNormalization", "Ceil", "Clip", "Conv", "ConvTranspose", "Cos", "Cosh", "CumSum", "Div",
    "Elu", "Erf", "Exp", "Floor", "GRU", "Gelu", "Gemm", "GlobalAveragePool", "LSTM",
    "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax", "MatMul", "Max", "MaxPool", "Min",
    "Mul", "MultiHeadAttention", "Neg", "Pow", "RNN", "Reciprocal", "ReduceL1", "ReduceMax",
    "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "Relu", "Resize", "Round", "Selu",
    "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign", "Sqrt", "Sub", "Tan",
    "Tanh",
))  # fmt: skip
_MOVING = frozenset((
    "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherND", "Identity", "Pad",
    "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
))  # fmt: skip
_COMPARING = frozenset((
    "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual",
))  # fmt: skip
_LOGICAL = frozenset(("And", "Not", "Or", "ReduceMax", "ReduceMin", "Xor"))
_POSITIONS = frozenset(("ArgMax", "ArgMin"))  # TopK gives elements that are equal in any order
# The types of which an operation takes operands that a run computes.
_TYPES: Mapping[frozenset[str], frozenset[DataType]] = {
    _COMPUTED: frozenset((DataType.FLOAT,)),
    _COMPARING: frozenset((DataType.FLOAT,)),
    _POSITIONS: frozenset((DataType.FLOAT,)),
    _LOGICAL: frozenset((DataType.BOOL,)),
    _MOVING: frozenset((DataType.FLOAT, DataType.BOOL)),
    frozenset(("Where",)): frozenset((DataType.FLOAT, DataType.BOOL)),
    frozenset(("Cast",)): frozenset((DataType.BOOL, DataType.UINT8, DataType.INT8)),
}
_RECURRENT = frozenset(("GRU", "LSTM", "RNN"))
_ACTIVATIONS = frozenset(("Relu", "Sigmoid", "Tanh"))  # of a recurrent operation
_INDEXED = frozenset(("Gather", "GatherND"))
# Operations that make an infinity or NaN of some finite numbers.
_RISKY = frozenset((
    "Acos", "Acosh", "Asin", "Atanh", "Cosh", "Div", "Exp", "Log", "Pow", "Reciprocal", "Sinh",
    "Sqrt", "Tan",
))  # fmt: skip


def adapted(cluster: EmittedCluster) -> EmittedCluster:
    """Return the cluster for runs whose inputs are finite, with checks of what may not stay so."""
    emission = cluster.emission
    same = _without_nan(live_operations(emission.operations, (*cluster.outputs, *emission.checks)))
    for operation in emission.operations:
        operation.inputs = [each and same.get(each, each) for each in operation.inputs]
        _reshape_to_scalar(cluster.emission, operation)
    outputs = tuple(same.get(each, each) for each in cluster.outputs)
    operations = live_operations(emission.operations, (*outputs, *emission.checks))
    producers = {value.name: each for each in operations for value in each.outputs}
    for operation in operations:
        if operation.op_type in _RISKY and _may_overflow(operation, producers):
            emission.finite += operation.outputs
    emission.add_checks()
    return EmittedCluster(emission, outputs)


def _without_nan(operations: Sequence[Operation]) -> dict[Value, Value]:
    """Return the results that are others where no element is NaN: value → that other value."""
    same: dict[Value, Value] = {}
    never: set[str] = set()  # booleans that are false
    for operation in operations:
        first = operation.inputs[0] if operation.inputs else None
        is_reduced = operation.op_type == "ReduceMax" and first is not None and first.name in never
        if operation.op_type == "IsNaN" or is_reduced:
            never.update(each.name for each in operation.outputs)
        elif operation.op_type == "Where" and first is not None and first.name in never:
            other = operation.inputs[2]
            if other is not None and other.shape == operation.outputs[0].shape:
                same[operation.outputs[0]] = same.get(other, other)
    return same


def _reshape_to_scalar(emission: Emission, operation: Operation) -> None:
    """Write a Reshape to a scalar as Squeeze.

    The engine has ended the process when it compiled one after a product of matrices.
    """
    value = operation.inputs[0] if operation.inputs else None
    if operation.op_type == "Reshape" and value is not None and not operation.outputs[0].rank:
        axes = emission.in_model(emission.constant(np.arange(value.rank)))
        operation.op_type, operation.attributes = "Squeeze", {}
        operation.inputs = [value, axes] if value.rank else [value]


def _may_overflow(operation: Operation, producers: Mapping[str, Operation]) -> bool:
    if operation.op_type != "Div":
        return True
    divisor = operation.inputs[1]
    return divisor is None or divisor.constant is None or not divisor.constant.all()


def refusals(cluster: EmittedCluster) -> dict[str, str]:
    """Return, by name of the node, why operations of an adapted cluster can't be in a model."""
    emission = cluster.emission
    operations = live_operations(emission.operations, (*cluster.outputs, *emission.checks))
    known: set[str] = set()  # integers that are sizes or positions
    refused: dict[str, str] = {}
    for operation in operations:
        reason = _refusal(operation, known)
        if reason:
            refused.setdefault(operation.name, reason)
        if operation.op_type == "Shape" or _follows_from(operation, known):
            known.update(each.name for each in operation.outputs)
        elif operation.op_type in _POSITIONS:
            known.update(each.name for each in operation.outputs if each.dtype is DataType.INT64)
    return refused


def _follows_from(operation: Operation, known: set[str]) -> bool:
    """Return whether integers follow from sizes or positions and constants alone."""
    operands = [each for each in operation.inputs if each is not None]
    return operation.outputs[0].dtype is not DataType.FLOAT and all(
        each.name in known or each.constant is not None for each in operands
    )


def _refusal(operation: Operation, known: set[str]) -> str:
    op_type = operation.op_type
    if op_type == "Shape":
        return ""
    operands = [each for each in operation.inputs if each is not None]
    computed = [each for each in operands if each.array is None and each.name not in known]
    if op_type not in _COMPARING and any(map(_has_infinity, operands)):
        return f"{op_type} of a constant that is not finite"
    if op_type in _INDEXED and not _is_indexed_safely(operation):
        return f"{op_type} of indices that only a run can check, which OpenVINO does not"
    if op_type == "Pad" and len(operands) > 2 and operands[2].constant is None:
        return "Pad by a value that only a run knows, which OpenVINO reads once"
    if op_type in _RECURRENT and not _ACTIVATIONS.issuperset(operation.attributes["activations"]):
        return f"{op_type} with {', '.join(operation.attributes['activations'])}"
    if not computed and not any(each.weight is not None for each in operands):
        return ""
    allowed = frozenset().union(*(types for ops, types in _TYPES.items() if op_type in ops))
    made = {each.dtype for each in operation.outputs} - {DataType.BOOL, DataType.FLOAT}
    if op_type in _POSITIONS:
        made -= {DataType.INT64}
    others = sorted({each.dtype.name for each in computed if each.dtype not in allowed})
    if others or made:
        return f"{op_type} of {', '.join(others or sorted(each.name for each in made))}"
    return ""


def _is_indexed_safely(operation: Operation) -> bool:
    """Return whether all indices are of elements that are there, whatever the run.

    Emission has compared constant ones with the sizes that it knows.
    """
    data, indices = operation.inputs[:2]
    if data is None or indices is None or indices.constant is None:
        return False
    if all(isinstance(size, int) for size in data.shape):
        return True
    # No tensor is empty.
    return operation.op_type == "Gather" and bool(np.isin(indices.constant, (-1, 0)).all())


def _has_infinity(value: Value) -> bool:
    array = value.array
    return array is not None and array.dtype.kind == "f" and not bool(np.isfinite(array).all())


def is_finite(arrays: Iterable[np.ndarray]) -> bool:
    """Return whether all elements of float arrays are finite."""
    return all(bool(np.isfinite(each).all()) for each in arrays)
