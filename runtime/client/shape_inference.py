"""Static shapes of new operations, where they are cheap to know; the rest is unknown.

The runtime needs none of them: they check feeds, print, and describe signatures.

TF: tensorflow/core/framework/common_shape_fns.cc
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from runtime.client.operation import Operation
from runtime.client.tensor_shape import TensorShape
from runtime.framework.tensor_codec import shape_from_proto

Shape = tuple[int, ...] | None


def infer_shapes(operation: Operation) -> None:
    """Set what is known of the shapes of the outputs."""
    node_def = operation.node_def
    if "_output_shapes" in node_def.attr:  # what the writer of the graph knew
        shapes = node_def.attr["_output_shapes"].list.shape
        for tensor, proto in zip(operation.outputs, shapes, strict=False):
            tensor.set_shape(proto)
        return
    infer = _SHAPE_FUNCTIONS.get(operation.type)
    if infer is not None:
        operation.outputs[0].set_shape(TensorShape(infer(operation)))


def _shape_attr(operation: Operation) -> Shape:
    shape: Shape = operation.get_attr("shape")
    return shape


def _constant(operation: Operation) -> Shape:
    return shape_from_proto(operation.node_def.attr["value"].tensor.tensor_shape)


def _scalar(_: Operation) -> Shape:
    return ()


def _first_input(operation: Operation) -> Shape:
    return operation.inputs[0].shape.sizes


def _variable(operation: Operation) -> Shape:
    """Of the variable whose handle is read."""
    handle = operation.inputs[0].op
    return _shape_attr(handle) if handle.type == "VarHandleOp" else None


def _broadcast(operation: Operation) -> Shape:
    left, right = (tensor.shape.sizes for tensor in operation.inputs)
    if left is None or right is None:
        return None
    pairs = itertools.zip_longest(reversed(left), reversed(right), fillvalue=1)
    return tuple(_broadcast_size(a, b) for a, b in pairs)[::-1]


def _broadcast_size(left: int, right: int) -> int:
    """An unknown size beside a known one over 1 has to be that one."""
    if left == right or right == 1:
        return left
    return right if left == 1 else max(left, right)


def _matmul(operation: Operation) -> Shape:
    left, right = (tensor.shape.sizes for tensor in operation.inputs)
    rows = -1 if left is None else left[::-1][operation.get_attr("transpose_a") is False]
    columns = -1 if right is None else right[operation.get_attr("transpose_b") is False]
    return rows, columns


_BROADCASTING = (
    "Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "FloorDiv", "FloorMod", "Pow", "Maximum",
    "Minimum", "Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr",
    "BitwiseAnd", "BitwiseOr", "BitwiseXor", "SquaredDifference",
)  # fmt: skip
_LIKE_FIRST_INPUT = (
    "Identity", "Cast", "Neg", "Abs", "Exp", "Log", "Sqrt", "Rsqrt", "Square", "Sign", "Sin", "Cos",
    "Tanh", "Sigmoid", "Relu", "Relu6", "Elu", "Softplus", "Softmax", "Floor", "Ceil", "Round",
    "LogicalNot", "ZerosLike", "OnesLike", "StopGradient", "BiasAdd", "Assign", "AssignAdd",
    "AssignSub",
)  # fmt: skip
_SHAPE_FUNCTIONS: dict[str, Callable[[Operation], Shape]] = {
    **dict.fromkeys(_BROADCASTING, _broadcast),
    **dict.fromkeys(_LIKE_FIRST_INPUT, _first_input),
    **dict.fromkeys(("Placeholder", "PlaceholderWithDefault", "VariableV2"), _shape_attr),
    **dict.fromkeys(("VarHandleOp", "Rank", "Size", "VarIsInitializedOp"), _scalar),
    "Const": _constant,
    "ReadVariableOp": _variable,
    "MatMul": _matmul,
}
