"""Build NodeDefs from an op's signature: infer what the inputs say, check the rest.

TF: tensorflow/python/framework/op_def_library.py (_apply_op_helper), node_def_builder.cc
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework import attr_value, op_def_registry
from runtime.framework.dtypes import DataType, from_name, from_numpy
from runtime.framework.tensor_codec import shape_to_proto

Output = tuple[str, DataType]  # ("node:0", element type)
Input = Output | Sequence[Output]


def build_node_def(
    op: str,
    name: str,
    inputs: Sequence[Input] = (),
    attrs: Mapping[str, Any] | None = None,
    control_inputs: Sequence[str] = (),
    device: str = "",
) -> pb.NodeDef:
    """The NodeDef of `op` on `inputs`, one entry an input argument (a list for a list argument).

    Type and number attributes are inferred from the inputs unless given. Attribute values are
    Python values: DataType, numpy dtype or type name for types, tuples for shapes.

    Raises NotFoundError for an unknown op, InvalidArgumentError for a wrong number of inputs or an
    attribute that cannot be inferred and has no default.
    """
    op_def = op_def_registry.look_up(op)
    if len(inputs) != len(op_def.input_arg):
        wanted = [argument.name for argument in op_def.input_arg]
        raise InvalidArgumentError(f"Op {op} takes inputs {wanted}, got {len(inputs)} of them")
    node = pb.NodeDef(name=name, op=op, device=device)
    inferred: dict[str, Any] = {}
    for argument, given in zip(op_def.input_arg, inputs, strict=True):
        outputs: list[Output] = [given] if _is_output(given) else list(given)  # type: ignore[arg-type] # a list, then
        node.input.extend(output for output, _ in outputs)
        types = [data_type for _, data_type in outputs]
        if argument.number_attr:
            inferred[argument.number_attr] = len(types)
        if argument.type_list_attr:
            inferred[argument.type_list_attr] = tuple(types)
        if argument.type_attr and types:
            inferred[argument.type_attr] = types[0]
    node.input.extend(f"^{control}" for control in control_inputs)
    values = {**inferred, **(attrs or {})}
    for attr in op_def.attr:
        if attr.name in values:
            node.attr[attr.name].CopyFrom(_attr_proto(attr.type, values.pop(attr.name)))
        elif attr.HasField("default_value"):
            node.attr[attr.name].CopyFrom(attr.default_value)
        else:
            raise InvalidArgumentError(f"Op {op} needs a value for attr '{attr.name}'")
    for key, value in values.items():  # such as _class and _output_shapes
        node.attr[key].CopyFrom(attr_value.to_proto(value))
    return node


def _is_output(given: Input) -> TypeGuard[Output]:
    return isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str)


def _attr_proto(kind: str, value: Any) -> pb.AttrValue:
    if isinstance(value, pb.AttrValue):
        return value
    if kind == "type":
        return attr_value.to_proto(_data_type(value))
    if kind == "list(type)":
        return attr_value.to_proto(tuple(_data_type(each) for each in value))
    if kind == "shape":
        return attr_value.shape_attr(value)
    if kind == "list(shape)":
        return attr_value.to_proto(tuple(shape_to_proto(each) for each in value))
    if kind == "float":
        return pb.AttrValue(f=value)
    if kind == "list(float)":
        return pb.AttrValue(list=pb.AttrValue.ListValue(f=value))
    if kind == "tensor":
        return attr_value.to_proto(
            value if isinstance(value, pb.TensorProto) else np.asarray(value)
        )
    return attr_value.to_proto(value)


def _data_type(value: Any) -> DataType:
    if isinstance(value, DataType):
        return value
    return from_name(value) if isinstance(value, str) else from_numpy(np.dtype(value))
