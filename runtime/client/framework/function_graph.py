"""FunctionGraph: the body of a function while Python code builds it.

A tensor of the outer graph becomes an argument when the body reads it (it is captured). Operations
with side effects run in program order: each waits for the previous one, and the function returns
after the last one.

TF: tensorflow/python/framework/func_graph.py, function_def_to_graph, auto_control_deps.py
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import protos as pb
from runtime.client.framework.argument_types import ElementLike, Structure
from runtime.client.framework.graph import Graph
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.framework.tensor_shape import TensorShape
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_codec import shape_to_proto
from runtime.graph.function_library import FunctionLibrary

_ARGUMENT_OP = "Placeholder"  # `to_function_def` replaces it by the function's argument
_numbers = itertools.count(1)  # makes function names unique in the process


class FunctionGraph(Graph):
    """A function of `outer` under construction. `name` is unique in the process."""

    is_function = True

    def __init__(self, name: str, outer: Graph) -> None:
        super().__init__()
        self.outer = outer
        self.name = f"{name}_{next(_numbers)}"
        while self.name in outer.library:  # an imported function may have that name
            self.name = f"{name}_{next(_numbers)}"
        self.arguments: list[Tensor] = []
        self.captures: dict[Tensor, Tensor] = {}  # tensor of `outer` → argument
        self.outputs: list[Tensor] = []
        # Returns what stands for a tensor of an outer graph, or None if it is to be captured.
        self.stand_in: Callable[[Tensor], Tensor | None] | None = None
        self._effects: list[Operation] = []

    def build(self, function: Callable[..., Structure], *arguments: Structure) -> Structure:
        """Call `function` with this graph as the default, and return its result."""
        with self.as_default():
            return function(*arguments)

    def add_argument(self, dtype: DataType, shape: TensorShape) -> Tensor:
        """Append an argument to the function and return its tensor."""
        attrs = {
            "dtype": pb.AttrValue(type=int(dtype)),  # type: ignore[arg-type] # same numbers
            "shape": pb.AttrValue(shape=shape.as_proto()),
        }
        argument = self.create_op(_ARGUMENT_OP, (), attrs, f"arg_{len(self.arguments)}").outputs[0]
        self.arguments.append(argument)
        return argument

    def capture(self, tensor: Tensor) -> Tensor:
        """Return `tensor`, or, if it belongs to an outer graph, the argument that has its value."""
        if tensor.graph is self:
            return tensor
        substitute = self.stand_in(tensor) if self.stand_in is not None else None
        if substitute is not None:
            return substitute
        outside = self.outer.capture(tensor)
        if outside not in self.captures:
            with self.control_dependencies(None), self.name_scope(None):
                self.captures[outside] = self.add_argument(outside.dtype, outside.shape)
        return self.captures[outside]

    def as_graph_element(
        self, element: ElementLike, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Operation | Tensor:
        """Do what `Graph.as_graph_element` does, and capture tensors of outer graphs."""
        if isinstance(element, Tensor) and allow_tensor:
            return self.capture(element)
        return super().as_graph_element(element, allow_tensor, allow_operation)

    def _control_inputs(self, operation: Operation, inputs: Sequence[Tensor]) -> list[Operation]:
        controls = super()._control_inputs(operation, inputs)
        if operation.op_def.is_stateful:
            if self._effects and self._effects[-1] not in controls:
                controls.append(self._effects[-1])
            self._effects.append(operation)
        return controls

    @property
    def is_stateful(self) -> bool:
        """Whether the body has stateful operations."""
        return bool(self._effects)

    @property
    def library(self) -> FunctionLibrary:
        """The function library of the outermost graph."""
        return self.outer.library

    def add_functions(self, functions: pb.FunctionDefLibrary) -> None:
        """Add functions to the outermost graph's library, which this graph shares."""
        self.outer.add_functions(functions)
        self._library = self.outer.library

    def to_function_def(self) -> pb.FunctionDef:
        """Return the FunctionDef; arguments are named `arg_<n>`, results `output_<n>`."""
        argument_names = {tensor.op.name: tensor for tensor in self.arguments}
        signature = pb.OpDef(name=self.name, is_stateful=self.is_stateful)
        for name, tensor in argument_names.items():
            signature.input_arg.add(name=name, type=int(tensor.dtype))
        function = pb.FunctionDef(signature=signature)
        for index, tensor in enumerate(self.outputs):
            name = f"output_{index}"
            function.signature.output_arg.add(name=name, type=int(tensor.dtype))
            function.ret[name] = self._reference(tensor)
        for operation in self.get_operations():
            if operation.name not in argument_names:
                function.node_def.append(self._body_node(operation))
        for operation in self._effects[-1:]:  # the last one waits for all previous ones
            function.signature.control_output.append(operation.name)
            function.control_ret[operation.name] = operation.name
        return function

    def _body_node(self, operation: Operation) -> pb.NodeDef:
        node = pb.NodeDef()
        node.CopyFrom(operation.node_def)
        del node.input[:]
        node.input.extend(self._reference(tensor) for tensor in operation.inputs)
        node.input.extend(f"^{control.name}" for control in operation.control_inputs)
        return node

    def _reference(self, tensor: Tensor) -> str:
        """Return the input name of a tensor: an argument's name or `node:output:index`."""
        if tensor in self.arguments:
            return tensor.op.name
        index = tensor.value_index
        for argument in tensor.op.op_def.output_arg:
            count = _length(tensor.op, argument)
            if index < count:
                return f"{tensor.op.name}:{argument.name}:{index}"
            index -= count
        raise AssertionError(f"{tensor} is not an output of its operation")


def _length(operation: Operation, argument: pb.OpDef.ArgDef) -> int:
    if argument.number_attr:
        return int(operation.get_attr(argument.number_attr))
    return len(operation.get_attr(argument.type_list_attr)) if argument.type_list_attr else 1


def output_shapes(tensors: Sequence[Tensor]) -> pb.AttrValue:
    """Return the `output_shapes` attribute that lists the static shapes of `tensors`."""
    shapes = [shape_to_proto(tensor.shape.sizes) for tensor in tensors]
    return pb.AttrValue(list=pb.AttrValue.ListValue(shape=shapes))
