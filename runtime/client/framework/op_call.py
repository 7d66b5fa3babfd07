"""Calls of ops: convert arguments, infer attributes, and check both against the signature.

The error messages are TensorFlow's.

TF: tensorflow/python/framework/op_def_library.py (apply_op)
"""

from __future__ import annotations

import collections
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import protos as pb
from runtime.client.framework.argument_types import TensorLike
from runtime.client.framework.attr_conversion import attr_proto, check_allowed_type
from runtime.client.framework.conversion import TensorConvertible, convert_to_tensor, first_tensor
from runtime.client.framework.default_stacks import default_graphs
from runtime.client.framework.operation import Operation, OperationGraph, Tensor
from runtime.framework import attr_value
from runtime.framework.dtypes import DataType, from_number

_WORD_BOUNDARY = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])")

# A Tensor, a list of Tensors, a namedtuple of these, or the Operation. The op's signature
# determines which, so a type checker can't know it.
OpResult: TypeAlias = Any


def apply_op(
    graph: OperationGraph,
    op_def: pb.OpDef,
    arguments: Mapping[str, object],
    name: str | None = None,
) -> Operation:
    """Add an operation; `arguments` are its input arguments and attributes by name.

    Raises TypeError and ValueError with TensorFlow's messages.
    """
    with graph.name_scope(name or op_def.name) as scope:
        call = _Call(graph, op_def, arguments)
        return graph.create_op(op_def.name, call.inputs, call.attrs, scope)


def op_result(operation: Operation) -> OpResult:
    """Return what a call of an op returns: a tensor, a namedtuple, or `operation`.

    The result is the output if the op has one output argument, a namedtuple of the outputs if it
    has several, and the operation if it has none. The value of an output argument is a list of
    tensors if the signature says so.
    """
    arguments = operation.op_def.output_arg
    if not arguments:
        return operation
    outputs = iter(operation.outputs)
    fields: list[Tensor | list[Tensor]] = []
    for argument in arguments:
        if argument.number_attr or argument.type_list_attr:
            count = _list_length(operation, argument)
            fields.append([next(outputs) for _ in range(count)])
        else:
            fields.append(next(outputs))
    return fields[0] if len(fields) == 1 else _result_type(operation.op_def)(*fields)


def graph_of(arguments: Iterable[object], default: Callable[[], OperationGraph]) -> OperationGraph:
    """Return the graph to which a call adds its operation.

    That is a function under construction, else the graph of the tensors among `arguments`, else
    `default()`. Raises ValueError if the tensors belong to different graphs.
    """
    innermost = default_graphs.innermost
    if innermost is not None and innermost.is_function:
        return innermost
    found: Tensor | TensorConvertible | None = None
    for argument in arguments:
        tensor = first_tensor(argument)
        if tensor is None:
            continue
        if found is None:
            found = tensor
        elif tensor.graph is not found.graph:
            raise ValueError(
                f"{tensor} must be from the same graph as {found} (graphs are "
                f"{tensor.graph} and {found.graph})."
            )
    return default() if found is None else found.graph


def snake_case(op: str) -> str:
    """Return the Python name of an op: `mat_mul` for `MatMul`, `conv2d` for `Conv2D`."""
    return _WORD_BOUNDARY.sub("_", op).lower()


def _list_length(operation: Operation, argument: pb.OpDef.ArgDef) -> int:
    if argument.number_attr:
        return int(operation.get_attr(argument.number_attr))
    return len(operation.get_attr(argument.type_list_attr))


@functools.cache
def _result_type_of(name: str, fields: tuple[str, ...]) -> Callable[..., OpResult]:
    return collections.namedtuple(name, fields, rename=True)


def _result_type(op_def: pb.OpDef) -> Callable[..., OpResult]:
    return _result_type_of(op_def.name, tuple(argument.name for argument in op_def.output_arg))


