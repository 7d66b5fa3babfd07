"""Repetition of a function's body as operations of the default graph.

This is needed to differentiate a call of the function.

TF: tensorflow/python/framework/function_def_to_graph.py
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import protos as pb
from runtime.client.framework.argument_types import ElementLike
from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.graph_import import import_graph_def
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.ops.construction import convert_to_tensor
from runtime.framework import attr_value
from runtime.framework.attr_value import AttributeValue, NameAttrList
from runtime.graph.function_library import FunctionBody, FunctionLibrary
from runtime.graph.gradients.symbolic_gradient import function_body
from runtime.graph.node import Node
from runtime.graph.topology import is_loop_node, topological_order

# Stateful ops that may run twice in a step, because they only read state, check, print, or name a
# resource.
_REPEATABLE = frozenset((
    "Assert", "LookupTableFindV2", "LookupTableSizeV2", "Print", "PrintV2", "ReadVariableOp",
    "ResourceGather", "ResourceGatherNd", "VarHandleOp", "VariableShape", "_Arg",
))  # fmt: skip
_NODE_NAME_ATTRS = ("_class",)  # attributes that name nodes of the function; they are not copied


class Replay:
    """A function whose results are computed again in another graph."""

    def __init__(self, library: FunctionLibrary, function: NameAttrList, caller: str) -> None:
        """Look up the function's body.

        Raises LookupError if the body has operations that must not run twice.
        """
        self._body = function_body(library, function)
        for name, op in _not_repeatable(library, self._body):
            raise LookupError(
                f"No gradient for operation '{caller}': the way back computes its function "
                f"'{function.name}' once more, and '{name}' ({op}) must not run twice"
            )

    @classmethod
    def of(cls, operation: Operation, attr: str) -> Replay:
        """Return the replay of the function that the attribute `attr` of `operation` names."""
        return cls(operation.graph.library, operation.node.attr(attr), operation.name)

    def returns_argument(self, index: int) -> bool:
        """Return whether the result at `index` is the argument at `index`, unchanged."""
        return self._body.results[index] == (self._body.arguments[index], 0)

    def results(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """Add operations that compute the results for `arguments`, and return the results."""
        if any(is_loop_node(node) for node in self._needed):
            return self._imported(arguments)
        outputs = {
            node: [convert_to_tensor(argument)]
            for node, argument in zip(self._body.arguments, arguments, strict=True)
        }
        for node in self._needed:
            if node not in outputs:
                inputs = [outputs[source][index] for source, index in node.inputs]
                operation = get_default_graph().create_op(node.op, inputs, _attrs(node), node.name)
                outputs[node] = operation.outputs
        return [outputs[node][index] for node, index in self._body.results]

    def _imported(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """Do what `results` does, for a body with loops or branches of version 1.

        The back edges of loops require that all operations are added at once. Control inputs say to
        which branch a constant belongs.
        """
        given = dict(zip(self._body.arguments, arguments, strict=True))
        mapped: dict[str, ElementLike] = {}
        for node, argument in given.items():
            mapped[f"{node.name}:0"] = mapped[f"^{node.name}"] = convert_to_tensor(argument)
        graph, used = pb.GraphDef(), set()
        frames = get_default_graph().unique_name("frames")  # two loops must not share a frame
        for node in self._with_controls():
            if node in given:
                continue
            inputs = [f"{source.name}:{index}" for source, index in node.inputs]
            inputs += [f"^{control.name}" for control in node.control_inputs]
            used.update(inputs)
            added = graph.node.add(name=node.name, op=node.op, input=inputs, attr=_attrs(node))
            if "frame_name" in added.attr:
                added.attr["frame_name"].s += f"/{frames}".encode()
        mapped = {name: each for name, each in mapped.items() if name in used}
        wanted = [f"{node.name}:{at}" for node, at in self._body.results if node not in given]
        found = iter(import_graph_def(graph, mapped, wanted, "replayed") or ())
        return [
            convert_to_tensor(given[node] if node in given else next(found))
            for node, _ in self._body.results
        ]

    def _with_controls(self) -> list[Node]:
        """Return the nodes that the results depend on, also by control inputs."""
        found: set[Node] = set()
        pending = [node for node, _ in self._body.results]
        while pending:
            node = pending.pop()
            if node not in found:
                found.add(node)
                pending += [source for source, _ in node.inputs]
                pending += node.control_inputs
        return list(found)

    @functools.cached_property
    def _needed(self) -> list[Node]:
        """The nodes that the results depend on, in topological order.

        Nodes that only have side effects are left out.
        """
        found: set[Node] = set()
        pending = [node for node, _ in self._body.results]
        while pending:
            node = pending.pop()
            if node not in found:
                found.add(node)
                pending += [source for source, _ in node.inputs]
        ordered = topological_order([*self._body.arguments, *self._body.nodes])
        return [node for node in ordered if node in found]


def _attrs(node: Node) -> dict[str, pb.AttrValue]:
    return {
        name: attr_value.to_proto(node.attr(name))
        if value.WhichOneof("value") == "placeholder"
        else value
        for name, value in node.node_def.attr.items()
        if name not in _NODE_NAME_ATTRS
    }


def _not_repeatable(library: FunctionLibrary, body: FunctionBody) -> Iterator[tuple[str, str]]:
    """Yield (name, op) of the nodes that must not run twice, also in called functions."""
    for node in body.nodes:
        if not node.info.is_stateful or node.op in _REPEATABLE:
            continue
        called = list(_called(library, node))
        if not called:
            yield node.name, node.op
        for function in called:
            yield from _not_repeatable(library, function_body(library, function))


def _called(library: FunctionLibrary, node: Node) -> Iterator[NameAttrList]:
    if node.op in library:
        yield NameAttrList(node.op, node.attr_values())
    values: list[AttributeValue] = [node.attr(name) for name in node.node_def.attr]
    for value in values:
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, NameAttrList):
                yield each
