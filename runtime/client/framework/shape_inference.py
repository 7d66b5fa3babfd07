"""Inference of the static shapes of new operations.

If an op has no shape function, the shapes of its outputs are unknown. The runtime does not need
static shapes. They are used to check feeds, to print tensors, to describe signatures, and to reject
incompatible shapes while the graph is built.

TF: tensorflow/core/framework/common_shape_fns.cc, tensorflow/core/ops/*.cc (SetShapeFn)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import protos as pb
from runtime.client.framework.image_shape_functions import IMAGE_SHAPE_FUNCTIONS
from runtime.client.framework.operation import Operation
from runtime.client.framework.shape_functions import ARRAY_SHAPE_FUNCTIONS
from runtime.client.framework.static_values import MisfitError, Shape
from runtime.client.framework.tensor_shape import TensorShape
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_codec import shape_from_proto


def infer_shapes(operation: Operation) -> None:
    """Set the static shapes of the outputs of `operation`.

    Raises ValueError, with TensorFlow's message, if the shapes of the inputs are incompatible.
    """
    node_def = operation.node_def
    if "_output_shapes" in node_def.attr:  # the program that exported the graph stored the shapes
        shapes = node_def.attr["_output_shapes"].list.shape
        for tensor, proto in zip(operation.outputs, shapes, strict=False):
            tensor.set_shape(proto)
        return
    infer = _SHAPE_FUNCTIONS.get(operation.type)
    if infer is None:
        return
    try:
        found = infer(operation)
    except MisfitError as misfit:
        raise ValueError(f"{misfit} for {_described(operation)}.") from None
    all_found = found if isinstance(found, list) else [found]
    for tensor, shape in zip(operation.outputs, all_found, strict=False):
        tensor.set_shape(TensorShape(shape))


def _described(operation: Operation) -> str:
    """Describe the node and the shapes of its inputs in the form of TensorFlow's shape errors."""
    attrs = [
        f"{name}={_attr_text(attr)}"
        for name, attr in sorted(operation.node_def.attr.items())
        if not name.startswith("_")
    ]
    inputs = ", ".join(operation.node_def.input)
    shapes = ", ".join(shape_text(tensor.shape.sizes) for tensor in operation.inputs)
    return (
        f"'{{{{node {operation.name}}}}} = {operation.type}[{', '.join(attrs)}]({inputs})' with "
        f"input shapes: {shapes}"
    )


def _attr_text(attr: pb.AttrValue) -> str:
    match attr.WhichOneof("value"):
        case "type":
            return pb.DataType.Name(attr.type)
        case "b":
            return str(attr.b).lower()
        case "i":
            return str(attr.i)
        case "f":
            return f"{attr.f:g}"
        case "s":
            return f'"{attr.s.decode(errors="backslashreplace")}"'
        case "shape":
            return shape_text(shape_from_proto(attr.shape))
        case "list":
            return f"[{', '.join(str(each) for each in attr.list.i)}]"
    return "..."


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
    """Return the shape of the variable whose handle is read."""
    handle = operation.inputs[0].op
    return _shape_attr(handle) if handle.type == "VarHandleOp" else None


def _broadcast(operation: Operation) -> Shape:
    left, right = (tensor.shape.sizes for tensor in operation.inputs)
    if left is None or right is None:
        return None
    pairs = itertools.zip_longest(reversed(left), reversed(right), fillvalue=1)
    return tuple(_broadcast_size(a, b) for a, b in pairs)[::-1]


def _broadcast_size(left: int, right: int) -> int:
    """Return the size that two sizes broadcast to.

    An unknown size (−1) beside a size above 1 is assumed to equal that size.
    """
    if left == right or right == 1:
        return left
    if min(left, right) > 1:
        raise MisfitError(f"Dimensions must be equal, but are {left} and {right}")
    return right if left == 1 else max(left, right)


def _matmul(operation: Operation) -> Shape:
    left, right = (tensor.shape.sizes for tensor in operation.inputs)
    for sizes in (left, right):
        if sizes is not None and len(sizes) != 2:
            raise MisfitError(f"Shape must be rank 2 but is rank {len(sizes)}")
    transposed_a, transposed_b = (
        operation.get_attr("transpose_a"),
        operation.get_attr("transpose_b"),
    )
    rows, inner_a = (-1, -1) if left is None else left[::-1] if transposed_a else left
    inner_b, columns = (-1, -1) if right is None else right[::-1] if transposed_b else right
    if inner_a != inner_b and min(inner_a, inner_b) >= 0:
        raise MisfitError(f"Dimensions must be equal, but are {inner_a} and {inner_b}")
    return rows, columns


_BROADCASTING = (
    "Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "FloorDiv", "FloorMod", "Pow", "Maximum",
    "Minimum", "Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr",
    "BitwiseAnd", "BitwiseOr", "BitwiseXor", "SquaredDifference", "TruncateDiv", "TruncateMod",
    "Mod", "DivNoNan", "MulNoNan", "Atan2", "Xlogy", "Xdivy", "Complex", "Igamma", "Zeta",
)  # fmt: skip
_LIKE_FIRST_INPUT = (
    "Identity", "Cast", "Neg", "Abs", "Exp", "Log", "Sqrt", "Rsqrt", "Square", "Sign", "Sin", "Cos",
    "Tanh", "Sigmoid", "Relu", "Relu6", "Elu", "Softplus", "Softmax", "Floor", "Ceil", "Round",
    "LogicalNot", "ZerosLike", "OnesLike", "StopGradient", "Assign", "AssignAdd",
    "AssignSub", "Acos", "Asin", "Atan", "Acosh", "Asinh", "Atanh", "Tan", "Sinh", "Cosh", "Erf",
    "Erfc", "Expm1", "Log1p", "Lgamma", "Digamma", "Rint", "Reciprocal", "Inv", "IsNan", "IsInf",
    "IsFinite", "Invert", "Conj", "Real", "Imag", "ComplexAbs", "Selu", "LeakyRelu", "Softsign",
    "LogSoftmax", "ClipByValue", "Cumsum", "Cumprod", "Snapshot", "CheckNumerics", "Reverse",
    "ReverseV2", "RandomShuffle", "LRN", "AsString", "StringToNumber", "StringLower",
    "StringUpper", "StringStrip", "PreventGradient",
)  # fmt: skip
_SHAPE_FUNCTIONS: dict[str, Callable[[Operation], Shape | list[Shape]]] = {
    **dict.fromkeys(_BROADCASTING, _broadcast),
    **dict.fromkeys(_LIKE_FIRST_INPUT, _first_input),
    **dict.fromkeys(("Placeholder", "PlaceholderWithDefault", "VariableV2"), _shape_attr),
    **dict.fromkeys(("VarHandleOp", "Rank", "Size", "VarIsInitializedOp"), _scalar),
    "Const": _constant,
    "ReadVariableOp": _variable,
    "MatMul": _matmul,
    **ARRAY_SHAPE_FUNCTIONS,
    **IMAGE_SHAPE_FUNCTIONS,
}
