"""The operations that the Python operators and the indexing of tensors add to the graph.

TF: tensorflow/python/ops/math_ops.py (binary_op_wrapper), array_ops.py (_slice_helper)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import EllipsisType

from runtime.client.framework.argument_types import SliceKey, TensorLike
from runtime.client.framework.conversion import TensorConvertible, convert_to_tensor, first_tensor
from runtime.client.framework.op_call import apply_op
from runtime.client.framework.operation import OperationGraph, Tensor
from runtime.framework import op_def_registry
from runtime.framework.dtypes import DataType

# operator → (op, {element type: op to use instead for that type})
_OPERATORS: dict[str, tuple[str, Mapping[DataType, str]]] = {
    "add": ("AddV2", {DataType.STRING: "Add"}),
    "sub": ("Sub", {}),
    "mul": ("Mul", {}),
    "truediv": ("RealDiv", {}),
    "floordiv": ("FloorDiv", {}),
    "mod": ("FloorMod", {}),
    "pow": ("Pow", {}),
    "matmul": ("BatchMatMulV2", {}),
    "Less": ("Less", {}),
    "LessEqual": ("LessEqual", {}),
    "Greater": ("Greater", {}),
    "GreaterEqual": ("GreaterEqual", {}),
    "and": ("BitwiseAnd", {DataType.BOOL: "LogicalAnd"}),
    "or": ("BitwiseOr", {DataType.BOOL: "LogicalOr"}),
    "xor": ("BitwiseXor", {DataType.BOOL: "NotEqual"}),
    "Neg": ("Neg", {}),
    "Abs": ("Abs", {DataType.COMPLEX64: "ComplexAbs", DataType.COMPLEX128: "ComplexAbs"}),
    "invert": ("Invert", {DataType.BOOL: "LogicalNot"}),
}
# integer type of the operands → type of the result of `/`
_QUOTIENT_TYPES = {
    DataType.INT8: DataType.FLOAT, DataType.UINT8: DataType.FLOAT,
    DataType.INT16: DataType.FLOAT, DataType.UINT16: DataType.FLOAT,
    DataType.INT32: DataType.DOUBLE, DataType.UINT32: DataType.DOUBLE,
    DataType.INT64: DataType.DOUBLE, DataType.UINT64: DataType.DOUBLE,
}  # fmt: skip
_MATRIX_RANK = 2


def apply_operator(
    graph: OperationGraph, operator: str, operands: tuple[TensorLike, ...], name: str | None = None
) -> Tensor:
    """Add the operation of an operator; Python values take the type of the other operand."""
    with graph.name_scope(name or operator) as scope:
        tensors = _converted(graph, operands)
        op, exceptions = _OPERATORS[operator]
        op = exceptions.get(tensors[0].dtype, op)
        if operator == "truediv":
            tensors = [_for_division(graph, tensor) for tensor in tensors]
        if operator == "matmul" and all(each.shape.rank == _MATRIX_RANK for each in tensors):
            op = "MatMul"
        op_def = op_def_registry.look_up(op)
        names = [argument.name for argument in op_def.input_arg]
        arguments = dict(zip(names, tensors, strict=True))
        return apply_op(graph, op_def, arguments, scope).outputs[0]


def _converted(graph: OperationGraph, operands: tuple[TensorLike, ...]) -> list[Tensor]:
    """Convert the operands to tensors; Python values take the type of the first tensor."""
    first = next(
        (index for index, each in enumerate(operands) if first_tensor(each) is not None), 0
    )
    fixed = convert_to_tensor(graph, operands[first], None, "xy"[first])
    return [
        fixed if index == first else _convert_like(graph, operand, fixed.dtype, "xy"[index])
        for index, operand in enumerate(operands)
    ]


def _convert_like(graph: OperationGraph, value: TensorLike, dtype: DataType, name: str) -> Tensor:
    """Convert `value` to a tensor, of type `dtype` if possible.

    If the types then differ, the op's own check raises.
    """
    if isinstance(value, Tensor | TensorConvertible):
        return convert_to_tensor(graph, value)
    try:
        return convert_to_tensor(graph, value, dtype, name)
    except (TypeError, ValueError):
        return convert_to_tensor(graph, value, None, name)


def _for_division(graph: OperationGraph, tensor: Tensor) -> Tensor:
    wanted = _QUOTIENT_TYPES.get(tensor.dtype)
    if wanted is None:
        return tensor
    arguments = {"x": tensor, "DstT": wanted}
    return apply_op(graph, op_def_registry.look_up("Cast"), arguments, "Cast").outputs[0]


@dataclasses.dataclass
class _Slices:
    """The begin, end, strides and mask arguments of a StridedSlice, as they are collected."""

    begin: list[TensorLike] = dataclasses.field(default_factory=list)
    end: list[TensorLike] = dataclasses.field(default_factory=list)
    strides: list[TensorLike] = dataclasses.field(default_factory=list)
    masks: dict[str, int] = dataclasses.field(default_factory=dict)

    def add(self, begin: TensorLike, end: TensorLike, stride: TensorLike, *masks: str) -> None:
        for mask in masks:
            self.masks[mask] = self.masks.get(mask, 0) | 1 << len(self.begin)
        self.begin.append(begin)
        self.end.append(end)
        self.strides.append(stride)

    def add_key(self, key: SliceKey) -> None:
        if isinstance(key, slice):
            self.add(
                0 if key.start is None else key.start,
                0 if key.stop is None else key.stop,
                1 if key.step is None else key.step,
                *(["begin_mask"] if key.start is None else []),
                *(["end_mask"] if key.stop is None else []),
            )
        elif isinstance(key, EllipsisType):
            self.add(0, 0, 1, "ellipsis_mask")
        elif key is None:
            self.add(0, 0, 1, "new_axis_mask")
        elif isinstance(key, Tensor | TensorConvertible) or hasattr(key, "__index__"):
            self.add(key, key + 1, 1, "shrink_axis_mask")
        else:
            raise TypeError(
                "Only integers, slices (`:`), ellipsis (`...`), None and scalar tensors are valid "
                f"indices, got {key!r}"
            )


def slice_tensor(graph: OperationGraph, tensor: TensorLike, key: SliceKey) -> Tensor:
    """Add a StridedSlice operation that computes `tensor[key]`.

    Raises TypeError if `key` is no index.
    """
    slices = _Slices()
    with graph.name_scope("strided_slice") as scope:
        for each in key if isinstance(key, tuple) else (key,):
            slices.add_key(each)
        parts = (slices.begin, slices.end, slices.strides)
        begin, end, strides = (
            convert_to_tensor(graph, part or [], _index_type(part), "stack") for part in parts
        )
        arguments = {"input": tensor, "begin": begin, "end": end, "strides": strides}
        op_def = op_def_registry.look_up("StridedSlice")
        return apply_op(graph, op_def, {**arguments, **slices.masks}, scope).outputs[0]


def _index_type(part: list[TensorLike]) -> DataType:
    """Return INT64 if an index is an int64 tensor, else INT32."""
    types = {each.dtype for each in part if isinstance(each, Tensor)}
    return DataType.INT64 if DataType.INT64 in types else DataType.INT32
