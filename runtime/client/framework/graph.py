"""Graph: operations under construction, which sessions run.

Guarantees: operations are only added, never changed or removed, so a session sends only the new
ones to its runtime before each run. `_lock` guards the operations and the function library. Each
thread has separate scopes and defaults.

TF: tensorflow/python/framework/ops.py (Graph)
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence

import protos as pb
from runtime.client.framework.argument_types import (
    ElementLike,
    FeedDict,
    SliceKey,
    Structure,
    TensorLike,
)
from runtime.client.framework.colocation_scopes import ColocationScopes
from runtime.client.framework.control_scopes import ControlScopes
from runtime.client.framework.default_stacks import default_graphs, default_sessions
from runtime.client.framework.device_scopes import DeviceFunction, DeviceScopes
from runtime.client.framework.gradient_overrides import GradientOverrides
from runtime.client.framework.graph_elements import GraphElements
from runtime.client.framework.name_scopes import NameScopes, check_node_name
from runtime.client.framework.op_call import graph_of
from runtime.client.framework.operation import Operation, SessionLike, Tensor
from runtime.client.framework.operators import apply_operator, slice_tensor
from runtime.client.framework.shape_inference import infer_shapes
from runtime.framework import op_def_registry
from runtime.framework.tensor_codec import shape_to_proto
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.graph import CURRENT_VERSION
from runtime.graph.node import Node


class Graph(GraphElements):
    """A graph under construction; inside `with graph.as_default():` new operations join it."""

    is_function = False

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.RLock()
        self._order: list[Operation] = []
        self._library = FunctionLibrary()
        self._function_order: list[str] = []
        self._names = NameScopes()
        self._devices = DeviceScopes()
        self._control = ControlScopes()
        self._colocations = ColocationScopes()
        self._gradient_overrides = GradientOverrides()
        self._is_finalized = False
        self._unfeedable: set[Tensor] = set()
        self._unfetchable: set[Operation] = set()
        self.seed: int | None = None
        self._sessions: weakref.WeakSet[object] = weakref.WeakSet()

    # The default graph

    @contextlib.contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Make this graph the default of this thread inside the block."""
        with default_graphs.entered(self):
            yield self

    def innermost(self) -> Graph:
        """Return the innermost function under construction in this thread, else this graph."""
        innermost = default_graphs.innermost
        return innermost if isinstance(innermost, Graph) and innermost.is_function else self

    def finalize(self) -> None:
        """Make the graph read-only: from now on, adding an operation raises RuntimeError."""
        self._is_finalized = True

    @property
    def finalized(self) -> bool:
        """Whether `finalize` was called."""
        return self._is_finalized

    def check_not_finalized(self) -> None:
        """Raise RuntimeError if the graph is finalized."""
        if self._is_finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")

    # Scopes of this thread

    @contextlib.contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Prefix the names of operations made inside with `name/`, and yield the whole prefix."""
        with self._names.entered(name) as scope:
            yield scope

    def get_name_scope(self) -> str:
        """Return the current name scope of this thread, "" outside of any scope."""
        return self._names.current

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """Return `name` under the current scope, with a number appended if it is in use."""
        return self._names.unique(name, mark_as_used)

    @contextlib.contextmanager
    def device(self, device: str | DeviceFunction | None) -> Iterator[None]:
        """Request `device` for operations made inside.

        Raises ValueError if the device name is malformed.
        """
        with self._devices.entered(device):
            yield

    @contextlib.contextmanager
    def colocate_with(self, op: ElementLike, ignore_existing: bool = False) -> Iterator[None]:
        """Place operations made inside on the device of `op`; None removes the constraint.

        Raises what `as_graph_element` raises if `op` is no operation or tensor of the graph.
        """
        found = None if op is None else self.as_graph_element(op)
        beside = found.op if isinstance(found, Tensor) else found
        device = beside.device if beside is not None else ""
        with (
            self._colocations.entered(beside, ignore_existing),
            self.device(None),
            self.device(device or None),
        ):
            yield

    @contextlib.contextmanager
    def control_dependencies(self, control_inputs: Iterable[ElementLike] | None) -> Iterator[None]:
        """Add control inputs to operations made inside; None suspends all outer scopes.

        Raises what `as_graph_element` raises if one of them is no operation or tensor of the graph.
        """
        operations = None
        if control_inputs is not None:
            found = [self.as_graph_element(each) for each in control_inputs]
            operations = [each.op if isinstance(each, Tensor) else each for each in found]
        with self._control.entered(operations):
            yield

    @contextlib.contextmanager
    def gradient_override_map(self, op_type_map: Mapping[str, str]) -> Iterator[None]:
        """Override gradient functions of operations made inside.

        `op_type_map` is {op: name under which the gradient function is registered}.
        """
        with self._gradient_overrides.entered(op_type_map):
            yield

    # Operations

    @property
    def version(self) -> int:
        """The number of operations."""
        return len(self._order)

    def get_operations(self) -> list[Operation]:
        """Return the operations in the order in which they were added."""
        return list(self._order)

    def create_op(
        self,
        op: str,
        inputs: Sequence[Tensor] = (),
        attrs: Mapping[str, pb.AttrValue] | None = None,
        name: str | None = None,
    ) -> Operation:
        """Add an operation; `attrs` must have all its attributes.

        A name that ends in a slash (a name scope) is used without the slash and otherwise
        unchanged; other names are made unique. Raises RuntimeError if the graph is finalized,
        NotFoundError if the op is unknown.
        """
        node_def = pb.NodeDef(op=op, attr=attrs or {})
        with self._lock:
            self.check_not_finalized()
            if name and name.endswith("/"):
                node_def.name = name[:-1]
            else:
                node_def.name = self._names.unique(name or op)
            self._colocations.mark(node_def)
            self._gradient_overrides.mark(node_def)
            operation = self.new_operation(node_def)
            controls = [each for each in self._control_inputs(operation, inputs) if each]
            operation.connect(inputs, controls)
            self.add_operations([operation])
        return operation

    def _control_inputs(self, operation: Operation, inputs: Sequence[Tensor]) -> list[Operation]:
        return self._control.for_inputs(inputs)

    def new_operation(self, node_def: pb.NodeDef) -> Operation:
        """Make an operation that is neither connected nor added yet; see `add_operations`."""
        check_node_name(node_def.name)
        if node_def.name in self._operations:
            raise ValueError(f"Duplicate node name in graph: '{node_def.name}'")
        info = self._library.find_info(node_def.op)
        if info is None:
            op_def_registry.look_up(node_def.op)  # raises NotFoundError
        assert info is not None
        node = Node(node_def.name, info, node_def)
        node.set_types()
        return Operation(self, node)

    def add_operations(self, operations: Sequence[Operation]) -> None:
        """Add connected operations: all of them, or none if one raises."""
        self.check_not_finalized()
        for operation in operations:  # an error is raised before anything is added
            infer_shapes(operation)
        with self._lock:
            self.check_not_finalized()
            for operation in operations:
                operation.set_device(self._devices.device_for(operation, operation.device))
                self._operations[operation.name] = operation
                self._order.append(operation)
                self._names.mark(operation.name)
                self._control.note(operation)

    def capture(self, tensor: Tensor) -> Tensor:
        """Return `tensor`, as an input for operations of this graph.

        Raises ValueError if it belongs to another graph. A FunctionGraph captures it instead.
        """
        if tensor.graph is not self:
            raise ValueError(f"{tensor} must be from the same graph as {self}.")
        return tensor

    # Operators of tensors, evaluation

    def apply_operator(self, operator: str, *operands: TensorLike) -> Tensor:
        """Add the operation that a Python operator means (TF: binary_op_wrapper)."""
        return apply_operator(graph_of(operands, lambda: self), operator, operands)

    def slice_tensor(self, tensor: TensorLike, key: SliceKey) -> Tensor:
        """Add a StridedSlice operation that computes `tensor[key]`."""
        return slice_tensor(graph_of((tensor, key), lambda: self), tensor, key)

    def evaluate(
        self,
        what: ElementLike,
        feed_dict: FeedDict | None = None,
        session: SessionLike | None = None,
    ) -> Structure:
        """Run `what` in `session` or the default session, and return the result.

        Raises ValueError if there is no session or it belongs to another graph.
        """
        is_run = isinstance(what, Operation)
        act, noun, method = (
            ("execute operation", "operation", "run")
            if is_run
            else ("evaluate tensor", "tensor", "eval")
        )
        which = "given" if session is not None else "default"
        session = session if session is not None else default_sessions.innermost
        if session is None:
            raise ValueError(
                f"Cannot {act} using `{method}()`: No default session is registered. Use `with "
                f"sess.as_default(){':' if is_run else ''}` or pass an explicit session to "
                f"`{method}(session=sess)`"
            )
        if session.graph is not self:
            advice = "`eval(session=sess)`" if not is_run else "run(session=sess)"
            tail = f" Pass an explicit session to {advice}." if which == "default" else ""
            raise ValueError(
                f"Cannot use the {which} session to {act}: the {noun}'s graph is different from "
                f"the session's graph.{tail}"
            )
        return session.run(what, feed_dict)

    def session_opened(self, session: object) -> None:
        """Count `session` as an open session of this graph, with a weak reference to it."""
        self._sessions.add(session)

    def session_closed(self, session: object) -> None:
        """Stop counting `session` as open."""
        self._sessions.discard(session)

    @property
    def open_sessions(self) -> int:
        """The number of open sessions of this graph."""
        return len(self._sessions)

    # Feeding and fetching

    def prevent_feeding(self, tensor: Tensor) -> None:
        """Make runs refuse to feed `tensor`."""
        self._unfeedable.add(tensor)

    def is_feedable(self, tensor: Tensor) -> bool:
        """Return whether `tensor` may be fed."""
        return tensor not in self._unfeedable

    def prevent_fetching(self, operation: Operation) -> None:
        """Make runs refuse to fetch `operation` and its outputs."""
        self._unfetchable.add(operation)

    def is_fetchable(self, element: Operation | Tensor) -> bool:
        """Return whether `element` may be fetched."""
        operation = element.op if isinstance(element, Tensor) else element
        return operation not in self._unfetchable

    @property
    def unfetchable_count(self) -> int:
        """The number of operations that may not be fetched; it never decreases."""
        return len(self._unfetchable)

    # Functions and messages

    @property
    def library(self) -> FunctionLibrary:
        """The functions that operations may call."""
        return self._library

    def add_functions(self, functions: pb.FunctionDefLibrary) -> None:
        """Add functions to the library.

        Raises InvalidArgumentError if a name is in the library with another body.
        """
        with self._lock:
            self._library = self._library.merged(functions)
            known = set(self._function_order)
            self._function_order += [name for name in self._library.names if name not in known]

    def as_graph_def(self, from_version: int = 0, add_shapes: bool = False) -> pb.GraphDef:
        """Return a GraphDef of all functions and of the operations after the first `from_version`.

        If `add_shapes` is set, the static shapes are written into `_output_shapes`.
        """
        graph_def, _, _ = self.additions(from_version, 0)
        if add_shapes:
            for node, operation in zip(graph_def.node, self._order[from_version:], strict=False):
                shapes = [shape_to_proto(tensor.shape.sizes) for tensor in operation.outputs]
                node.attr["_output_shapes"].list.SetInParent()
                node.attr["_output_shapes"].list.shape.extend(shapes)
        return graph_def

    @property
    def size(self) -> tuple[int, int]:
        """The pair (number of operations, number of functions); neither ever decreases."""
        return len(self._order), len(self._function_order)

    def additions(self, from_version: int, from_function: int) -> tuple[pb.GraphDef, int, int]:
        """Return the GraphDef of later additions and the current sizes.

        The GraphDef has the operations after the first `from_version` and the functions after the
        first `from_function`. The sizes are the number of operations and the number of functions.
        """
        with self._lock:
            operations = self._order[from_version:]
            functions = self._function_order[from_function:]
            graph_def = pb.GraphDef(
                node=[operation.node_def for operation in operations],
                versions=pb.VersionDef(producer=CURRENT_VERSION),
                library=self._library.part(functions),
            )
            return graph_def, len(self._order), len(self._function_order)


_thread_default = threading.local()  # .graph is the thread's default if its stack is empty


def get_default_graph() -> Graph:
    """Return the innermost graph of this thread's stack, else the thread's global default."""
    innermost = default_graphs.innermost
    if isinstance(innermost, Graph):
        return innermost
    if not hasattr(_thread_default, "graph"):
        _thread_default.graph = Graph()
    graph: Graph = _thread_default.graph
    return graph


def reset_default_graph() -> None:
    """Replace the thread's default graph by an empty one.

    Raises AssertionError if it is called inside `with graph.as_default()`.
    """
    if default_graphs.depth:
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If you need a cleared "
            "graph, exit the nesting and create a new graph."
        )
    _thread_default.graph = Graph()
