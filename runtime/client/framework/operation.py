"""Operation and Tensor: a node of a graph under construction, and one of its outputs.

TF: tensorflow/python/framework/ops.py, tensor.py
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NoReturn, Protocol, TypeAlias

import numpy as np

import protos as pb
from runtime.client.framework.argument_types import (
    CollectionMember,
    ElementLike,
    FeedDict,
    Fetches,
    SliceKey,
    Structure,
    TensorLike,
)
from runtime.client.framework.tensor_operators import TensorOperators
from runtime.client.framework.tensor_shape import ShapeLike, TensorShape
from runtime.framework.attr_value import AttributeValue
from runtime.framework.dtypes import DataType
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.node import Node


class OperatorNotAllowedInGraphError(TypeError):
    """Raised if a symbolic tensor is used where Python needs a value.

    TF: tensorflow/python/framework/errors_impl.py (OperatorNotAllowedInGraphError)
    """


class Operation:
    """A node of a graph.

    `Graph.create_op`, the functions of ops and `import_graph_def` make operations.
    """

    def __init__(self, graph: OperationGraph, node: Node) -> None:
        self.graph = graph
        self._node = node
        self._inputs: list[Tensor] = []
        self._control_inputs: list[Operation] = []
        self.outputs = [
            Tensor(self, index, data_type, is_ref)
            for index, (data_type, is_ref) in enumerate(
                zip(node.output_types, node.output_is_ref, strict=True)
            )
        ]

    @property
    def node(self) -> Node:
        """The runtime's node, connected to the nodes of the inputs; gradient functions need it."""
        return self._node

    @property
    def name(self) -> str:
        """The name, including its name scopes."""
        return self._node.name

    @property
    def type(self) -> str:
        """The name of the op, such as `MatMul`."""
        return self._node.op

    @property
    def device(self) -> str:
        """The requested device, which may be a partial name; "" if none is requested."""
        return self._node.device

    @property
    def node_def(self) -> pb.NodeDef:
        """The NodeDef that sessions receive."""
        return self._node.node_def

    @property
    def op_def(self) -> pb.OpDef:
        """The signature of the op."""
        return self._node.info.op_def

    @property
    def inputs(self) -> Sequence[Tensor]:
        """The tensors that the operation reads."""
        return tuple(self._inputs)

    @property
    def control_inputs(self) -> Sequence[Operation]:
        """The operations that must run before this one."""
        return list(self._control_inputs)

    def get_attr(self, name: str) -> AttributeValue:
        """Return the Python value of an attribute. Raises ValueError if there is none.

        A type is a DataType, a shape a tuple (−1 if a size is unknown), a string is bytes.
        """
        if name not in self.node_def.attr and name not in self._node.info.defaults:
            raise ValueError(f"Operation '{self.name}' has no attr named '{name}'.")
        value = self._node.attr(name)
        return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value

    def values(self) -> tuple[Tensor, ...]:
        """Return the outputs."""
        return tuple(self.outputs)

    def connect(self, inputs: Sequence[Tensor], control_inputs: Sequence[Operation]) -> None:
        """Set the inputs and control inputs, also in the NodeDef.

        Only Graph may call this, before it adds the operation.
        """
        self._inputs, self._control_inputs = list(inputs), list(control_inputs)
        self._node.inputs = [(tensor.op.node, tensor.value_index) for tensor in inputs]
        node_def = self._node.node_def
        del node_def.input[:]
        node_def.input.extend(
            tensor.op.name if tensor.value_index == 0 else tensor.name for tensor in inputs
        )
        node_def.input.extend(f"^{operation.name}" for operation in control_inputs)

    def set_device(self, device: str) -> None:
        """Set the requested device. Only Graph may call this, before it adds the operation."""
        self._node.device = self._node.node_def.device = device

    def run(self, feed_dict: FeedDict | None = None, session: SessionLike | None = None) -> None:
        """Run the operation in `session` or the default session.

        Raises ValueError if there is no session.
        """
        self.graph.evaluate(self, feed_dict, session)

    def __str__(self) -> str:
        return str(self.node_def)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}' type={self.type}>"