class _Call:
    """The inputs and attributes of one call, determined in the order of the signature."""

    def __init__(
        self, graph: OperationGraph, op_def: pb.OpDef, arguments: Mapping[str, object]
    ) -> None:
        self._graph = graph
        self._op = op_def.name
        self._attr_defs = {attr.name: attr for attr in op_def.attr}
        self._types: dict[str, DataType] = {}  # type attribute → its type, if known so far
        self._origin: dict[str, str] = {}  # attribute → the argument that determined it
        self.inputs: list[Tensor] = []
        self.attrs: dict[str, pb.AttrValue] = {}
        for name, attr in self._attr_defs.items():
            if arguments.get(name) is not None:
                self.attrs[name] = attr_proto(self._op, attr, arguments[name])
                if attr.type == "type":
                    self._types[name] = DataType(self.attrs[name].type)
        for argument in op_def.input_arg:
            self._add_input(argument, arguments[argument.name])
        for name, attr in self._attr_defs.items():
            if name not in self.attrs:
                self._add_default(name, attr)

    def _add_input(self, argument: pb.OpDef.ArgDef, value: TensorLike) -> None:
        if argument.number_attr:
            self._add_list(argument, self._checked_list(argument, value))
        elif argument.type_list_attr:
            self._add_typed_list(argument, self._checked_list(argument, value))
        else:
            tensor = self._convert(argument, value, self._wanted(argument))
            self._note_type(argument, tensor)
            self.inputs.append(tensor)

    def _checked_list(self, argument: pb.OpDef.ArgDef, value: TensorLike) -> list[TensorLike]:
        if not isinstance(value, list | tuple):
            raise TypeError(
                f"Expected list for '{argument.name}' argument to '{self._op}' Op, not {value}."
            )
        return list(value)

    def _add_list(self, argument: pb.OpDef.ArgDef, values: list[TensorLike]) -> None:
        attr = self._attr_defs[argument.number_attr]
        if len(values) < attr.minimum:
            raise ValueError(
                f"List argument '{argument.name}' to '{self._op}' Op with length {len(values)} "
                f"shorter than minimum length {attr.minimum}."
            )
        given = self.attrs.get(argument.number_attr)
        if given is not None and given.i != len(values):
            raise ValueError(
                f"List argument '{argument.name}' to '{self._op}' Op with length {len(values)} "
                f"must match length {given.i} of argument '{self._origin[argument.number_attr]}'."
            )
        self._origin.setdefault(argument.number_attr, argument.name)
        self.attrs[argument.number_attr] = pb.AttrValue(i=len(values))
        wanted = self._wanted(argument)
        if wanted is None:  # a tensor in the list determines the type of all elements
            found = first_tensor(values)
            wanted = None if found is None else found.dtype
        tensors = [
            self._convert(argument, value, wanted, f"{argument.name}_{index}")
            for index, value in enumerate(values)
        ]
        types = [tensor.dtype for tensor in tensors]
        if len(set(types)) > 1:
            shown = ", ".join(data_type.name_on_wire for data_type in types)
            raise TypeError(
                f"Tensors in list passed to '{argument.name}' of '{self._op}' Op have types "
                f"[{shown}] that don't all match."
            )
        if tensors:
            self._note_type(argument, tensors[0])
        self.inputs += tensors

    def _add_typed_list(self, argument: pb.OpDef.ArgDef, values: list[TensorLike]) -> None:
        given = self.attrs.get(argument.type_list_attr)
        wanted: list[DataType | None] = [None] * len(values)
        if given is not None:
            wanted = [DataType(number) for number in given.list.type]
            if len(wanted) != len(values):
                raise ValueError(
                    f"List argument '{argument.name}' to '{self._op}' Op with length "
                    f"{len(values)} must match the {len(wanted)} types of attr "
                    f"'{argument.type_list_attr}'."
                )
        tensors = [
            self._convert(argument, value, data_type, f"{argument.name}_{index}")
            for index, (value, data_type) in enumerate(zip(values, wanted, strict=True))
        ]
        self.attrs[argument.type_list_attr] = attr_proto(
            self._op,
            self._attr_defs[argument.type_list_attr],
            [tensor.dtype for tensor in tensors],
        )
        self.inputs += tensors

    def _wanted(self, argument: pb.OpDef.ArgDef) -> DataType | None:
        """Return the element type that an argument must have, or None if it is not known yet."""
        if argument.type:
            return from_number(argument.type)[0]
        return self._types.get(argument.type_attr)

    def _convert(
        self, argument: pb.OpDef.ArgDef, value: TensorLike, wanted: DataType | None, name: str = ""
    ) -> Tensor:
        name = name or argument.name
        if wanted is None:
            tensor = self._convert_freely(argument, value, name)
        else:
            tensor = self._convert_to(argument, value, wanted, name)
        if argument.is_ref and not tensor.is_ref:
            raise TypeError(
                f"'{self._op}' Op requires that input '{argument.name}' be a mutable tensor "
                f"(e.g.: a tf.Variable)"
            )
        return tensor

    def _convert_to(
        self, argument: pb.OpDef.ArgDef, value: TensorLike, wanted: DataType, name: str
    ) -> Tensor:
        try:
            tensor = convert_to_tensor(self._graph, value, wanted, name, argument.is_ref)
        except (TypeError, ValueError):
            tensor = self._convert_freely(argument, value, name)
            if tensor.dtype is not wanted:
                raise TypeError(self._mismatch(argument, tensor, wanted)) from None
        return tensor

    def _convert_freely(self, argument: pb.OpDef.ArgDef, value: TensorLike, name: str) -> Tensor:
        """Convert to the type attribute's default if possible, else to the value's own type."""
        attr = self._attr_defs.get(argument.type_attr)
        if attr is not None and attr.HasField("default_value") and first_tensor(value) is None:
            try:
                preferred = DataType(attr.default_value.type)
                return convert_to_tensor(self._graph, value, preferred, name, argument.is_ref)
            except (TypeError, ValueError):
                pass
        return convert_to_tensor(self._graph, value, None, name, argument.is_ref)

    def _mismatch(self, argument: pb.OpDef.ArgDef, tensor: Tensor, wanted: DataType) -> str:
        prefix = (
            f"Input '{argument.name}' of '{self._op}' Op has type {tensor.dtype.name_on_wire} "
            "that does not match"
        )
        origin = self._origin.get(argument.type_attr)
        if origin is None:
            return f"{prefix} expected type of {wanted.name_on_wire}."
        return f"{prefix} type {wanted.name_on_wire} of argument '{origin}'."

    def _note_type(self, argument: pb.OpDef.ArgDef, tensor: Tensor) -> None:
        name = argument.type_attr
        if not name:
            return
        check_allowed_type(self._attr_defs[name], tensor.dtype, argument.name)
        self._types.setdefault(name, tensor.dtype)
        self._origin.setdefault(name, argument.name)
        self.attrs[name] = attr_value.to_proto(tensor.dtype)

    def _add_default(self, name: str, attr: pb.OpDef.AttrDef) -> None:
        if not attr.HasField("default_value"):
            raise TypeError(f"{snake_case(self._op)}() missing 1 required argument: '{name}'")
        self.attrs[name] = attr.default_value
