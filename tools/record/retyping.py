"""Recorded cases with another element type: the same graph and the same numbers.

`Retyping` changes one type attribute of an op and all that depends on it: placeholders and their
feeds, constants, the resource behind a handle. `joined` puts several such graphs into one case.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import protos as pb
from runtime.framework import op_def_registry
from runtime.framework.dtypes import COMPLEX, FLOATING, REF_OFFSET, DataType
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from tests.conformance.case import Case, Step
from tests.conformance.shown_types import Slot, type_slots

# Type attribute → its role. The ops that use one handle must agree on the type of each role.
_ROLE_OF_ATTRIBUTE = {
    **dict.fromkeys(("dtype", "T", "element_dtype", "elem_type", "type"), "value"),
    **dict.fromkeys(("component_types", "Tcomponents"), "components"),
    **dict.fromkeys(("output_types", "Toutput_types"), "elements"),
    **dict.fromkeys(("key_dtype", "Tin", "Tkeys"), "keys"),
    **dict.fromkeys(("value_dtype", "Tout", "Tvalues"), "values"),
}
_HANDLES = (DataType.RESOURCE, DataType.VARIANT)
_TEXT = DataType.STRING
SINGLE_BYTES = 4


class NotRetypableError(Exception):
    """The case has no node to change, or a part of it requires the present type."""


@dataclasses.dataclass
class _Groups:
    """Union-find of items that must have the same type."""

    parent: dict[Any, Any] = dataclasses.field(default_factory=dict)

    def find(self, item: Any) -> Any:
        while (above := self.parent.setdefault(item, item)) != item:
            item = above
        return item

    def join(self, one: Any, other: Any) -> None:
        self.parent[self.find(one)] = self.find(other)

    def with_member(self, item: Any) -> list[Any]:
        root = self.find(item)
        return [each for each in self.parent if self.find(each) == root]


def _ports(node: pb.NodeDef, arguments: Iterable[pb.OpDef.ArgDef]) -> list[Slot | DataType]:
    """Return for each input or output of a node the slot that gives its type, or its fixed type."""
    ports: list[Slot | DataType] = []
    for argument in arguments:
        if argument.type_list_attr:
            name = argument.type_list_attr
            count = len(node.attr[name].list.type)
            ports += [(node.name, name, index) for index in range(count)]
            continue
        one: Slot | DataType = (
            (node.name, argument.type_attr, -1)
            if argument.type_attr
            else DataType(argument.type % REF_OFFSET)
        )
        ports += [one] * (node.attr[argument.number_attr].i if argument.number_attr else 1)
    return ports


def _groups_of_slots(graph: pb.GraphDef) -> tuple[_Groups, dict[Slot, DataType]]:
    """Return the groups of slots and fixed types that must be equal, and each slot's present type.

    Raises:
        NotRetypableError: A node calls a function.
    """
    nodes = {node.name: node for node in graph.node}
    groups, handles = _Groups(), _Groups()
    held: dict[Slot, DataType] = {}
    for node in graph.node:
        held.update(type_slots(node))
    for node in graph.node:
        definition = op_def_registry.find(node.op)
        if definition is None:
            raise NotRetypableError(f"{node.op} is a function")
        inputs = [each for each in node.input if not each.startswith("^")]
        for given, port in zip(inputs, _ports(node, definition.input_arg), strict=True):
            name, _, index = given.partition(":")
            source = nodes[name]
            made = _ports(source, op_def_registry.look_up(source.op).output_arg)[int(index or 0)]
            groups.join(made, port)
            if (held[made] if isinstance(made, tuple) else made) in (*_HANDLES, _TEXT):
                handles.join(source.name, node.name)
    users: dict[Any, Slot] = {}
    for slot in held:
        label = _ROLE_OF_ATTRIBUTE.get(slot[1])
        if label and held[slot] not in _HANDLES:
            first = users.setdefault((handles.find(slot[0]), label, slot[2], held[slot]), slot)
            groups.join(first, slot)
    return groups, held


class Retyping:
    """One type attribute of an op in a recorded case, and all that changes with it.

    Raises:
        NotRetypableError: The case has no such attribute, or the type must equal a fixed one.
    """

    def __init__(self, base: Case, op: str, attr: str) -> None:
        groups, held = _groups_of_slots(base.graph)
        target = next((slot for slot in held if _is_of(slot, attr, op, base.graph)), None)
        if target is None:
            raise NotRetypableError(f"{base.name} has no {op} with {attr}")
        members = groups.with_member(target)
        if any(isinstance(member, DataType) for member in members):
            raise NotRetypableError(f"{attr} of {op} hangs on a fixed type in {base.name}")
        self.base = base
        self.old = held[target]
        self._slots = collections.defaultdict(list)
        for name, slot_attr, index in members:
            self._slots[name].append((slot_attr, index))
        self._tensors = set()
        for node in base.graph.node:
            if node.name in self._slots:
                ports = _ports(node, op_def_registry.look_up(node.op).output_arg)
                mine = [i for i, port in enumerate(ports) if port in members]
                self._tensors |= {f"{node.name}:{index}" for index in mine}
                self._tensors |= {node.name} if 0 in mine else set()

    def to(self, new: DataType) -> Case:
        """Return the case with the new type."""
        graph = pb.GraphDef.FromString(self.base.graph.SerializeToString())
        for node in graph.node:
            for attr, index in self._slots.get(node.name, ()):
                _set_type(node.attr[attr], index, new)
            if node.op == "Const" and node.name in self._slots:
                value = tensor_from_proto(node.attr["value"].tensor)
                proto = tensor_to_proto(converted(value, self.old, new), new)
                node.attr["value"].tensor.CopyFrom(proto)
        steps = tuple(
            dataclasses.replace(step, feeds=self._feeds(step.feeds, new))
            for step in self.base.steps
        )
        half = new in FLOATING and new.numpy.itemsize < SINGLE_BYTES
        return dataclasses.replace(
            self.base,
            graph=graph,
            steps=steps,
            tolerance=None if half else self.base.tolerance,
            message=False,
            exact=False,
        )

    def _feeds(self, feeds: Mapping[str, np.ndarray], new: DataType) -> dict[str, np.ndarray]:
        return {
            key: converted(np.asarray(value), self.old, new) if key in self._tensors else value
            for key, value in feeds.items()
        }


def _is_of(slot: Slot, attr: str, op: str, graph: pb.GraphDef) -> bool:
    return slot[1] == attr and any(n.name == slot[0] and n.op == op for n in graph.node)


def _set_type(value: pb.AttrValue, index: int, to: DataType) -> None:
    if index < 0:
        value.type = to + REF_OFFSET if value.type > REF_OFFSET else to  # type: ignore[assignment]
    else:
        value.list.type[index] = to  # type: ignore[call-overload]


def converted(value: np.ndarray, old: DataType, to: DataType) -> np.ndarray:
    """Return the values as another element type; equal values stay equal, order mostly too.

    Floats below 3 in magnitude are multiplied by four before they are truncated to integers.
    """
    if old is _TEXT:
        return np.array([len(item) for item in value.ravel()]).reshape(value.shape).astype(to.numpy)
    if to is _TEXT:
        texts = np.empty(value.size, object)
        texts[:] = [str(item).encode() for item in value.ravel().tolist()]
        return texts.reshape(value.shape)
    if old in COMPLEX and to not in COMPLEX:
        value = value.real
    if to in FLOATING:
        return value.astype(to.numpy)
    if to in COMPLEX:
        wide = value.astype(np.complex128)
        return (wide if old in COMPLEX else wide * (1 + 0.5j)).astype(to.numpy)
    if to is DataType.BOOL:
        return value.astype(np.float64) > 0
    return _to_integers(value.astype(np.float64), old, to)


def _to_integers(value: np.ndarray, old: DataType, to: DataType) -> np.ndarray:
    finite = np.nan_to_num(value, nan=2, posinf=3, neginf=-3)
    if old in FLOATING and np.abs(finite).max(initial=0) < 3:
        finite = finite * 4
    dtype = to.numpy
    bits = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}.get(dtype.name, dtype.itemsize * 8)
    signed = to.tf_name.lstrip("q").startswith("int")
    top = 2.0 ** min(bits - signed, 31) - 1
    return np.clip(np.trunc(finite), -top - 1 if signed else 0, top).astype(dtype)


def joined(name: str, parts: Mapping[str, Case]) -> Case:
    """Return one case that contains several graphs, each in a name scope that is its key."""
    first = next(iter(parts.values()))
    graph = pb.GraphDef(versions=first.graph.versions, library=first.graph.library)
    steps = [Step({}) for _ in first.steps]
    for scope, part in parts.items():
        for node in part.graph.node:
            copy = graph.node.add()
            copy.CopyFrom(node)
            copy.name = _in_scope(scope, node.name)
            copy.input[:] = [_in_scope(scope, each) for each in node.input]
            for attr in _NAMES_IN_A_SESSION:
                if copy.attr.get(attr, _NO_VALUE).s:
                    copy.attr[attr].s = f"{scope}_".encode() + node.attr[attr].s
        steps = [
            Step(
                {**so_far.feeds, **{_in_scope(scope, key): v for key, v in step.feeds.items()}},
                (*so_far.fetches, *(_in_scope(scope, each) for each in step.fetches)),
                (*so_far.targets, *(_in_scope(scope, each) for each in step.targets)),
            )
            for so_far, step in zip(steps, part.steps, strict=True)
        ]
    return dataclasses.replace(first, name=name, graph=graph, steps=tuple(steps))


_NO_VALUE = pb.AttrValue()
_NAMES_IN_A_SESSION = ("shared_name", "var_name")


def _in_scope(scope: str, name: str) -> str:
    return f"^{scope}/{name[1:]}" if name.startswith("^") else f"{scope}/{name}"
