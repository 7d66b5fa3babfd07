"""Conversion of Python values to attributes of an op, checked against the op's signature.

TF: tensorflow/python/framework/op_def_library.py, execute.py (make_type, make_shape, …)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import protos as pb
from runtime.client.framework.element_types import as_array, as_dtype
from runtime.client.framework.tensor_shape import ShapeLike, TensorShape
from runtime.framework import attr_value
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType, from_number


def attr_proto(op: str, attr: pb.OpDef.AttrDef, value: object) -> pb.AttrValue:
    """Convert `value` to the AttrValue of the attribute `attr` of `op`.

    Raises TypeError if `value` is of another kind, or is an element type that the signature does
    not allow. Raises ValueError if a number, a list length or a string is not allowed.
    """
    if isinstance(value, pb.AttrValue):
        return value
    kind, is_list = attr.type, attr.type.startswith("list(")
    values: Sequence[object] = [value]
    if is_list:
        kind = kind[len("list(") : -1]
        if not isinstance(value, list | tuple):
            raise TypeError(
                f"Expected list for '{attr.name}' argument to '{op}' Op, not {value!r}."
            )
        values = value
        if len(value) < attr.minimum:
            raise ValueError(
                f"Attr '{attr.name}' of '{op}' Op passed list of length {len(value)} less than "
                f"minimum {attr.minimum}."
            )
    elif attr.has_minimum and isinstance(value, int) and value < attr.minimum:
        raise ValueError(
            f"Attr '{attr.name}' of '{op}' Op passed {value} less than minimum {attr.minimum}."
        )
    converted = [_convert(kind, attr.name, each) for each in values]
    for proto in converted:
        check_allowed(op, attr, proto)
    return _list_of(converted) if is_list else converted[0]


def check_allowed(op: str, attr: pb.OpDef.AttrDef, proto: pb.AttrValue) -> None:
    """Raise ValueError or TypeError if `attr` does not allow the string or type in `proto`."""
    allowed = attr.allowed_values.list
    if allowed.s and proto.s not in allowed.s:
        choices = ", ".join(f'"{text.decode()}"' for text in allowed.s)
        raise ValueError(
            f"Attr '{attr.name}' of '{op}' Op passed string '{proto.s.decode()}' not in: {choices}."
        )
    if allowed.type:
        check_allowed_type(attr, DataType(proto.type), attr.name)


def check_allowed_type(attr: pb.OpDef.AttrDef, data_type: DataType, parameter: str) -> None:
    """Raise TypeError if `attr` does not allow the type; `parameter` is for the message."""
    allowed = [from_number(number)[0] for number in attr.allowed_values.list.type]
    if allowed and data_type not in allowed:
        choices = ", ".join(each.name_on_wire for each in allowed)
        raise TypeError(
            f"Value passed to parameter '{parameter}' has DataType {data_type.name_on_wire} not "
            f"in list of allowed values: {choices}"
        )


def _convert(kind: str, name: str, value: object) -> pb.AttrValue:
    described, convert = _CONVERTERS[kind]
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"Expected {described} for argument '{name}' not {value!r}.") from None


def _bool(value: object) -> pb.AttrValue:
    if not isinstance(value, bool | int) or value not in (0, 1):
        raise TypeError
    return pb.AttrValue(b=bool(value))


def _int(value: object) -> pb.AttrValue:
    return pb.AttrValue(i=int(value.__index__()) if hasattr(value, "__index__") else _no_int())


def _no_int() -> int:
    raise TypeError


def _float(value: Any) -> pb.AttrValue:
    if isinstance(value, str | bytes):
        raise TypeError
    return pb.AttrValue(f=float(value))


def _string(value: object) -> pb.AttrValue:
    if not isinstance(value, str | bytes):
        raise TypeError
    return pb.AttrValue(s=value if isinstance(value, bytes) else attr_value.raw_bytes(value))


def _type(value: object) -> pb.AttrValue:
    return attr_value.to_proto(as_dtype(value))


def _shape(value: ShapeLike) -> pb.AttrValue:
    return pb.AttrValue(shape=TensorShape(value).as_proto())


def _tensor(value: object) -> pb.AttrValue:
    return attr_value.to_proto(value if isinstance(value, pb.TensorProto) else as_array(value))


def _function(value: object) -> pb.AttrValue:
    """Return the AttrValue of a function, given by name, NameAttrList, or object with a `name`."""
    if isinstance(value, pb.NameAttrList):
        return pb.AttrValue(func=value)
    if isinstance(value, NameAttrList):
        return attr_value.to_proto(value)
    name = value if isinstance(value, str) else getattr(value, "name", None)
    if not isinstance(name, str):
        raise TypeError
    return pb.AttrValue(func=pb.NameAttrList(name=name))


# kind of an attribute → (name of the kind in error messages, converter)
_CONVERTERS: dict[str, tuple[str, Callable[[Any], pb.AttrValue]]] = {
    "bool": ("bool", _bool),
    "int": ("int", _int),
    "float": ("float", _float),
    "string": ("string", _string),
    "type": ("DataType", _type),
    "shape": ("a shape", _shape),
    "tensor": ("a tensor", _tensor),
    "func": ("a function", _function),
}


def _list_of(protos: list[pb.AttrValue]) -> pb.AttrValue:
    result = pb.AttrValue(list=pb.AttrValue.ListValue())
    for proto in protos:
        field = proto.WhichOneof("value")
        assert field is not None  # every converter sets one field
        getattr(result.list, field).append(getattr(proto, field))
    return result
