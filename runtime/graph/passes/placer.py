"""Device placement: gives each node that requests a device a device that the session has.

TF: tensorflow/core/common_runtime/placer.cc, colocation_graph.cc (messages)
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Mapping, Sequence

from runtime.devices.device import Device, parse_device_spec
from runtime.foundation.errors import InvalidArgumentError
from runtime.graph.node import Node
from runtime.graph.passes.colocation import colocate

_log = logging.getLogger(__name__)


def place(
    nodes: Sequence[Node],
    known: Mapping[str, Node],
    devices: Sequence[Device],
    allow_soft_placement: bool,
) -> None:
    """Set the full device names of nodes that request a device or are colocated with such a node.

    `known` has the nodes of the whole graph by name. If `allow_soft_placement` is true, a node that
    requests a device which this task does not have is placed on the first of `devices`. Raises
    InvalidArgumentError with TensorFlow's message if a requested device is malformed or does not
    exist; also raises what `colocate` raises.
    """
    if len(devices) > 1:
        colocate(nodes, known, devices, allow_soft_placement)
    assigned: dict[str, str] = {}  # by what was requested, since many nodes request the same
    for node in nodes:
        requested = node.device
        if requested:
            if requested not in assigned:
                assigned[requested] = _assign(node, devices, allow_soft_placement)
            node.device = assigned[requested]


def log_device_mapping(devices: Sequence[Device]) -> None:
    """Log the devices of a session, as `ConfigProto.log_device_placement` requests."""
    if not devices:
        _log.info("Device mapping: no known devices.")
        return
    listed = "\n".join(f"{device.name} -> {device.device_type}" for device in devices)
    _log.info("Device mapping:\n%s", listed)


def log_placement(nodes: Iterable[Node], devices: Sequence[Device]) -> None:
    """Log the device of every node; the first of `devices` if the node requests none."""
    for node in nodes:
        _log.info("%s: (%s): %s", node.name, node.op, node.device or devices[0].name)


def _assign(node: Node, devices: Sequence[Device], allow_soft_placement: bool) -> str:
    spec = parse_device_spec(node.device)
    if spec is None:
        raise InvalidArgumentError(
            f"Malformed device specification '{node.device}' in node: {{{{node {node.name}}}}}"
        )
    for device in devices:
        if spec.matches(device.spec):
            return device.name
    if allow_soft_placement and dataclasses.replace(spec, device_type=None, index=None).matches(
        devices[0].spec
    ):
        return devices[0].name
    available = ", ".join(device.name for device in devices)
    raise InvalidArgumentError(
        f"Cannot assign a device for operation {node.name}: {{{{node {node.name}}}}} was "
        f"explicitly assigned to {node.device} but available devices are [ {available} ]. "
        "Make sure the device specification refers to a valid device."
    )
