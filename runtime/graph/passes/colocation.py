"""Colocation: nodes of one `_class` group, and users of a resource, are placed on one device.

The attribute `_class` of a node is a list of strings `loc:@name`. The nodes that list the same
name, and the node of that name if the graph has it, form a group. An operation on a variable or
another resource is placed on the device of the node that makes the resource.

TF: tensorflow/core/common_runtime/colocation_graph.cc (ColocateAllNodes, ColocateResourceOrRefEdge)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from runtime.devices.device import Device, DeviceSpec, parse_device_spec
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.graph.node import Node

_PREFIX = "loc:@"
# field of DeviceSpec → the plural that TensorFlow's error message uses for it
_PARTS = {
    "job": "jobs",
    "replica": "replicas",
    "task": "tasks",
    "device_type": "types",
    "index": "ids",
}


def colocate(
    nodes: Sequence[Node],
    known: Mapping[str, Node],
    devices: Sequence[Device],
    allow_soft_placement: bool,
) -> None:
    """Set the devices of the nodes that must be on the same device as other nodes.

    `known` has the nodes of the whole graph by name. If nodes of a group request different devices,
    the group is placed on the first of `devices` if `allow_soft_placement` is true; otherwise
    InvalidArgumentError is raised.
    """
    placed = frozenset(nodes)
    for group in _groups(nodes, known):
        device = _common_device(group, devices, allow_soft_placement)
        if device is not None:
            for node in placed.intersection(group):
                node.device = device
    for node in nodes:
        source = None if node.device else resource_source(node)
        if source is not None:
            node.device = source.device


def resource_source(node: Node) -> Node | None:
    """Return the node that makes the first reference or resource among the inputs of `node`.

    Return None if no input is a reference or a resource.
    """
    for slot, (source, index) in enumerate(node.inputs):
        is_ref = slot < len(node.input_is_ref) and node.input_is_ref[slot]
        if is_ref or source.output_types[index] is DataType.RESOURCE:
            return source
    return None


def colocation_names(node: Node) -> list[str]:
    """Return the names of the node's colocation groups, which its attribute `_class` lists."""
    if "_class" not in node.node_def.attr:
        return []
    locations = map(str, node.attr("_class"))
    return [each.removeprefix(_PREFIX) for each in locations if each.startswith(_PREFIX)]


def _groups(nodes: Iterable[Node], known: Mapping[str, Node]) -> Iterable[list[Node]]:
    """Return the groups of nodes that must be on one device, each in order of creation."""
    groups: dict[str, dict[Node, None]] = {}
    for node in nodes:
        names = colocation_names(node)
        joined = dict.fromkeys([node])
        for name in names:
            leader = known.get(name)
            if leader is not None and not colocation_names(leader):
                joined[leader] = None
            joined |= groups.get(name, {})
        for member in joined if names else ():
            groups |= dict.fromkeys(colocation_names(member), joined)
    distinct = {id(group): group for group in groups.values()}
    return [sorted(group, key=lambda node: node.number) for group in distinct.values()]


def _common_device(
    group: Sequence[Node], devices: Sequence[Device], allow_soft_placement: bool
) -> str | None:
    """Return the name of the device that the nodes of `group` request together.

    Return None if they request no device, or if no device has all requested parts. If two nodes
    request different devices, return the first device or raise InvalidArgumentError (see
    `colocate`).
    """
    merged = DeviceSpec()
    first: Node | None = None
    for node in group:
        spec = parse_device_spec(node.device) if node.device else None
        if spec is None:
            continue
        clash = _clash(merged, spec)
        if clash is not None and allow_soft_placement:
            return devices[0].name
        if clash is not None and first is not None:
            raise InvalidArgumentError(
                f"Cannot colocate nodes {{{{colocation_node {node.name}}}}} and "
                f"{{{{colocation_node {first.name}}}}}: Cannot merge devices with incompatible "
                f"{clash}: '{first.device}' and '{node.device}'",
                node.name,
            )
        first = first or node
        stated = {part: value for part in _PARTS if (value := getattr(spec, part)) is not None}
        merged = dataclasses.replace(merged, **stated)
    if first is None:
        return None
    return next((device.name for device in devices if merged.matches(device.spec)), None)


def _clash(one: DeviceSpec, other: DeviceSpec) -> str | None:
    """Return the first part of the device name in which two specs contradict each other.

    The part is named as in TensorFlow's error message. Return None if there is no contradiction.
    """
    for part, shown in _PARTS.items():
        if len({getattr(one, part), getattr(other, part)} - {None}) > 1:
            return shown
    return None
