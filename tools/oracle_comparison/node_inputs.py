"""The values that reach a node's inputs from a feed or a constant."""

from __future__ import annotations

import collections

import numpy as np

import protos as pb
from runtime.framework import op_def_registry
from runtime.framework.tensor_codec import tensor_from_proto
from tests.conformance.case import Case, Step


def inputs_of(case: Case, node: pb.NodeDef, step: Step) -> dict[str, list[np.ndarray]]:
    """Return argument of the op → its values in a step, without those that other nodes compute.

    If one value of a list is computed, the list is empty.
    """
    nodes = {each.name: each for each in case.graph.node}
    found: dict[str, list[np.ndarray]] = collections.defaultdict(list)
    sources = iter(each for each in node.input if not each.startswith("^"))
    for argument in op_def_registry.look_up(node.op).input_arg:
        values = [_value(nodes, next(sources), step) for _ in range(_count(node, argument))]
        known = [each for each in values if each is not None]
        found[argument.name] = known if len(known) == len(values) else []
    return found


def _count(node: pb.NodeDef, argument: pb.OpDef.ArgDef) -> int:
    if argument.number_attr:
        return int(node.attr[argument.number_attr].i)
    if argument.type_list_attr:
        return len(node.attr[argument.type_list_attr].list.type)
    return 1


def _value(nodes: dict[str, pb.NodeDef], source: str, step: Step) -> np.ndarray | None:
    name = source.split(":")[0]
    for key, value in step.feeds.items():
        if key.split(":")[0] == name:
            return np.asarray(value)
    node = nodes.get(name)
    if node is not None and node.op == "Identity":
        return _value(nodes, node.input[0], step)
    if node is None or node.op != "Const":
        return None
    return tensor_from_proto(node.attr["value"].tensor)
