"""Which constants reach an input of a node, also by way of the arguments of functions.

What a Python object keeps as a tensor is a constant of the graph in a SavedModel, and an argument
of the functions that use it.

Guarantees: no node is looked at twice for one input, so that recursive functions end.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterator

import protos as pb

_CONSTANTS = frozenset({"Const", "HostConst"})
_PASS_ON = frozenset(
    {"EnsureShape", "GuaranteeConst", "Identity", "PreventGradient", "StopGradient"}
)
# op that calls functions → which of its inputs is their first argument
_FIRST_ARGUMENT = {
    **dict.fromkeys(("PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile"), 0),
    **dict.fromkeys(("Case", "If", "StatelessCase", "StatelessIf"), 1),
}


class ConstantInputs:
    """The constants that reach inputs of the nodes of a graph and of its functions."""

    def __init__(self, graph_def: pb.GraphDef) -> None:
        self._graph_def = graph_def

    def values(self, function: str, node: pb.NodeDef, index: int) -> Iterator[pb.TensorProto]:
        """Yield the constants that data input `index` of a node can have; none if it has others.

        `function` is the function whose body has the node, "" for the graph.
        """
        names = _data_inputs(node)
        if index < len(names):
            yield from self._of(function, names[index], set())

    def _of(self, function: str, name: str, seen: set[tuple[str, str]]) -> Iterator[pb.TensorProto]:
        if (function, name) in seen:
            return
        seen.add((function, name))
        node = self._bodies[function].get(name)
        if node is None:
            for caller, call, first in self._callers[function]:
                place = self._arguments[function].get(name, len(call.input)) + first
                yield from (
                    value
                    for given in _data_inputs(call)[place : place + 1]
                    for value in self._of(caller, given, seen)
                )
        elif node.op in _CONSTANTS:
            yield node.attr["value"].tensor
        elif node.op in _PASS_ON:
            yield from self._of(function, _data_inputs(node)[0], seen)

    @functools.cached_property
    def _bodies(self) -> dict[str, dict[str, pb.NodeDef]]:
        """Function → the nodes of its body by name."""
        bodies = {"": {node.name: node for node in self._graph_def.node}}
        for function in self._graph_def.library.function:
            bodies[function.signature.name] = {node.name: node for node in function.node_def}
        return bodies

    @functools.cached_property
    def _arguments(self) -> dict[str, dict[str, int]]:
        """Function → the numbers of its arguments by name."""
        return {
            function.signature.name: {
                each.name: number for number, each in enumerate(function.signature.input_arg)
            }
            for function in self._graph_def.library.function
        }

    @functools.cached_property
    def _callers(self) -> dict[str, list[tuple[str, pb.NodeDef, int]]]:
        """Function → its calls: (the calling function, the node, the input of argument 0)."""
        callers: dict[str, list[tuple[str, pb.NodeDef, int]]] = collections.defaultdict(list)
        for body, nodes in self._bodies.items():
            for node in nodes.values():
                if node.op in self._arguments:
                    callers[node.op].append((body, node, 0))
                elif node.op in _FIRST_ARGUMENT:
                    for called in _called(node):
                        callers[called].append((body, node, _FIRST_ARGUMENT[node.op]))
        return callers


def _data_inputs(node: pb.NodeDef) -> list[str]:
    """Return the names of the nodes or arguments that the data inputs of a node come from."""
    return [name.partition(":")[0] for name in node.input if not name.startswith("^")]


def _called(node: pb.NodeDef) -> Iterator[str]:
    for attr in node.attr.values():
        if attr.HasField("func"):
            yield attr.func.name
        yield from (each.name for each in attr.list.func)
