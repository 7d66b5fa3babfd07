"""The variable-only part of a step: nodes that depend on variables and constants only.

`split_variable_only_part` divides a step's graph into this part, whose outputs are computed once
for each state of the variables, and the rest, which gets those outputs as additional arguments.

A node is in the part if it reads a variable or its kernel is a pure function, if its data inputs
are constants or in the part, and if its control inputs lead to nodes of the part, constants or
feeds only. Hence nothing in the step is ordered before such a node, so all reads may be made when
the step begins: that is one of the orders in which the graph allows them. It can never be dead
either, and is in no loop.

Not in the part are reads of variables that a node of the step may write (`variable_access`), reads
of a reference by a node outside of the part (such a read is ordered by that node's other inputs),
targets, ops whose outputs can be much larger than their inputs, and strings.

TensorFlow has no equivalent; grappler folds variables of a frozen graph only.
"""

from __future__ import annotations

import dataclasses

from runtime.foundation.errors import OpError
from runtime.framework.dtypes import DataType
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.resources.variable import VariableKey
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.node import Endpoint, Node
from runtime.graph.passes.constant_folding import is_pure
from runtime.graph.passes.pruning import StepGraph, argument_node
from runtime.graph.topology import topological_order
from runtime.graph.variable_access import handle_origin, read_only_variables
from runtime.graph.variable_nodes import VARIABLE_OPS

# Ops whose outputs can be much larger than their inputs, so that keeping them needs much memory.
_EXPANDING_OPS = frozenset(("BroadcastTo", "Fill", "OneHot", "Tile"))
_PASS_ON_OPS = frozenset(("Identity", "StopGradient", "PreventGradient"))  # output is the input


@dataclasses.dataclass(frozen=True, slots=True)
class VariableOnlyPart:
    """The variable-only part of a step, and the rest of the step.

    `part` takes the arrays of the variables `keys` as its arguments and fetches `outputs`. `rest`
    takes the step's feeds, of which there are `feed_count`, and then the values of `outputs`; it
    has the step's fetches and targets.
    """

    keys: tuple[VariableKey, ...]
    part: StepGraph
    rest: StepGraph
    feed_count: int
    outputs: tuple[Endpoint, ...]  # in the graph that was split
    # The indices of the fetches that may be, or share memory with, an output that `part` computes.
    sharing_fetches: tuple[int, ...]


def split_variable_only_part(
    graph: StepGraph, library: FunctionLibrary, kernels: KernelRegistry
) -> VariableOnlyPart | None:
    """Return the two parts of `graph`, or None if the variable-only part is empty.

    `graph` is not changed; `library` has the functions that its nodes call.
    """
    variables = read_only_variables(graph, library)
    if not variables:
        return None
    inside = _Members(graph, variables, kernels)
    outputs = inside.outputs()
    if not outputs:
        return None
    positions = {node: position for position, node in enumerate(graph.nodes)}
    outputs.sort(key=lambda endpoint: (positions[endpoint[0]], endpoint[1]))
    part, keys = _part_graph(graph, inside, outputs)
    rest, given = _rest_graph(graph, inside, outputs)
    computed = {
        argument
        for argument, endpoint in zip(given, outputs, strict=True)
        if not inside.is_array_of_variable(endpoint)
    }
    return VariableOnlyPart(
        keys, part, rest, len(graph.arguments), tuple(outputs), _sharing(rest, computed, kernels)
    )


class _Members:
    """The nodes of the variable-only part."""

    def __init__(
        self, graph: StepGraph, variables: dict[Node, VariableKey], kernels: KernelRegistry
    ) -> None:
        self._graph = graph
        self._variables = variables
        self._kernels = kernels
        self._targets = set(graph.targets)
        self.nodes: set[Node] = set()
        self.reads: dict[Node, VariableKey] = {}  # the nodes of the part that read a handle
        # Nodes that never delay the part: its own, and constants, feeds and NoOps.
        self._begun: set[Node] = {node for node in graph.arguments if node is not None}
        for node in topological_order(graph.nodes):
            if all(control in self._begun for control in node.control_inputs):
                self._add(node)

    def _add(self, node: Node) -> None:
        if node.op in ("Const", "NoOp") or node in self._variables or self._passes_handle_on(node):
            self._begun.add(node)
        elif node not in self._targets and (self._is_read(node) or self._is_computed(node)):
            self._begun.add(node)
            self.nodes.add(node)

    def _passes_handle_on(self, node: Node) -> bool:
        return (
            node.op in ("Identity", "IdentityN")
            and all(each is DataType.RESOURCE for each in node.output_types)
            and all(source in self._begun for source, _ in node.inputs)
        )

    def _is_read(self, node: Node) -> bool:
        """Return whether `node` is a ReadVariableOp of the part, and add it to `reads` if so."""
        if node.op != "ReadVariableOp" or node.inputs[0][0] not in self._begun:
            return False
        key = self._variables.get(handle_origin(node.inputs[0]))
        if key is None or key.dtype is not node.attr("dtype") or not _is_numeric(key.dtype):
            return False
        self.reads[node] = key
        return True

    def _is_computed(self, node: Node) -> bool:
        """Return whether `node` is a pure function of constants and at least one member."""
        if (
            node.op in _EXPANDING_OPS
            or not all(map(_is_numeric, node.output_types))
            or any(node.input_is_ref)
            or not is_pure(node)
        ):
            return False
        sources = [source for source, _ in node.inputs]
        if not all(self.is_input(source) for source in sources):
            return False
        if all(source.op == "Const" for source in sources):
            return False  # constant folding has left it to the step
        try:
            kernel = self._kernels.find(node)
        except OpError:  # the executor of the rest raises it
            return False
        return not (kernel.needs_context or kernel.asynchronous)

    def is_input(self, node: Node) -> bool:
        """Return whether a node of the part may read the output of `node`."""
        return (
            node in self.nodes
            or (node.op == "Const" and node in self._begun)
            or self.reference(node) is not None
        )

    def reference(self, node: Node) -> VariableKey | None:
        """Return the key of the variable to which the output of `node` is a reference."""
        key = self._variables.get(node) if node.op != "VarHandleOp" else None
        return key if key is not None and _is_numeric(key.dtype) else None

    def outputs(self) -> list[Endpoint]:
        """Return the outputs of the part that the rest reads or that are fetched."""
        found = dict.fromkeys(each for each in self._graph.fetches if each[0] in self.nodes)
        for node in self._graph.nodes:
            if node not in self.nodes:
                found |= dict.fromkeys(each for each in node.inputs if each[0] in self.nodes)
        return list(found)

    def is_array_of_variable(self, endpoint: Endpoint) -> bool:
        """Return whether the value of `endpoint` is the array of a variable itself."""
        node = endpoint[0]
        while node.op in _PASS_ON_OPS and node in self.nodes:
            node = node.inputs[0][0]
        return node in self.reads or self.reference(node) is not None


