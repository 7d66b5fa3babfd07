"""Nodes of a graph, and the signatures of their ops in a form for fast lookup.

Guarantees: after construction, a node that belongs to a session's graph is never changed.
Therefore graphs share nodes, and threads read them without a lock. Passes change clones.

TF: tensorflow/core/graph/graph.h (Node), framework/node_def_util.cc
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import NamedTuple

import protos as pb
from runtime.foundation.errors import (
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
from runtime.framework import attr_value
from runtime.framework.attr_value import AttributeValue, AttrPlaceholder, NameAttrList
from runtime.framework.dtypes import DataType, from_number

Endpoint = tuple["Node", int]  # (node, output index)
# Largest value of an attribute that gives a number of inputs or outputs. Without a limit, a few
# bytes of an untrusted graph could fill the memory.
_MAX_COUNT = 1 << 16
_creation_numbers = itertools.count()  # threads share it without a lock, as next() is atomic


class Argument(NamedTuple):
    """An input or output of a signature: its type, or the names of attributes that determine it.

    An attribute name is empty if the type or the number of tensors does not depend on one.
    """

    name: str
    fixed_type: DataType  # the type if `type_attr` and `type_list_attr` are empty
    type_attr: str
    number_attr: str
    type_list_attr: str
    is_ref: bool


class AttrRule(NamedTuple):
    """The constraints on an attribute.

    `kind` is the kind in an OpDef, such as `list(int)`. `field` is the field of AttrValue that
    holds a value of this kind, such as `list`.
    """

    name: str
    kind: str
    field: str
    allowed: tuple[AttributeValue, ...] | None  # None if any value is allowed
    has_default: bool
    minimum: int | None  # smallest allowed integer, or smallest allowed length of a list


# kind of an attribute in an OpDef → field of AttrValue; only kinds whose field has another name
_FIELD_OF_KIND = {"string": "s", "int": "i", "float": "f", "bool": "b"}


class OpInfo:
    """An op's signature, preprocessed for graph construction."""

    __slots__ = (
        "attr_rules",
        "attr_types",
        "defaults",
        "has_single_output",
        "inputs",
        "is_stateful",
        "name",
        "op_def",
        "outputs",
    )

    def __init__(self, op_def: pb.OpDef) -> None:
        self.op_def = op_def
        self.name = op_def.name
        self.inputs = tuple(_argument(each) for each in op_def.input_arg)
        self.outputs = tuple(_argument(each) for each in op_def.output_arg)
        self.is_stateful = op_def.is_stateful
        self.attr_rules = tuple(_rule(attr) for attr in op_def.attr)
        self.attr_types = {rule.name: rule.kind for rule in self.attr_rules}
        self.defaults = {
            attr.name: attr.default_value for attr in op_def.attr if attr.HasField("default_value")
        }
        self.has_single_output = (
            len(self.outputs) == 1
            and not self.outputs[0].number_attr
            and not self.outputs[0].type_list_attr
        )


def _argument(proto: pb.OpDef.ArgDef) -> Argument:
    return Argument(
        proto.name,
        from_number(proto.type)[0],
        proto.type_attr,
        proto.number_attr,
        proto.type_list_attr,
        proto.is_ref,
    )


def _rule(attr: pb.OpDef.AttrDef) -> AttrRule:
    field = "list" if attr.type.startswith("list(") else _FIELD_OF_KIND.get(attr.type, attr.type)
    allowed = None
    if attr.HasField("allowed_values"):
        allowed = attr_value.from_proto(attr.allowed_values)
    minimum = attr.minimum if attr.has_minimum else None
    return AttrRule(attr.name, attr.type, field, allowed, attr.HasField("default_value"), minimum)


