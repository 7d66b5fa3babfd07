"""Conversion of AttrValue protos to plain Python values and back.

| attr type        | Python value                                                            |
| ---              | ---                                                                     |
| string           | str, UTF-8 with surrogateescape; `raw_bytes` returns its bytes          |
| int, float, bool | int, float, bool                                                        |
| type             | DataType (a reference type becomes its base type)                       |
| shape            | tuple of int (−1: unknown dimension), or None if the rank is unknown    |
| tensor           | numpy array                                                             |
| func             | NameAttrList                                                            |
| list(x)          | tuple of the above                                                      |
| placeholder      | AttrPlaceholder; occurs only in functions that are not instantiated     |

TF: tensorflow/core/framework/attr_value.proto
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType, from_number
from runtime.framework.tensor_codec import (
    shape_from_proto,
    shape_to_proto,
    tensor_from_proto,
    tensor_to_proto,
)

# The Python value of an attribute. Its type is one in the table above; the op's signature
# determines which one, so a type checker can't know it.
AttributeValue: TypeAlias = Any


@dataclasses.dataclass(frozen=True, slots=True)
class NameAttrList:
    """A function to call and the attributes to instantiate it with (TF: NameAttrList)."""

    name: str
    attrs: Mapping[str, AttributeValue] = dataclasses.field(default_factory=dict, hash=False)


@dataclasses.dataclass(frozen=True, slots=True)
class AttrPlaceholder:
    """An attribute that takes the value of the enclosing function's attribute `name`."""

    name: str


def text(raw: bytes) -> str:
    """Return the bytes of a string attribute as str; `raw_bytes` restores the same bytes."""
    return raw.decode("utf-8", "surrogateescape")


def raw_bytes(value: str) -> bytes:
    """Return the bytes of the string attribute that `text` converted to `value`."""
    return value.encode("utf-8", "surrogateescape")


def _function(proto: pb.NameAttrList) -> NameAttrList:
    return NameAttrList(proto.name, {key: from_proto(value) for key, value in proto.attr.items()})


_SCALAR_READERS: dict[str, Callable[[pb.AttrValue], AttributeValue]] = {
    "s": lambda attr: text(attr.s),
    "i": lambda attr: attr.i,
    "f": lambda attr: attr.f,
    "b": lambda attr: attr.b,
    "type": lambda attr: from_number(attr.type)[0],
    "shape": lambda attr: shape_from_proto(attr.shape),
    "tensor": lambda attr: tensor_from_proto(attr.tensor),
    "func": lambda attr: _function(attr.func),
    "placeholder": lambda attr: AttrPlaceholder(attr.placeholder),
}
_LIST_READERS: dict[str, Callable[[Any], AttributeValue]] = {
    "s": text,
    "i": int,
    "f": float,
    "b": bool,
    "type": lambda number: from_number(number)[0],
    "shape": shape_from_proto,
    "tensor": tensor_from_proto,
    "func": _function,
}


def from_proto(proto: pb.AttrValue) -> AttributeValue:
    """Return the Python value of an attribute, or () if it is an empty list or is not set."""
    kind = proto.WhichOneof("value")
    if kind is not None and kind != "list":
        return _SCALAR_READERS[kind](proto)
    for field, values in proto.list.ListFields():
        return tuple(map(_LIST_READERS[field.name], values))
    return ()


def to_proto(value: object) -> pb.AttrValue:
    """Return the AttrValue of a Python value; the inverse of `from_proto`, except for shapes.

    A tuple of ints becomes a list of ints, so a shape must be passed as a TensorShapeProto. Raises
    InvalidArgumentError if no attribute type can hold the value.
    """
    if isinstance(value, pb.AttrValue):
        return value
    if isinstance(value, bool):
        return pb.AttrValue(b=value)
    if isinstance(value, DataType):
        return pb.AttrValue(type=int(value))  # type: ignore[arg-type] # same numbers
    if isinstance(value, int):
        return pb.AttrValue(i=value)
    if isinstance(value, float):
        return pb.AttrValue(f=value)
    if isinstance(value, str):
        return pb.AttrValue(s=raw_bytes(value))
    if isinstance(value, bytes):
        return pb.AttrValue(s=value)
    if isinstance(value, pb.TensorShapeProto):
        return pb.AttrValue(shape=value)
    if isinstance(value, pb.TensorProto):
        return pb.AttrValue(tensor=value)
    if isinstance(value, np.ndarray | np.generic):
        return pb.AttrValue(tensor=tensor_to_proto(np.asarray(value)))
    if isinstance(value, NameAttrList):
        return pb.AttrValue(func=_function_to_proto(value))
    if isinstance(value, AttrPlaceholder):
        return pb.AttrValue(placeholder=value.name)
    if isinstance(value, list | tuple):
        return _list_to_proto(value)
    raise InvalidArgumentError(f"No attribute type for a Python {type(value).__name__}")


def shape_attr(shape: tuple[int, ...] | None) -> pb.AttrValue:
    """Return the AttrValue of a shape; None is an unknown rank, −1 an unknown dimension."""
    return pb.AttrValue(shape=shape_to_proto(shape))


def _function_to_proto(value: NameAttrList) -> pb.NameAttrList:
    return pb.NameAttrList(
        name=value.name, attr={key: to_proto(attr) for key, attr in value.attrs.items()}
    )


def _list_to_proto(values: Sequence[object]) -> pb.AttrValue:
    result = pb.AttrValue(list=pb.AttrValue.ListValue())
    for value in values:
        single = to_proto(value)
        field = single.WhichOneof("value") or "i"
        getattr(result.list, field).append(getattr(single, field))
    return result