def _is_numeric(data_type: DataType) -> bool:
    return data_type.numpy.kind != "O"


def _part_graph(
    graph: StepGraph, inside: _Members, outputs: list[Endpoint]
) -> tuple[StepGraph, tuple[VariableKey, ...]]:
    """Return the graph of the part, and the variables whose arrays are its arguments."""
    arguments: dict[VariableKey, Node] = {}
    copies: dict[Node, Node] = {}

    def argument(key: VariableKey, endpoint: Endpoint) -> Node:
        known = arguments.get(key)
        if known is None:
            known = arguments[key] = argument_node(endpoint, len(arguments))
        return known

    def source_of(endpoint: Endpoint) -> Endpoint:
        node, index = endpoint
        key = inside.reads.get(node) or inside.reference(node)
        if key is not None:
            return argument(key, endpoint), 0
        if node not in copies:  # a constant, which needs no control inputs here
            copies[node] = node.clone()
            copies[node].control_inputs = []
        return copies[node], index

    for node in topological_order(graph.nodes):
        if node in inside.reads:
            argument(inside.reads[node], (node, 0))
        elif node in inside.nodes:
            copy = node.clone()
            copy.inputs = [source_of(endpoint) for endpoint in node.inputs]
            copy.control_inputs = []
            copies[node] = copy
    fetches = [source_of(endpoint) for endpoint in outputs]
    nodes = [*arguments.values(), *copies.values()]
    return StepGraph(nodes, list(arguments.values()), fetches, []), tuple(arguments)


def _rest_graph(
    graph: StepGraph, inside: _Members, outputs: list[Endpoint]
) -> tuple[StepGraph, list[Node]]:
    """Return the graph without the part, and its `_Arg` nodes for `outputs`."""
    count = len(graph.arguments)
    given = [argument_node(each, count + index) for index, each in enumerate(outputs)]
    moved: dict[Endpoint, Endpoint] = {
        endpoint: (argument, 0) for endpoint, argument in zip(outputs, given, strict=True)
    }
    copies = {node: node.clone() for node in _nodes_of_rest(graph, inside)}

    def source_of(endpoint: Endpoint) -> Endpoint:
        return moved.get(endpoint) or (copies[endpoint[0]], endpoint[1])

    for copy in copies.values():
        copy.inputs = [source_of(endpoint) for endpoint in copy.inputs]
        copy.control_inputs = [copies[each] for each in copy.control_inputs if each in copies]
    fed = [None if node is None else copies[node] for node in graph.arguments]
    rest = StepGraph(
        [*given, *copies.values()],
        [*fed, *given],
        [source_of(endpoint) for endpoint in graph.fetches],
        [copies[node] for node in graph.targets],
        graph.retvals,
    )
    return rest, given


def _nodes_of_rest(graph: StepGraph, inside: _Members) -> list[Node]:
    """Return the nodes that remain, in order.

    Constants and nodes of variables that only the part reads do not remain.
    """
    pending = [node for node in graph.arguments if node is not None]
    pending += [node for node, _ in graph.fetches if node not in inside.nodes]
    pending += graph.targets
    pending += [
        node
        for node in graph.nodes
        if node.info.is_stateful and node not in inside.nodes and node.op not in VARIABLE_OPS
    ]
    reached: set[Node] = set()
    while pending:
        node = pending.pop()
        if node not in reached:
            reached.add(node)
            pending += [source for source, _ in node.inputs if source not in inside.nodes]
            pending += [each for each in node.control_inputs if each not in inside.nodes]
    return [node for node in graph.nodes if node in reached]


def _sharing(rest: StepGraph, computed: set[Node], kernels: KernelRegistry) -> tuple[int, ...]:
    """Return the indices of the fetches that may share memory with a node of `computed`.

    A kernel that is not `fresh` may return an input or a view of one.
    """
    sharing: dict[Node, bool] = {}
    for node in topological_order(rest.nodes):
        sources = (source for source, _ in node.inputs)
        sharing[node] = node in computed or (
            any(sharing.get(source, True) for source in sources) and not _is_fresh(node, kernels)
        )
    return tuple(position for position, (node, _) in enumerate(rest.fetches) if sharing[node])


def _is_fresh(node: Node, kernels: KernelRegistry) -> bool:
    """Return whether the only output of `node` is always in memory of its own."""
    if len(node.output_types) != 1:
        return False
    try:
        return kernels.find(node).fresh
    except OpError:
        return False
