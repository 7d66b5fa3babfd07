"""Function inlining: calls of functions are replaced by their bodies.

Inlining keeps the semantics of a call. If the call has control inputs, or if the graph has v1
control flow, a NoOp (the gate) is added that waits for the inputs of the call. Nodes of the body
that have no inputs or are stateful wait for the gate, and are dead if the gate is dead. A control
edge from the call becomes control edges from the control results of the function. A recursive call
stays a call.

TF: tensorflow/core/common_runtime/inline_function_utils.cc
"""

from __future__ import annotations

from collections.abc import Sequence

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.attr_value import NameAttrList
from runtime.graph.function_library import FunctionBody, FunctionLibrary, op_info
from runtime.graph.gradients.symbolic_gradient import SYMBOLIC_GRADIENT, function_body
from runtime.graph.node import Endpoint, Node
from runtime.graph.passes.pruning import StepGraph

_CALL_OPS = ("PartitionedCall", "StatefulPartitionedCall")
_V1_CONTROL_FLOW = frozenset(
    ("Switch", "RefSwitch", "Merge", "RefMerge", "Enter", "RefEnter", "_SwitchN")
)
# Most nodes that inlining adds to one graph; nested calls can add exponentially many.
_MAX_NODES = 2_000_000


def called_function(node: Node, library: FunctionLibrary) -> NameAttrList | None:
    """Return the function that `node` calls; None if the node is not a call."""
    if node.op in _CALL_OPS:
        function: NameAttrList = node.attr("f")
        return function
    if node.op == SYMBOLIC_GRADIENT:
        return NameAttrList(node.op, {"f": node.attr("f"), "Tout": tuple(node.attr("Tout"))})
    if node.op in library and op_info(node.op) is None:
        return NameAttrList(node.op, node.attr_values())
    return None


def inline_functions(graph: StepGraph, library: FunctionLibrary, is_on: bool = True) -> None:
    """Change `graph`: replace all calls by the bodies of their functions, recursively.

    If `is_on` is false, every node that calls a function becomes a call op instead, without
    inlining.
    """
    if not any(called_function(node, library) is not None for node in graph.nodes):
        return
    has_deadness = any(node.op in _V1_CONTROL_FLOW for node in graph.nodes)
    inliner = _Inliner(library, has_deadness, is_on)
    graph.nodes = inliner.expand(graph.nodes, ())
    inliner.rewire(graph)


class _Inliner:
    """Replaces calls by bodies (`expand`) and edges from calls by edges from bodies (`rewire`)."""

    def __init__(self, library: FunctionLibrary, has_deadness: bool, is_on: bool) -> None:
        self._library = library
        self._has_deadness = has_deadness
        self._is_on = is_on
        self._outputs: dict[Endpoint, Endpoint] = {}  # output of a call → endpoint in its body
        self._controls: dict[Node, list[Node]] = {}  # call → nodes that replace it in control edges
        self._count = 0

    def expand(self, nodes: Sequence[Node], stack: tuple[str, ...]) -> list[Node]:
        """Return `nodes` with every call replaced by the nodes of its body, recursively.

        `stack` has the names of the functions that are being inlined. A call of one of them is
        recursive and stays a call.
        """
        result: list[Node] = []
        for node in nodes:
            check_task()
            function = called_function(node, self._library)
            if function is None or not self._is_on or _recursion_name(function) in stack:
                if function is not None and node.op not in _CALL_OPS:
                    _make_call_op(node, function)
                result.append(node)
                continue
            body = function_body(self._library, function)
            inlined = self._inline(node, body)
            result += self.expand(inlined, (*stack, _recursion_name(function)))
            self._count += len(body.nodes)
            if self._count > _MAX_NODES:
                raise InvalidArgumentError(
                    f"Function calls expand to more than {_MAX_NODES} nodes", node.name
                )
        return result

    def _inline(self, call: Node, body: FunctionBody) -> list[Node]:
        if len(call.inputs) != len(body.arguments):
            raise InvalidArgumentError(
                f"Function {body.name}: Function takes {len(body.arguments)} argument(s) but "
                f"{len(call.inputs)} argument(s) were passed",
                call.name,
            )
        copies = {node: node.clone(f"{call.name}/{node.name}") for node in body.nodes}
        moved = {argument: call.inputs[i] for i, argument in enumerate(body.arguments)}
        for argument in body.arguments:
            del copies[argument]
        inline_gate = self._gate(call)
        for copy in copies.values():
            copy.inputs = [
                moved[source] if source in moved else (copies[source], index)
                for source, index in copy.inputs
            ]
            copy.control_inputs = [
                moved[control][0] if control in moved else copies[control]
                for control in copy.control_inputs
            ]
            copy.device = copy.device or call.device
            if inline_gate is not None and (not copy.inputs or copy.info.is_stateful):
                copy.control_inputs.append(inline_gate)
        for index, (source, output) in enumerate(body.results):
            self._outputs[(call, index)] = moved.get(source) or (copies[source], output)
        effects = [copies[node] for node in body.control_results if node in copies]
        gates = [] if inline_gate is None else [inline_gate]
        # A control edge from the call waits for the control results of the function; if it has
        # none, for the gate; if there is no gate, for the nodes that compute the results.
        self._controls[call] = (
            effects or gates or [copies[source] for source, _ in body.results if source in copies]
        )
        return [*gates, *copies.values()]

    def _gate(self, call: Node) -> Node | None:
        """Return a NoOp for which the body must wait.

        Return None if nothing delays the body or can make it dead.
        """
        if not call.control_inputs and not self._has_deadness:
            return None
        gate = no_op(f"{call.name}/inputs_ready")
        gate.control_inputs = [*call.control_inputs]
        if self._has_deadness:
            gate.control_inputs += [source for source, _ in call.inputs]
        return gate

    def rewire(self, graph: StepGraph) -> None:
        """Make the nodes, fetches and targets of `graph` refer to nodes of bodies, not to calls."""
        for node in graph.nodes:
            node.inputs = [self._resolve(endpoint) for endpoint in node.inputs]
            node.control_inputs = self._resolve_controls(node.control_inputs)
        graph.fetches = [self._resolve(endpoint) for endpoint in graph.fetches]
        graph.targets = self._resolve_controls(graph.targets)

    def _resolve(self, endpoint: Endpoint) -> Endpoint:
        while endpoint in self._outputs:
            endpoint = self._outputs[endpoint]
        return endpoint

    def _resolve_controls(self, controls: Sequence[Node]) -> list[Node]:
        resolved: dict[Node, None] = {}
        pending = list(reversed(controls))
        while pending:
            node = pending.pop()
            if node in self._controls:
                pending += reversed(self._controls[node])
            else:
                resolved[node] = None
        return list(resolved)


def _recursion_name(function: NameAttrList) -> str:
    """Return a name of `function` that a recursive call inside its body has too."""
    if function.name != SYMBOLIC_GRADIENT:
        return function.name
    return f"{SYMBOLIC_GRADIENT} of {_recursion_name(function.attrs['f'])}"


def _make_call_op(node: Node, function: NameAttrList) -> None:
    """Turn a node whose op is not a call op into one that calls `function`."""
    info = op_info("StatefulPartitionedCall" if node.info.is_stateful else "PartitionedCall")
    assert info is not None
    given = tuple(source.output_types[index] for source, index in node.inputs)
    node.become(info, {"f": function, "Tin": given, "Tout": node.output_types})


def no_op(name: str) -> Node:
    """Return a new NoOp node named `name`, without any edges."""
    info = op_info("NoOp")
    assert info is not None
    return Node(name, info, pb.NodeDef(op="NoOp"))