class Node:
    """One operation: its op, attributes, data inputs (endpoints) and control inputs (nodes)."""

    __slots__ = (
        "_attrs",
        "control_inputs",
        "device",
        "info",
        "input_is_ref",
        "inputs",
        "missing_inputs",
        "name",
        "node_def",
        "number",
        "op",
        "output_is_ref",
        "output_types",
    )

    def __init__(
        self,
        name: str,
        info: OpInfo,
        node_def: pb.NodeDef,
        attrs: dict[str, AttributeValue] | None = None,
    ) -> None:
        self.name = name
        self.info = info
        self.op = info.name
        self.number = next(_creation_numbers)  # a clone has the same number as its original
        self.node_def = node_def
        self._attrs: dict[str, AttributeValue] = {} if attrs is None else attrs
        self.inputs: list[Endpoint] = []
        self.control_inputs: list[Node] = []
        self.device = node_def.device
        self.missing_inputs = 0
        self.output_types: tuple[DataType, ...] = ()
        self.output_is_ref: tuple[bool, ...] = ()
        self.input_is_ref: tuple[bool, ...] = ()

    def attr(self, name: str) -> AttributeValue:
        """Return the Python value of the attribute `name`.

        If the node has no such attribute, it is the default that the op declares. Raises
        NotFoundError with TensorFlow's message if there is no default either.
        """
        try:
            return self._attrs[name]
        except KeyError:
            pass
        given = self.node_def.attr.get(name)
        if given is not None:
            value = attr_value.from_proto(given)
        elif name in self.info.defaults:
            value = attr_value.from_proto(self.info.defaults[name])
        else:
            raise NotFoundError(f"No attr named '{name}' in NodeDef:", self.name)
        self._attrs[name] = value
        return value

    def find_attr(self, name: str) -> AttributeValue:
        """Return the Python value of the attribute `name`, or the default that the op declares.

        Return None if there is neither.
        """
        try:
            return self.attr(name)
        except NotFoundError:
            return None

    def attr_values(self) -> dict[str, AttributeValue]:
        """Return the values of all attributes by name, with the op's defaults for missing ones."""
        names = [*self.node_def.attr, *self.info.defaults]
        return {name: self.attr(name) for name in dict.fromkeys(names)}

    def set_types(self) -> None:
        """Set `output_types` and `output_is_ref` from the attributes."""
        self.output_types, self.output_is_ref = self.types_of(self.info.outputs)

    def expected_inputs(self) -> list[DataType]:
        """Return the element types that the signature requires of the inputs.

        Also set `input_is_ref`.
        """
        types, self.input_is_ref = self.types_of(self.info.inputs)
        return list(types)

    def types_of(
        self, arguments: tuple[Argument, ...]
    ) -> tuple[tuple[DataType, ...], tuple[bool, ...]]:
        """Return (element types, whether each is a reference) of the tensors of `arguments`.

        A list argument contributes one element per tensor. Raises InvalidArgumentError if an
        attribute that gives a number of tensors is negative, ResourceExhaustedError if it is above
        the limit `_MAX_COUNT`.
        """
        types: tuple[DataType, ...] = ()
        refs: tuple[bool, ...] = ()
        for argument in arguments:
            if argument.type_list_attr:
                one = tuple(self.attr(argument.type_list_attr))
            else:
                data_type = (
                    self.attr(argument.type_attr) if argument.type_attr else argument.fixed_type
                )
                count = self.attr(argument.number_attr) if argument.number_attr else 1
                if count < 0:
                    raise InvalidArgumentError(
                        f"Attr '{argument.number_attr}' of node {self.name} is {count}: "
                        "a count must not be negative"
                    )
                if count > _MAX_COUNT:
                    raise ResourceExhaustedError(
                        f"Attr '{argument.number_attr}' of node {self.name} is {count}: "
                        f"the limit is {_MAX_COUNT}"
                    )
                one = _repeated(data_type, count)
            # `() + one` is `one` itself, so that nodes with a single argument share the cached
            # tuple.
            types += one
            refs += _repeated(argument.is_ref, len(one))
        return types, refs

    def fit_edges(self) -> None:
        """Give the edge lists the size that they need.

        A list that was filled one by one has room for more, and its memory is not among that of the
        model: Python asks for it with realloc(), see `runtime/foundation/model_objects.py`.
        """
        self.inputs = self.inputs.copy()
        self.control_inputs = self.control_inputs.copy()

    def clone(self, name: str | None = None) -> Node:
        """Return a copy that a pass may change, named `name` if given.

        The copy has edge lists of its own and shares the attributes with the original.
        """
        copy = object.__new__(Node)
        copy.name = name or self.name
        copy.info = self.info
        copy.op = self.op
        copy.number = self.number
        copy.node_def = self.node_def
        copy._attrs = self._attrs
        copy.inputs = self.inputs.copy()
        copy.control_inputs = self.control_inputs.copy()
        copy.device = self.device
        copy.missing_inputs = self.missing_inputs
        copy.output_types = self.output_types
        copy.output_is_ref = self.output_is_ref
        copy.input_is_ref = self.input_is_ref
        return copy

    def become(self, info: OpInfo, attrs: dict[str, AttributeValue]) -> None:
        """Turn this clone into a node of another op that has the same outputs.

        The caller must change the edges.
        """
        self.info = info
        self.op = info.name
        self.node_def = pb.NodeDef(name=self.name, op=info.name, device=self.device)
        self._attrs = attrs

    def set_attrs(self, attrs: dict[str, AttributeValue]) -> None:
        """Set the attributes of a node that a pass creates."""
        self._attrs = attrs

    def to_node_def(self) -> pb.NodeDef:
        """Return a NodeDef with the node's current name, device and edges."""
        node_def = pb.NodeDef()
        node_def.CopyFrom(self.node_def)
        node_def.name, node_def.device = self.name, self.device
        del node_def.input[:]
        node_def.input.extend(
            source.name if index == 0 else f"{source.name}:{index}" for source, index in self.inputs
        )
        node_def.input.extend(f"^{control.name}" for control in self.control_inputs)
        return node_def

    def __repr__(self) -> str:
        return f"<Node {self.name} {self.op}>"


@functools.lru_cache(maxsize=256, typed=True)  # typed because True == 1 == DataType.FLOAT
def _repeated(value: AttributeValue, count: int) -> tuple[AttributeValue, ...]:
    """Return a tuple with `count` times `value`.

    Equal tuples are cached and shared, which saves memory in graphs with many outputs.
    """
    return (value,) * count


def substitute(value: AttributeValue, attrs: Mapping[str, AttributeValue]) -> AttributeValue:
    """Return `value` with each placeholder for an attribute replaced by its value in `attrs`.

    Nodes in the definition of a function have such placeholders; `attrs` are the values that the
    caller of the function gives. Raises InvalidArgumentError if `attrs` lacks one.
    """
    if isinstance(value, AttrPlaceholder):
        if value.name not in attrs:
            raise InvalidArgumentError(f"A function needs attribute '{value.name}', none was given")
        return attrs[value.name]
    if isinstance(value, NameAttrList) and value.attrs:
        return NameAttrList(
            value.name, {key: substitute(each, attrs) for key, each in value.attrs.items()}
        )
    return value
