"""SymbolicGradient: builds the body of a function's gradient from the gradients of its ops.

The gradient of a function is a function too. Its arguments are the arguments of the original
function and a gradient for each result of it. Its results are the gradients of the original
arguments, which are zeros if no result depends on the argument. The gradient of a call in the body
is a SymbolicGradient of the called function. If the library declares a gradient function
(`GradientDef`), the body of the declared function is used instead.

TF: tensorflow/core/common_runtime/gradients.cc (SymbolicGradientBuilder), function.cc
"""

from __future__ import annotations

from collections.abc import Sequence

import protos as pb
from runtime.foundation.errors import InvalidArgumentError, NotFoundError
from runtime.framework.attr_value import NameAttrList
from runtime.graph.function_library import FunctionBody, FunctionLibrary, op_info
from runtime.graph.gradients.gradient_functions import GRADIENT_FUNCTIONS, NO_GRADIENT
from runtime.graph.gradients.gradient_nodes import BodyNodes, type_of
from runtime.graph.node import Endpoint, Node
from runtime.graph.topology import topological_order

SYMBOLIC_GRADIENT = "SymbolicGradient"
_CALL_OPS = ("PartitionedCall", "StatefulPartitionedCall")


def function_body(library: FunctionLibrary, function: NameAttrList) -> FunctionBody:
    """Return the body of `function`, a function of `library` or the SymbolicGradient of one.

    Raises what `FunctionLibrary.body` raises, and NotFoundError if an op has no gradient function.
    """
    if function.name != SYMBOLIC_GRADIENT or SYMBOLIC_GRADIENT in library:
        return library.body(function)
    given = library.gradient_of(function.attrs["f"].name)
    if given is not None:
        return _given_body(library, function, given)
    return library.derived_body(function, lambda: _Differentiation(library, function).body())


def _given_body(library: FunctionLibrary, function: NameAttrList, given: str) -> FunctionBody:
    """Return the body of `given`, the gradient function that the library declares.

    Raises InvalidArgumentError if it does not return one result per type in the attribute `Tout`.
    """
    body = library.body(NameAttrList(given, function.attrs["f"].attrs))
    wanted = function.attrs.get("Tout", body.results)
    if len(body.results) != len(wanted):
        raise InvalidArgumentError(
            f"SymGrad expects to return {len(wanted)} tensor(s), but get {len(body.results)} "
            "tensor(s) instead."
        )
    return body


class _Differentiation:
    """Builds the body of the gradient of one function."""

    def __init__(self, library: FunctionLibrary, function: NameAttrList) -> None:
        self._library = library
        self._function = function
        self._forward_function: NameAttrList = function.attrs["f"]
        if (
            self._forward_function.name not in library
            and op_info(self._forward_function.name) is not None
        ):
            raise NotFoundError(f"No gradient defined for op: {self._forward_function.name}")
        forward = function_body(library, self._forward_function)
        copies = {node: node.clone(node.name) for node in forward.nodes}
        for copy in copies.values():
            copy.inputs = [(copies[source], index) for source, index in copy.inputs]
            copy.control_inputs = [copies[control] for control in copy.control_inputs]
        self._nodes = list(copies.values())
        self._arguments = [copies[argument] for argument in forward.arguments]
        self._results = [(copies[node], index) for node, index in forward.results]
        self._is_stateful = forward.is_stateful
        self._ops = BodyNodes()
        self._gradients: dict[Endpoint, list[Endpoint]] = {}

    def body(self) -> FunctionBody:
        """Return the body.

        Raises NotFoundError if an op has no gradient function, InvalidArgumentError if the types of
        the results are not the types in the attribute `Tout`.
        """
        given = [self._argument(position) for position in range(len(self._results))]
        for result, gradient in zip(self._results, given, strict=True):
            self._gradients.setdefault(result, []).append((gradient, 0))
        depends = self._dependents()
        for node in reversed(topological_order(self._nodes)):
            if node in depends and node not in self._arguments:
                self._differentiate(node, depends)
        results = tuple(
            self._total((argument, 0)) or self._ops.ZerosLike((argument, 0))
            for argument in self._arguments
        )
        wanted = self._function.attrs.get("Tout", [type_of(result) for result in results])
        if list(wanted) != [type_of(result) for result in results]:
            raise InvalidArgumentError(
                f"SymbolicGradient of {self._forward_function.name} gives "
                f"{', '.join(type_of(result).tf_name for result in results)}; its attribute Tout "
                f"says {', '.join(each.tf_name for each in wanted)}"
            )
        return FunctionBody(
            f"{SYMBOLIC_GRADIENT}_{self._forward_function.name}",
            (*self._nodes, *given, *self._ops.nodes),
            (*self._arguments, *given),
            results,
            (),
            self._is_stateful,
        )

    def _argument(self, position: int) -> Node:
        """Return a new `_Arg` node for the gradient of result `position`."""
        info = op_info("_Arg")
        assert info is not None
        attrs = {"T": type_of(self._results[position]), "index": len(self._arguments) + position}
        name = f"gradients/argument_{position}"
        node = Node(name, info, pb.NodeDef(name=name, op="_Arg"), attrs)
        node.set_types()
        return node

    def _dependents(self) -> set[Node]:
        """Return the nodes that depend on an argument through differentiable ops only."""
        depends = set(self._arguments)
        for node in topological_order(self._nodes):
            if node.op not in NO_GRADIENT and any(source in depends for source, _ in node.inputs):
                depends.add(node)
        return depends

    def _total(self, output: Endpoint) -> Endpoint | None:
        """Return the sum of the gradients collected for `output`; None if there are none."""
        found = self._gradients.get(output)
        if not found:
            return None
        total: Endpoint = found[0] if len(found) == 1 else self._ops.AddN(list(found))
        return total

    def _differentiate(self, node: Node, depends: set[Node]) -> None:
        """Compute the gradients of the inputs of `node` from the gradients of its outputs.

        The results are added to the collected gradients; `depends` has the nodes that need one.
        """
        outputs = [(node, index) for index in range(len(node.output_types))]
        totals = [self._total(output) for output in outputs]
        if all(total is None for total in totals):
            return
        gradients = [
            total if total is not None else self._ops.ZerosLike(output)
            for total, output in zip(totals, outputs, strict=True)
        ]
        for source, gradient in zip(node.inputs, self._derive(node, gradients), strict=True):
            if gradient is not None and source[0] in depends:
                self._gradients.setdefault(source, []).append(gradient)

    def _derive(self, node: Node, gradients: list[Endpoint]) -> Sequence[Endpoint | None]:
        function = GRADIENT_FUNCTIONS.get(node.op)
        if function is not None and node.op not in self._library:
            return function(self._ops, node, gradients)
        called = self._called(node)
        if called is None:
            raise NotFoundError(f"No gradient defined for op: {node.op}", node.name)
        types = [type_of(source) for source in node.inputs]
        derived = self._ops.SymbolicGradient([*node.inputs, *gradients], Tout=types, f=called)
        return list(derived)

    def _called(self, node: Node) -> NameAttrList | None:
        if node.op in _CALL_OPS:
            function: NameAttrList = node.attr("f")
            return function
        return NameAttrList(node.op, node.attr_values()) if node.op in self._library else None