class Tensor(TensorOperators["Tensor"]):
    """A symbolic output of an operation; it has no value until a session computes it."""

    graph: OperationGraph

    def __init__(self, op: Operation, value_index: int, dtype: DataType, is_ref: bool) -> None:
        self.op = op
        self.graph = op.graph
        self.value_index = value_index
        self.dtype = dtype
        self.is_ref = is_ref
        self._shape = TensorShape()

    @property
    def name(self) -> str:
        """The name, `operation:index`."""
        return f"{self.op.name}:{self.value_index}"

    @property
    def device(self) -> str:
        """The device of the operation that computes the tensor."""
        return self.op.device

    @property
    def shape(self) -> TensorShape:
        """The static shape: what is known of the shape while the graph is built."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """Return `shape`."""
        return self._shape

    def set_shape(self, shape: ShapeLike) -> None:
        """Merge `shape` into the static shape. Raises ValueError if they contradict."""
        self._shape = self._shape.merge_with(shape)

    def consumers(self) -> list[Operation]:
        """Return the operations that read this tensor."""
        return [operation for operation in self.graph.get_operations() if self in operation.inputs]

    def eval(
        self, feed_dict: FeedDict | None = None, session: SessionLike | None = None
    ) -> Structure:
        """Return the value from a run in `session` or the default session.

        Raises ValueError if there is no session.
        """
        return self.graph.evaluate(self, feed_dict, session)

    @property
    def _dtype_text(self) -> str:
        return self.dtype.name_on_wire + ("_ref" if self.is_ref else "")

    def __str__(self) -> str:
        shape = "" if self._shape.rank is None else f", shape={self._shape}"
        device = f", device={self.device}" if self.device else ""
        return f'Tensor("{self.name}"{shape}, dtype={self._dtype_text}{device})'

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self._shape} dtype={self._dtype_text}>"

    # Python protocols that need a value; a symbolic tensor has none, so they raise.

    def __bool__(self) -> NoReturn:
        raise OperatorNotAllowedInGraphError(
            "Using a symbolic `tf.Tensor` as a Python `bool` is not allowed. Use `cond` to choose "
            "in the graph, or evaluate the tensor in a session."
        )

    def __iter__(self) -> Iterator[Tensor]:
        raise OperatorNotAllowedInGraphError(
            "Iterating over a symbolic `tf.Tensor` is not allowed. Use `ops.Unpack` for a known "
            "number of parts, or `while_loop`."
        )

    def __len__(self) -> int:
        raise TypeError(
            f"len is not well defined for a symbolic Tensor ({self.name}). Please call "
            "`x.shape` rather than `len(x)` for shape information."
        )

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise NotImplementedError(
            f"Cannot convert a symbolic tf.Tensor ({self.name}) to a numpy array. This error "
            "may indicate that you're trying to pass a Tensor to a NumPy call, which is not "
            "supported."
        )


class OperationGraph(Protocol):
    """The methods of a graph that operations, tensors and the functions of ops use.

    `graph.Graph` has these methods. This module can't import `graph`, which imports this module.
    """

    @property
    def is_function(self) -> bool:
        """Whether the graph is the body of a function."""

    @property
    def library(self) -> FunctionLibrary:
        """The functions that operations may call."""

    def as_default(self) -> AbstractContextManager[object]:
        """Make this graph the default of this thread inside the block."""

    def name_scope(self, name: str | None) -> AbstractContextManager[str]:
        """Prefix the names of operations made inside with `name/`, and yield the whole prefix."""

    def control_dependencies(
        self, control_inputs: Iterable[ElementLike] | None
    ) -> AbstractContextManager[None]:
        """Add control inputs to operations made inside."""

    def colocate_with(
        self, op: ElementLike, ignore_existing: bool = False
    ) -> AbstractContextManager[None]:
        """Place operations made inside on the device of `op`."""

    def get_collection(self, name: Hashable, scope: str | None = None) -> list[CollectionMember]:
        """Return a copy of a collection."""

    def get_operations(self) -> list[Operation]:
        """Return the operations in the order in which they were added."""

    def get_operation_by_name(self, name: str) -> Operation:
        """Return the operation `name`."""

    def find_operation(self, name: str) -> Operation | None:
        """Return the operation `name`, or None if there is none."""

    def create_op(
        self,
        op: str,
        inputs: Sequence[Tensor] = (),
        attrs: Mapping[str, pb.AttrValue] | None = None,
        name: str | None = None,
    ) -> Operation:
        """Add an operation; `attrs` must have all its attributes."""

    def capture(self, tensor: Tensor) -> Tensor:
        """Return `tensor`, or what stands for it in this graph, as an input for its operations."""

    def apply_operator(self, operator: str, *operands: TensorLike) -> Tensor:
        """Add the operation that a Python operator means."""

    def slice_tensor(self, tensor: TensorLike, key: SliceKey) -> Tensor:
        """Add a StridedSlice operation that computes `tensor[key]`."""

    def evaluate(
        self,
        what: ElementLike,
        feed_dict: FeedDict | None = None,
        session: SessionLike | None = None,
    ) -> Structure:
        """Run `what` in `session` or the default session, and return the result."""


class SessionLike(Protocol):
    """What `Tensor.eval` and `Operation.run` need of a session, such as `session.Session`."""

    @property
    def graph(self) -> OperationGraph:
        """The graph that the session runs."""

    def run(self, fetches: Fetches, feed_dict: FeedDict | None = None) -> Structure:
        """Run one step and return the values in the structure of `fetches`."""


# A number, array or tensor: an object whose arithmetic operators accept tensors.
Operand: TypeAlias = TensorOperators[Tensor] | np.ndarray | np.floating | float
