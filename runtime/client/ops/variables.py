"""Resource variables, reference variables, and their initialisers.

TF: tensorflow/python/ops/variables.py, resource_variable_ops.py, ref_variable.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import protos as pb
from runtime.client.framework.argument_types import Structure, TensorLike
from runtime.client.framework.conversion import TensorConvertible
from runtime.client.framework.element_types import DTypeLike, as_dtype
from runtime.client.framework.graph import Graph, get_default_graph
from runtime.client.framework.graph_elements import GraphKeys
from runtime.client.framework.op_call import OpResult
from runtime.client.framework.operation import Operation, SessionLike, Tensor
from runtime.client.framework.tensor_operators import TensorOperators
from runtime.client.framework.tensor_shape import TensorShape
from runtime.client.ops import op_function
from runtime.client.ops.construction import convert_to_tensor, group
from runtime.framework.dtypes import DataType

_NO_NAMES = pb.TensorProto(
    dtype=pb.DT_STRING,
    tensor_shape=pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=0)]),
)

# A TensorLike, or a function that returns one.
InitialValue: TypeAlias = TensorLike | Callable[[], TensorLike]


class Variable(TensorOperators[Tensor], TensorConvertible):
    """A mutable value that all steps of a session share.

    It is uninitialised until `initializer` runs. Ops, operators and fetches take a variable
    wherever they take a tensor, and use its value.
    """

    def __init__(
        self,
        initial_value: InitialValue | None = None,
        trainable: bool = True,
        collections: Iterable[str] | None = None,
        validate_shape: bool = True,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        use_resource: bool = True,
        shared_name: str | None = None,
        container: str = "",
    ) -> None:
        """Take the initial value: a value, a tensor, or a function that returns one.

        The variable has the shape of that value, or an unknown shape if `validate_shape` is false.
        Raises ValueError if `initial_value` is None.
        """
        if initial_value is None:
            raise ValueError(
                "The `initial_value` arg to `tf.Variable` must be specified except when you are "
                "not providing a `variable_def`. You provided neither."
            )
        self.graph: Graph = get_default_graph()
        self.trainable = trainable
        make = _make_resource if use_resource else _make_reference
        wanted = None if dtype is None else as_dtype(dtype)
        with (
            self.graph.control_dependencies(None),
            self.graph.name_scope(name or "Variable") as scope,
        ):
            parts = make(scope, initial_value, wanted, validate_shape, shared_name, container)
        self._from_parts(parts, use_resource)
        keys = list(collections) if collections is not None else [GraphKeys.GLOBAL_VARIABLES]
        if trainable and GraphKeys.TRAINABLE_VARIABLES not in keys:
            keys.append(GraphKeys.TRAINABLE_VARIABLES)
        self.graph.add_to_collections(keys, self)

    def _from_parts(self, parts: dict[str, Any], is_resource: bool) -> None:
        self.is_resource = is_resource
        self.handle: Tensor = parts["handle"]  # for a reference variable, its reference tensor
        self.initializer: Operation = parts["initializer"]
        self.initial_value: Tensor | None = parts["initial_value"]
        self._snapshot: Tensor = parts["snapshot"]
        self.dtype = self._snapshot.dtype

    @property
    def name(self) -> str:
        """The name of the handle, `name:0`."""
        return self.handle.name

    @property
    def op(self) -> Operation:
        """The operation that holds the variable."""
        return self.handle.op

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return TensorShape(self.op.get_attr("shape"))

    @property
    def device(self) -> str:
        """The requested device."""
        return self.op.device

    # Reading

    def value(self) -> Tensor:
        """Return the value as a tensor.

        For a resource variable, this adds a new read. For a reference variable, it is the output of
        the operation `read`.
        """
        if self.is_resource:
            return self.read_value()
        return self.graph.innermost().capture(self._snapshot)

    def read_value(self) -> Tensor:
        """Add an operation that reads the value when it runs, and return its output."""
        if self.is_resource:
            tensor: Tensor = op_function("ReadVariableOp")(self.handle, dtype=self.dtype)
        else:
            tensor = op_function("Identity")(self.handle)
        return tensor

    def to_tensor(self, dtype: DataType | None, as_ref: bool) -> Tensor:
        """Return the handle or reference if an op's input requires it, else the value."""
        if as_ref or (dtype is DataType.RESOURCE and self.is_resource):
            return self.handle
        return self.value()

    def as_graph_element(self) -> Tensor:
        """Return the tensor that is fetched for the variable."""
        return self._snapshot

    def eval(self, session: SessionLike | None = None) -> Structure:
        """Return the value in `session`, or in the default session."""
        return self._snapshot.eval(session=session)

    def get_shape(self) -> TensorShape:
        """Return `shape`."""
        return self.shape

    def initialized_value(self) -> Tensor:
        """Return the initial value, from which other variables can be initialised."""
        assert self.initial_value is not None
        return self.initial_value

    # Writing

    def load(self, value: TensorLike, session: SessionLike | None = None) -> None:
        """Set the value in `session` or the default session, without adding an operation."""
        self.initializer.run({self.initializer.inputs[1]: value}, session)

    def assign(
        self, value: TensorLike, name: str | None = None, read_value: bool = True
    ) -> OpResult:
        """Assign `value`; return the new value, or the operation if `read_value` is false."""
        return self._update(("AssignVariableOp", "Assign"), value, name, read_value)

    def assign_add(
        self, delta: TensorLike, name: str | None = None, read_value: bool = True
    ) -> OpResult:
        """Add `delta`; return the new value, or the operation if `read_value` is false."""
        return self._update(("AssignAddVariableOp", "AssignAdd"), delta, name, read_value)

    def assign_sub(
        self, delta: TensorLike, name: str | None = None, read_value: bool = True
    ) -> OpResult:
        """Subtract `delta`; return the new value, or the operation if `read_value` is false."""
        return self._update(("AssignSubVariableOp", "AssignSub"), delta, name, read_value)

    def _update(
        self, ops: tuple[str, str], value: TensorLike, name: str | None, read: bool
    ) -> OpResult:
        tensor = convert_to_tensor(value, self.dtype, "value")
        if self.is_resource and not self.shape.is_compatible_with(tensor.shape):
            raise ValueError(
                f"Cannot assign value to variable ' {self.name}': Shape mismatch.The variable "
                f"shape {self.shape}, and the assigned value shape {tensor.shape} are incompatible."
            )
        if not self.is_resource:
            result = op_function(ops[1])(self.handle, tensor, name=name)
            return result if read else result.op
        operation = op_function(ops[0])(self.handle, tensor, name=name)
        if not read:
            return operation
        with operation.graph.control_dependencies([operation]):
            return self.read_value()

    def is_initialized(self, name: str | None = None) -> Tensor:
        """Return a bool scalar: whether the variable is initialised."""
        op = "VarIsInitializedOp" if self.is_resource else "IsVariableInitialized"
        tensor: Tensor = op_function(op)(self.handle, name=name)
        return tensor

    # Conversion to and from VariableDef

    def to_proto(self) -> pb.VariableDef:
        """Return the VariableDef, which collections of a meta graph hold."""
        return pb.VariableDef(
            variable_name=self.name,
            initializer_name=self.initializer.name,
            snapshot_name=self._snapshot.name,
            initial_value_name=self.initial_value.name if self.initial_value is not None else "",
            is_resource=self.is_resource,
            trainable=self.trainable,
        )

    @classmethod
    def from_proto(cls, proto: pb.VariableDef, graph: Graph, scope: str = "") -> Variable:
        """Return the variable of a VariableDef whose operations are in `graph`, under `scope`."""
        variable = cls.__new__(cls)
        prefix = f"{scope}/" if scope else ""
        initial = proto.initial_value_name
        variable.graph, variable.trainable = graph, proto.trainable
        parts = {
            "handle": graph.as_graph_element(prefix + proto.variable_name),
            "initializer": graph.as_graph_element(prefix + proto.initializer_name),
            "initial_value": graph.as_graph_element(prefix + initial) if initial else None,
            "snapshot": graph.as_graph_element(prefix + proto.snapshot_name),
        }
        variable._from_parts(parts, proto.is_resource)
        return variable

    def __repr__(self) -> str:
        suffix = "" if self.is_resource else "_ref"
        return (
            f"<tf.Variable '{self.name}' shape={self.shape} "
            f"dtype={self.dtype.name_on_wire}{suffix}>"
        )


