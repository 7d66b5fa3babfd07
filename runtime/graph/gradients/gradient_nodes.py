"""GradientNodes, with which gradient functions add nodes.

If `ops` is a GradientNodes, `ops.Mul(a, b)` adds a Mul node and returns its output; an op with
several outputs gives a tuple. Type attributes are inferred from the inputs; other attributes are
keyword arguments. `BodyNodes` adds nodes to the body of a function; `GraphNodes` of the Python API
adds operations to a graph under construction.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

import protos as pb
from runtime.framework.attr_value import AttributeValue
from runtime.framework.dtypes import DataType, from_numpy
from runtime.graph.function_library import op_info
from runtime.graph.node import Endpoint, Node

# An Endpoint, or a tuple of Endpoints if the op has several outputs or a list output. A type
# checker can't know which, because the op's signature determines it.
Outputs: TypeAlias = Any


def type_of(endpoint: Endpoint) -> DataType:
    """Return the element type of an output."""
    node, index = endpoint
    return node.output_types[index]


def is_complex(endpoint: Endpoint) -> bool:
    """Return whether the elements of an output are complex numbers."""
    return type_of(endpoint).numpy.kind == "c"


class GradientNodes(abc.ABC):
    """Adds the nodes of gradient functions; every op is a method with the name of the op."""

    def __getattr__(self, op: str) -> Callable[..., Outputs]:
        def add(*inputs: Endpoint | list[Endpoint], **attrs: AttributeValue) -> Outputs:
            return self.add(op, *inputs, **attrs)

        return add

    @abc.abstractmethod
    def add(self, op: str, *inputs: Endpoint | list[Endpoint], **attrs: AttributeValue) -> Outputs:
        """Add a node of the op named `op`; return its output, or a tuple of its outputs.

        A list input must be given as a list.
        """

    def static_sizes(self, output: Endpoint) -> tuple[int, ...] | None:
        """Return the static sizes of an output, −1 for each unknown one; None if unknown."""
        return None

    def constant(self, value: ArrayLike, data_type: DataType) -> Endpoint:
        """Add a Const with the type `data_type`."""
        output: Endpoint = self.Const(value=np.asarray(value, data_type.numpy), dtype=data_type)
        return output

    def like(self, value: float, other: Endpoint) -> Endpoint:
        """Add a scalar constant with the element type of `other`."""
        return self.constant(value, type_of(other))

    def indices(self, values: ArrayLike) -> Endpoint:
        """Add an int32 constant."""
        return self.constant(values, from_numpy(np.dtype(np.int32)))

    def conjugate(self, x: Endpoint) -> Endpoint:
        """Return the conjugate of x; x itself if it is real."""
        output: Endpoint = self.Conj(x) if is_complex(x) else x
        return output

    def reduced_to(self, gradient: Endpoint, operand: Endpoint, other: Endpoint) -> Endpoint:
        """Return `gradient` summed to the shape of `operand`.

        It is summed over the axes along which an op broadcast `operand` to fit `other`.
        """
        shape, other_shape = self.Shape(operand), self.Shape(other)
        axes, _ = self.BroadcastGradientArgs(shape, other_shape)
        output: Endpoint = self.Reshape(self.Sum(gradient, axes), shape)
        return output


class BodyNodes(GradientNodes):
    """Collects the nodes that gradient functions add to the body of a function."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._numbers = itertools.count()

    def add(self, op: str, *inputs: Endpoint | list[Endpoint], **attrs: AttributeValue) -> Outputs:
        """Add a node of the op named `op`; return its output, or a tuple of its outputs."""
        info = op_info(op)
        assert info is not None, op
        given: list[Endpoint] = []
        for argument, value in zip(info.inputs, inputs, strict=True):
            each: list[AttributeValue] = value if isinstance(value, list) else [value]
            given += each
            types = [type_of(endpoint) for endpoint in each]
            if argument.number_attr:
                attrs.setdefault(argument.number_attr, len(each))
            if argument.type_list_attr:
                attrs.setdefault(argument.type_list_attr, types)
            elif argument.type_attr:
                attrs.setdefault(argument.type_attr, types[0])
        name = f"gradients/{op}_{next(self._numbers)}"
        node = Node(name, info, pb.NodeDef(name=name, op=op), attrs)
        node.inputs = given
        node.set_types()
        node.expected_inputs()  # called because it sets `input_is_ref`
        self.nodes.append(node)
        outputs = tuple((node, index) for index in range(len(node.output_types)))
        return outputs[0] if info.has_single_output else outputs
