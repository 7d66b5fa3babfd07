"""Application of the gradient functions of `runtime.graph` to a graph under construction.

The op SymbolicGradient uses the same functions. For that op they add nodes to a function's body;
here they add operations to a graph and use its static shapes.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.client.framework.argument_types import Structure
from runtime.client.framework.function_graph import FunctionGraph
from runtime.client.framework.op_call import apply_op, graph_of
from runtime.client.framework.operation import Operation, OperationGraph, Tensor
from runtime.framework import op_def_registry
from runtime.framework.attr_value import AttributeValue
from runtime.graph.gradients.elementwise_gradients import GradientFunction
from runtime.graph.gradients.gradient_nodes import GradientNodes, Outputs
from runtime.graph.node import Endpoint, Node

# (operation, gradient of each output) → gradients of its inputs: a list of Tensor, IndexedSlices or
# None, or a single gradient if there is one input.
TensorGradientFunction = Callable[..., Structure]


class GraphNodes(GradientNodes):
    """Adds the nodes that gradient functions make to `graph`, as operations."""

    def __init__(self, graph: OperationGraph) -> None:
        self._graph = graph

    def add(self, op: str, *inputs: Endpoint | list[Endpoint], **attrs: AttributeValue) -> Outputs:
        """Add an operation, and return its output or a tuple of several outputs.

        If `op` is Shape and the static shape is fully known, a constant is added instead.
        """
        if op == "Shape":
            assert not isinstance(inputs[0], list)
            sizes = self.tensor(inputs[0]).shape.sizes
            if sizes is not None and min(sizes, default=0) >= 0:
                return self.indices(sizes) if not attrs else self.constant(sizes, *attrs.values())
        op_def = op_def_registry.look_up(op)
        arguments = {
            argument.name: [self.tensor(each) for each in given]
            if isinstance(given, list)
            else self.tensor(given)
            for argument, given in zip(op_def.input_arg, inputs, strict=True)
        }
        operation = apply_op(self._graph, op_def, {**arguments, **attrs})
        outputs = tuple(endpoint(tensor) for tensor in operation.outputs)
        return outputs[0] if operation.node.info.has_single_output else outputs

    def static_sizes(self, output: Endpoint) -> tuple[int, ...] | None:
        """Return the static sizes of an output, −1 for each unknown one; None if unknown."""
        return self.tensor(output).shape.sizes

    def reduced_to(self, gradient: Endpoint, operand: Endpoint, other: Endpoint) -> Endpoint:
        """Sum `gradient` to the shape of `operand`, unless nothing was broadcast."""
        shapes = [self.tensor(each).shape for each in (operand, other, gradient)]
        is_known = all(shape.is_fully_defined() for shape in shapes[:2])
        if is_known and shapes[0] == shapes[1] == shapes[2]:
            return gradient
        return super().reduced_to(gradient, operand, other)

    def tensor(self, output: Endpoint) -> Tensor:
        """Return the tensor of an endpoint, which is a pair (node, output index)."""
        node, index = output
        graph = self._graph
        while True:
            operation = graph.find_operation(node.name)
            if operation is not None and operation.node is node:
                return operation.outputs[index]
            assert isinstance(graph, FunctionGraph)  # the tensors belong to it or to outer graphs
            graph = graph.outer


def endpoint(tensor: Tensor) -> Endpoint:
    """Return the endpoint of a tensor: the pair (node, output index)."""
    return tensor.op.node, tensor.value_index


def for_tensors(function: GradientFunction) -> TensorGradientFunction:
    """Convert a gradient function of nodes to a gradient function of tensors.

    If an output has no gradient, zeros are passed for it.
    """

    def gradient(operation: Operation, *grads: Tensor | None) -> list[Tensor | None]:
        ops = GraphNodes(graph_of((), lambda: operation.graph))
        node: Node = operation.node
        given = [
            ops.ZerosLike(endpoint(output)) if grad is None else endpoint(grad)
            for output, grad in zip(operation.outputs, grads, strict=True)
        ]
        found = function(ops, node, given)
        return [None if each is None else ops.tensor(each) for each in found]

    return gradient