def _initial_tensor(initial_value: InitialValue, dtype: DataType | None) -> Tensor:
    value = initial_value() if callable(initial_value) else initial_value
    return convert_to_tensor(value, dtype, "initial_value")


def _shape_attr(initial: Tensor, validate_shape: bool) -> pb.AttrValue:
    shape = initial.shape if validate_shape else TensorShape()
    return pb.AttrValue(shape=shape.as_proto())


def _make_resource(
    scope: str,
    initial_value: InitialValue,
    dtype: DataType | None,
    validate_shape: bool,
    shared_name: str | None,
    container: str,
) -> dict[str, Any]:
    graph = get_default_graph()
    with graph.name_scope("Initializer"):
        initial = _initial_tensor(initial_value, dtype)
    handle = op_function("VarHandleOp")(
        dtype=initial.dtype,
        shape=_shape_attr(initial, validate_shape),
        shared_name=shared_name or scope[:-1],
        container=container,
        name=scope,
    )
    initializer = op_function("AssignVariableOp")(handle, initial, name="Assign")
    with graph.name_scope("Read"):
        snapshot = op_function("ReadVariableOp")(handle, dtype=initial.dtype)
    return {
        "handle": handle, "initializer": initializer, "initial_value": initial,
        "snapshot": snapshot,
    }  # fmt: skip


