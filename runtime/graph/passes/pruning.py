"""Pruning: clones the nodes that one step needs, and puts argument nodes in place of fed tensors.

TF: tensorflow/core/graph/subgraph.cc (RewriteGraphForExecution), direct_session.cc
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence

import protos as pb
from runtime.foundation.errors import InvalidArgumentError, NotFoundError, OutOfRangeError
from runtime.foundation.gradual_freeing import free_elements
from runtime.graph.function_library import op_info
from runtime.graph.graph import Graph
from runtime.graph.node import Endpoint, Node
from runtime.graph.node_checks import check_complete
from runtime.graph.tensor_name import fed_more_than_once, parse_tensor_name

_creation = operator.attrgetter("number")
_PLACEHOLDERS = ("Placeholder", "PlaceholderV2")


@dataclasses.dataclass(slots=True)
class StepGraph:
    """The nodes of one step, cloned so that passes may change them.

    `arguments[i]` is the `_Arg` node of feed i, or None if no node reads this feed. `retvals` has
    the names of the fetches in RunMetadata, which stay the same when passes change the nodes.
    """

    nodes: list[Node]
    arguments: list[Node | None]
    fetches: list[Endpoint]
    targets: list[Node]
    retvals: list[str] = dataclasses.field(default_factory=list)

    def __del__(self) -> None:
        free_elements(self, "nodes")


def find_endpoint(graph: Graph, name: str) -> Endpoint:
    """Return (node, output index) of the tensor with the name `name`, such as `x:1` or `x`.

    Raises InvalidArgumentError if the node is unknown, OutOfRangeError if it lacks this output.
    """
    node_name, index = parse_tensor_name(name)
    node = graph.nodes.get(node_name)
    if node is None:
        raise InvalidArgumentError(
            f"Tensor {node_name}:{index}, specified in either feed_devices or fetch_devices was "
            "not found in the Graph"
        )
    if not 0 <= index < len(node.output_types):
        raise OutOfRangeError(
            f"Node '{node.name}' (type: '{node.op}', num of outputs: {len(node.output_types)}) "
            f"does not have output {index}"
        )
    return node, index


def prune(
    graph: Graph, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
) -> StepGraph:
    """Return the StepGraph for these feeds, fetches and targets.

    Raises InvalidArgumentError if there is neither a fetch nor a target, if the node of a feed or
    fetch is unknown, if a tensor is fed twice or both fed and fetched, or if a node that is needed
    lacks inputs, or needs a variable where a value is fed; NotFoundError if a target is unknown;
    OutOfRangeError if a node lacks the output that is fed or fetched.
    """
    if not fetches and not targets:
        raise InvalidArgumentError("Must specify at least one target to fetch or execute.")
    fed = _fed_endpoints(graph, feeds)
    fetched = [find_endpoint(graph, name) for name in fetches]
    for name, endpoint in zip(fetches, fetched, strict=True):
        if endpoint in fed:
            raise InvalidArgumentError(f"{name} is both fed and fetched.")
    wanted = _find_targets(graph, targets)
    return _Pruner(fed, len(feeds)).prune(fetched, wanted)


def _fed_endpoints(graph: Graph, feeds: Sequence[str]) -> dict[Endpoint, int]:
    fed: dict[Endpoint, int] = {}
    for position, name in enumerate(feeds):
        endpoint = find_endpoint(graph, name)
        if endpoint in fed:
            raise fed_more_than_once(name)
        fed[endpoint] = position
    return fed


def _find_targets(graph: Graph, targets: Sequence[str]) -> list[Node]:
    found, missing = [], []
    for target in targets:
        node = graph.nodes.get(parse_tensor_name(target)[0])
        if node is None:
            missing.append(target)
        else:
            found.append(node)
    if missing:
        listed = "".join(f"{name} " for name in missing)
        raise NotFoundError(f"PruneForTargets: Some target nodes not found: {listed}")
    return found


class _Pruner:
    """Clones the nodes on which fetches and targets depend."""

    def __init__(self, fed: dict[Endpoint, int], feed_count: int) -> None:
        self._fed = fed
        self._arguments: list[Node | None] = [None] * feed_count
        self._clones: dict[Node, Node] = {}

    def prune(self, fetches: list[Endpoint], targets: list[Node]) -> StepGraph:
        reached = self._reach([node for node, _ in fetches] + targets)
        # The order of creation is mostly topological, and `topological_order` is faster on nodes
        # that are in order already.
        for node in sorted(reached, key=_creation):
            check_complete(node)
            self._clones[node] = node.clone()
        for clone in self._clones.values():
            self._rewire(clone)
        return StepGraph(
            [*(a for a in self._arguments if a is not None), *self._clones.values()],
            self._arguments,
            [(self._clones[node], index) for node, index in fetches],
            [self._clones[node] for node in targets],
            [f"_retval_{node.name}_{index}_{i}" for i, (node, index) in enumerate(fetches)],
        )

    def _reach(self, pending: list[Node]) -> set[Node]:
        """Return the nodes of `pending` and all nodes on which they depend; empty `pending`."""
        fed = self._fed
        reached: set[Node] = set()
        while pending:
            node = pending.pop()
            if node in reached:
                continue
            reached.add(node)
            if fed:
                pending += [endpoint[0] for endpoint in node.inputs if endpoint not in fed]
                pending += [each for each in node.control_inputs if not self._is_fed(each)]
            else:
                pending += [source for source, _ in node.inputs]
                pending += node.control_inputs
        return reached

    def _is_fed(self, node: Node) -> bool:
        """Return whether `node` is a placeholder that is fed.

        A control edge from such a node has nothing to wait for.
        """
        return node.op in _PLACEHOLDERS and (node, 0) in self._fed

    def _rewire(self, clone: Node) -> None:
        if not self._fed:
            clones = self._clones
            clone.inputs = [(clones[source], index) for source, index in clone.inputs]
            clone.control_inputs = [clones[control] for control in clone.control_inputs]
            return
        for slot, is_ref in enumerate(clone.input_is_ref):
            if is_ref and clone.inputs[slot] in self._fed:
                raise self._fed_instead_of_ref(clone, slot)
        clone.inputs = [self._source(endpoint) for endpoint in clone.inputs]
        clone.control_inputs = [
            self._clones[control] for control in clone.control_inputs if not self._is_fed(control)
        ]

    def _fed_instead_of_ref(self, node: Node, slot: int) -> InvalidArgumentError:
        source, index = self._source(node.inputs[slot])
        name = source.output_types[index].tf_name
        return InvalidArgumentError(
            f"Input {slot} of node {node.name} was passed {name} from {source.name}:{index} "
            f"incompatible with expected {name}_ref."
        )

    def _source(self, endpoint: Endpoint) -> Endpoint:
        position = self._fed.get(endpoint)
        if position is None:
            return self._clones[endpoint[0]], endpoint[1]
        argument = self._arguments[position]
        if argument is None:
            argument = self._arguments[position] = argument_node(endpoint, position)
        return argument, 0


def argument_node(endpoint: Endpoint, position: int) -> Node:
    """Return the `_Arg` node that replaces `endpoint`, the output fed by feed `position`."""
    source, index = endpoint
    info = op_info("_Arg")
    assert info is not None
    data_type = source.output_types[index]
    node = Node(
        f"_arg_{source.name}_{index}_{position}",
        info,
        pb.NodeDef(op="_Arg"),
        {"T": data_type, "index": position},
    )
    node.output_types, node.output_is_ref = (data_type,), (False,)
    return node
