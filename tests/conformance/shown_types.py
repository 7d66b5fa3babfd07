"""The ops, kernels and element types that the recorded cases cover.

A type is covered for an attribute if a node with it runs in a step that succeeds in TensorFlow:
`test_cases.py` compares those answers on every executor.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import protos as pb
from runtime.framework import op_def_registry
from runtime.framework.attr_value import from_proto
from runtime.framework.dtypes import REF_OFFSET, DataType
from tests.conformance.case import Answer, Case, cases_of, families, read_golden

# (node, attribute, index in a list attribute or −1): a place that holds an element type.
Slot = tuple[str, str, int]
# {op: {attribute: element types}}
ShownTypes = dict[str, dict[str, set[DataType]]]


def recorded_cases(names: Iterable[str] = ()) -> Iterator[tuple[str, Case, tuple[Answer, ...]]]:
    """Yield (family, case, answers) of the named or all families; () if none are recorded."""
    for family in list(names) or families():
        golden = read_golden(family)
        for case in cases_of(family):
            yield family, case, golden.get(case.name, ("", ()))[1]


def nodes_of(case: Case) -> list[pb.NodeDef]:
    """Return the nodes of a case's graph and of its functions."""
    functions = [node for f in case.graph.library.function for node in f.node_def]
    return [*case.graph.node, *functions]


def type_slots(node: pb.NodeDef) -> Iterator[tuple[Slot, DataType]]:
    """Yield every slot of a node with its element type (of a reference type, the value's type)."""
    definition = op_def_registry.find(node.op)
    for attr in definition.attr if definition else ():
        value = node.attr.get(attr.name, attr.default_value)
        if attr.type == "type" and value.type:
            yield (node.name, attr.name, -1), DataType(value.type % REF_OFFSET)
        elif attr.type == "list(type)":
            for index, each in enumerate(value.list.type):
                yield (node.name, attr.name, index), DataType(each % REF_OFFSET)


def answered_nodes(case: Case, answers: Sequence[Answer]) -> list[pb.NodeDef]:
    """Return the nodes that run in the steps that succeed in TensorFlow."""
    wanted: list[str] = []
    for step, answer in zip(case.steps, answers, strict=False):
        if not answer.code:
            wanted += [*step.fetches, *step.targets]
    by_name = {node.name: node for node in case.graph.node}
    reached: dict[str, pb.NodeDef] = {}
    while wanted:
        name = wanted.pop().removeprefix("^").partition(":")[0]
        if name not in reached:
            reached[name] = by_name[name]
            wanted += by_name[name].input
    functions = case.graph.library.function if reached else ()
    return [*reached.values(), *(node for f in functions for node in f.node_def)]


def shown_types(names: Iterable[str] = ()) -> ShownTypes:
    """Return the element types of every op's type attributes that recorded cases cover."""
    shown: ShownTypes = collections.defaultdict(lambda: collections.defaultdict(set))
    for _, case, answers in recorded_cases(names):
        for node in answered_nodes(case, answers):
            for (_, attr, _), data_type in type_slots(node):
                shown[node.op][attr].add(data_type)
    return shown


@dataclasses.dataclass(frozen=True)
class RecordedNode:
    """A node with the interface that the kernel registry requires."""

    node: pb.NodeDef

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def op(self) -> str:
        return self.node.op

    def attr(self, name: str) -> object:
        """Return the attribute, or the op's default."""
        if name in self.node.attr:
            return from_proto(self.node.attr[name])
        definition = op_def_registry.look_up(self.op)
        return from_proto(next(a.default_value for a in definition.attr if a.name == name))