def _make_reference(
    scope: str,
    initial_value: InitialValue,
    dtype: DataType | None,
    validate_shape: bool,
    shared_name: str | None,
    container: str,
) -> dict[str, Any]:
    initial = _initial_tensor(initial_value, dtype)
    handle = op_function("VariableV2")(
        dtype=initial.dtype,
        shape=_shape_attr(initial, validate_shape),
        shared_name=shared_name or "",
        container=container,
        name=scope,
    )
    assign = op_function("Assign")(handle, initial, validate_shape=validate_shape, name="Assign")
    return {
        "handle": handle, "initializer": assign.op, "initial_value": initial,
        "snapshot": op_function("Identity")(handle, name="read"),
    }  # fmt: skip


def assign(
    ref: Variable, value: TensorLike, validate_shape: bool | None = None, name: str | None = None
) -> Tensor:
    """Call `Variable.assign`; `validate_shape` applies to reference variables only."""
    if validate_shape is False and isinstance(ref, Variable) and not ref.is_resource:
        value = convert_to_tensor(value, ref.dtype, "value")
        assigned: Tensor = op_function("Assign")(ref.handle, value, validate_shape=False, name=name)
    else:
        assigned = ref.assign(value, name)
    return assigned


def assign_add(ref: Variable, value: TensorLike, name: str | None = None) -> Tensor:
    """Call `Variable.assign_add`, and return the new value."""
    updated: Tensor = ref.assign_add(value, name)
    return updated


def assign_sub(ref: Variable, value: TensorLike, name: str | None = None) -> Tensor:
    """Call `Variable.assign_sub`, and return the new value."""
    updated: Tensor = ref.assign_sub(value, name)
    return updated


def is_variable_initialized(variable: Variable) -> Tensor:
    """Call `Variable.is_initialized`."""
    return variable.is_initialized()


def report_uninitialized_variables(
    var_list: Iterable[Variable] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """Return the names `[n]` of the uninitialised variables in `var_list`.

    The default is all global and local variables.
    """
    variables = list(var_list if var_list is not None else global_variables() + local_variables())
    with get_default_graph().name_scope(name):
        if not variables:
            empty: Tensor = op_function("Const")(value=_NO_NAMES, dtype=DataType.STRING)
            return empty
        known = op_function("Pack")([variable.is_initialized() for variable in variables])
        missing = op_function("Where")(op_function("LogicalNot")(known))
        names = convert_to_tensor([variable.op.name for variable in variables], DataType.STRING)
        found: Tensor = op_function("GatherNd")(names, missing)
        return found


def variables_initializer(variables: Iterable[Variable], name: str = "init") -> Operation:
    """Add an operation that initialises `variables`."""
    return group(*(variable.initializer for variable in variables), name=name)


def global_variables(scope: str | None = None) -> list[Variable]:
    """Return the variables in the collection GLOBAL_VARIABLES, which checkpoints hold."""
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Variable]:
    """Return the default graph's variables that optimisers update by default."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Variable]:
    """Return the default graph's variables that checkpoints do not hold."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def global_variables_initializer() -> Operation:
    """Add an operation that initialises all global variables of the default graph."""
    return variables_initializer(global_variables())


def local_variables_initializer() -> Operation:
    """Add an operation that initialises all local variables of the default graph."""
    return variables_initializer(local_variables())
