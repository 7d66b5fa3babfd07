"""Partitioning of a step's graph by device: an edge between devices becomes a _Send and a _Recv.

Feeds and fetches are on the client device, which is the first device of the session. A control edge
between devices sends a scalar constant. Graphs with v1 control flow are not partitioned.

TF: tensorflow/core/graph/graph_partition.cc (Partition)
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

import protos as pb
from runtime.framework.dtypes import DataType
from runtime.graph.function_library import op_info
from runtime.graph.node import Endpoint, Node
from runtime.graph.passes.colocation import colocation_names, resource_source
from runtime.graph.passes.pruning import StepGraph
from runtime.graph.topology import is_loop_node

_CONTROL_VALUE = np.float32(0)
_CONTROL_VALUE_TYPE = DataType.FLOAT


@dataclasses.dataclass(frozen=True, slots=True)
class Partition:
    """The part of a step that one device runs."""

    device: str
    graph: StepGraph


def assign_devices(graph: StepGraph, client_device: str) -> bool:
    """Assign a device to every node of `graph`; return whether several devices are in use.

    A node that has no device yet is placed with its colocation group; if it has no group, with the
    variable or resource that it reads; otherwise on the client device.
    """
    by_name = {node.name: node for node in graph.nodes}
    assigned: dict[Node, str] = {}
    for argument in graph.arguments:
        if argument is not None:
            assigned[argument] = client_device

    def device_of(node: Node, depth: int = 0) -> str:
        known = assigned.get(node)
        if known is None:
            known = node.device
            if not known and depth < len(graph.nodes):
                leader = _leader(node, by_name)
                known = device_of(leader, depth + 1) if leader is not None else client_device
            assigned[node] = known = known or client_device
        return known

    for node in graph.nodes:
        node.device = device_of(node)
    return len(set(assigned.values())) > 1


def _leader(node: Node, by_name: dict[str, Node]) -> Node | None:
    """Return a node on whose device `node` must be; None if there is no such node."""
    for name in colocation_names(node):
        other = by_name.get(name)
        if other is not None and other is not node:
            return other
    return resource_source(node)


def can_partition(graph: StepGraph) -> bool:
    """Return whether `graph` can be partitioned, which requires that it has no v1 control flow."""
    return not any(is_loop_node(node) for node in graph.nodes)


def partition(graph: StepGraph, client_device: str) -> list[Partition]:
    """Split `graph` by device; return the partitions, with the client device's first.

    The partitions take over the nodes of `graph` and change their edges.
    """
    return _Partitioner(graph, client_device).split()


class _Partitioner:
    """Splits one graph into partitions."""

    def __init__(self, graph: StepGraph, client_device: str) -> None:
        self._graph = graph
        self._client_device = client_device
        self._numbers = itertools.count()
        self._received: dict[tuple[Endpoint, str], Endpoint] = {}
        self._gates: dict[tuple[Node, str], Node] = {}
        self._nodes: dict[str, list[Node]] = {client_device: []}

    def split(self) -> list[Partition]:
        for node in self._graph.nodes:
            self._nodes.setdefault(node.device, []).append(node)
        for node in self._graph.nodes:
            node.inputs = [self._endpoint_on(endpoint, node.device) for endpoint in node.inputs]
            node.control_inputs = [
                self._control_on(control, node.device) for control in node.control_inputs
            ]
        fetches = [
            self._endpoint_on(endpoint, self._client_device) for endpoint in self._graph.fetches
        ]
        targets = set(self._graph.targets)
        result = []
        for device, nodes in self._nodes.items():
            is_client = device == self._client_device
            result.append(
                Partition(
                    device,
                    StepGraph(
                        nodes,
                        self._graph.arguments if is_client else [],
                        fetches if is_client else [],
                        [node for node in nodes if node in targets or node.op == "_Send"],
                        self._graph.retvals if is_client else [],
                    ),
                )
            )
        return result

    def _endpoint_on(self, endpoint: Endpoint, device: str) -> Endpoint:
        """Return `endpoint` if it is on `device`, else the _Recv that receives it there.

        The _Recv and its _Send are added for the first reader on `device`.
        """
        source = endpoint[0]
        if source.device == device:
            return endpoint
        received = self._received.get((endpoint, device))
        if received is None:
            received = self._received[(endpoint, device)] = (self._transfer(endpoint, device), 0)
        return received

    def _control_on(self, control: Node, device: str) -> Node:
        """Return the node for which a node on `device` waits in place of `control`.

        It is `control` itself if `control` is on `device`, else a _Recv that receives a constant
        sent after `control` has run.
        """
        if control.device == device:
            return control
        gate = self._gates.get((control, device))
        if gate is None:
            signal = _node(f"{control.name}/_{next(self._numbers)}", "Const", control.device)
            signal.set_attrs({"dtype": _CONTROL_VALUE_TYPE, "value": _CONTROL_VALUE})
            signal.output_types, signal.output_is_ref = (_CONTROL_VALUE_TYPE,), (False,)
            signal.control_inputs = [control]
            self._nodes[control.device].append(signal)
            gate = self._gates[(control, device)] = self._transfer((signal, 0), device)
        return gate

    def _transfer(self, endpoint: Endpoint, device: str) -> Node:
        """Add a _Send and a _Recv that carry `endpoint` to `device`; return the _Recv."""
        source, index = endpoint
        data_type = source.output_types[index]
        edge = next(self._numbers)
        attrs = {
            "tensor_name": f"edge_{edge}_{source.name}:{index}",
            "send_device": source.device,
            "recv_device": device,
            "send_device_incarnation": 0,
            "client_terminated": False,
        }
        send = _node(f"{source.name}/_{2 * edge}", "_Send", source.device)
        send.set_attrs({**attrs, "T": data_type})
        send.inputs, send.input_is_ref = [endpoint], (False,)
        self._nodes[source.device].append(send)
        receive = _node(f"{source.name}/_{2 * edge + 1}", "_Recv", device)
        receive.set_attrs({**attrs, "tensor_type": data_type})
        receive.output_types, receive.output_is_ref = (data_type,), (False,)
        self._nodes[device].append(receive)
        return receive


def _node(name: str, op: str, device: str) -> Node:
    info = op_info(op)
    assert info is not None
    return Node(name, info, pb.NodeDef(name=name, op=op, device=device))
