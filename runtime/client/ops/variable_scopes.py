"""`variable_scope` and `get_variable`: variables that are created once and shared by name.

Each graph has its own scopes and named variables, and in a graph each thread has its own current
scope.

TF: tensorflow/python/ops/variable_scope.py
"""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from runtime.client.framework.argument_types import TensorLike
from runtime.client.framework.element_types import DTypeLike, as_dtype
from runtime.client.framework.graph import Graph, get_default_graph
from runtime.client.framework.operation import Tensor
from runtime.client.framework.tensor_shape import ShapeLike, TensorShape
from runtime.client.ops.initializers import (
    Initializer,
    glorot_uniform_initializer,
    zeros_initializer,
)
from runtime.client.ops.variables import InitialValue, Variable
from runtime.framework.dtypes import DataType

# key of the collection that holds a graph's store; not a string, so that it is not exported
_STORE_KEY = ("variable store",)


class _Reuse(enum.Enum):
    AUTO = enum.auto()


AUTO_REUSE = _Reuse.AUTO  # use the existing variable, or create one


class VariableScope:
    """A prefix of variable names, and the defaults for variables that are created in it."""

    def __init__(
        self,
        name: str,
        reuse: bool | _Reuse = False,
        initializer: Initializer | TensorLike | None = None,
        dtype: DTypeLike = DataType.FLOAT,
        use_resource: bool | None = None,
    ) -> None:
        self.name = name
        self.reuse = reuse
        self.initializer = initializer
        self.dtype = dtype
        self.use_resource = use_resource
        self.original_name_scope = ""  # prefix of operation names when first entered

    def reuse_variables(self) -> None:
        """Make `get_variable` return existing variables only; for other names it raises."""
        self.reuse = True

    def inner(self, name: str, **overrides: Any) -> VariableScope:
        """Return a scope of the full name `name` that inherits the defaults of this scope.

        The `overrides` that are not None replace the defaults.
        """
        overrides = {key: value for key, value in overrides.items() if value is not None}
        kept = {"initializer": self.initializer, "dtype": self.dtype}
        inherited = {"reuse": self.reuse, "use_resource": self.use_resource, **kept}
        return VariableScope(name, **{**inherited, **overrides})


class _Store:
    """The named variables of one graph, and the current scope of each thread."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # guards variables and scopes_made
        self.variables: dict[str, Variable] = {}
        self.scopes_made: dict[str, int] = {}  # full name → number of times it was entered
        self._entered = threading.local()

    @property
    def current(self) -> VariableScope:
        if not hasattr(self._entered, "scope"):
            self._entered.scope = VariableScope("")
        scope: VariableScope = self._entered.scope
        return scope

    @current.setter
    def current(self, scope: VariableScope) -> None:
        self._entered.scope = scope

    def unique(self, name: str) -> str:
        """Return `name`, numbered if the current scope already had an inner scope of that name."""
        prefix = f"{self.current.name}/" if self.current.name else ""
        with self.lock:
            number, found = 0, name
            while prefix + found in self.scopes_made:
                number += 1
                found = f"{name}_{number}"
            return found


def _store(graph: Graph) -> _Store:
    members = graph.get_collection_ref(_STORE_KEY)
    if not members:
        members.append(_Store())
    store: _Store = members[0]
    return store


def get_variable_scope() -> VariableScope:
    """Return the current scope of this thread; outside of any `variable_scope` its name is ""."""
    return _store(get_default_graph()).current


@contextlib.contextmanager
def variable_scope(
    name_or_scope: str | VariableScope | None,
    default_name: str | None = None,
    values: Sequence[TensorLike] | None = None,
    initializer: Initializer | TensorLike | None = None,
    reuse: bool | _Reuse | None = None,
    dtype: DTypeLike | None = None,
    use_resource: bool | None = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:
    """Prefix the names of variables and operations made inside: `<scope>/<name>`.

    If a VariableScope is given, it is entered again, under its full name. If `name_or_scope` is
    None, `default_name` is made unique and used. `reuse` is True, False, None (inherited) or
    AUTO_REUSE. Raises ValueError if there is no name, TypeError if it has another type.
    """
    if not isinstance(name_or_scope, str | VariableScope | None):
        raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
    if name_or_scope is None and default_name is None:
        raise ValueError("If default_name is None then name_or_scope is required")
    graph = get_default_graph()
    store = _store(graph)
    outer = store.current
    overrides = {
        "initializer": initializer, "reuse": reuse, "dtype": dtype, "use_resource": use_resource,
    }  # fmt: skip
    if isinstance(name_or_scope, VariableScope):
        scope = name_or_scope.inner(name_or_scope.name, **overrides)
    else:
        if name_or_scope is None:
            assert default_name is not None
            name_or_scope = store.unique(default_name)
        name = f"{outer.name}/{name_or_scope}" if outer.name else name_or_scope
        scope = outer.inner(name, **overrides)
    with store.lock:
        store.scopes_made[scope.name] = store.scopes_made.get(scope.name, 0) + 1
    short = scope.name.rsplit("/", 1)[-1] if isinstance(name_or_scope, VariableScope) else None
    entered: contextlib.AbstractContextManager[str | None] = contextlib.nullcontext()
    if auxiliary_name_scope:
        entered = graph.name_scope(short if short is not None else str(name_or_scope))
    store.current = scope
    try:
        with entered as name_scope:
            if isinstance(name_or_scope, VariableScope):
                scope.original_name_scope = name_or_scope.original_name_scope
            else:
                scope.original_name_scope = name_scope or ""
            yield scope
    finally:
        store.current = outer


def get_variable(
    name: str,
    shape: ShapeLike = None,
    dtype: DTypeLike | None = None,
    initializer: Initializer | TensorLike | None = None,
    trainable: bool = True,
    collections: Iterable[str] | None = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
) -> Variable:
    """Create the variable `name` in the current scope, or return the existing one.

    The existing one is returned only if the scope reuses variables. `initializer` is a function of
    a shape and a type, a tensor or a value; the default is Glorot uniform for floating-point types
    and zeros for others. Raises ValueError if the variable exists and the scope does not reuse
    variables, if it does not exist and the scope only reuses them, or if the existing one has
    another shape or type.
    """
    graph = get_default_graph()
    store = _store(graph)
    scope = store.current
    full_name = f"{scope.name}/{name}" if scope.name else name
    wanted = as_dtype(dtype if dtype is not None else scope.dtype)
    with store.lock:
        known = store.variables.get(full_name)
        if known is not None:
            _check_found(full_name, known, scope, shape, dtype)
            return known
        if scope.reuse is True:
            raise ValueError(
                f"Variable {full_name} does not exist, or was not created with tf.get_variable(). "
                "Did you mean to set reuse=tf.AUTO_REUSE in VarScope?"
            )
        if use_resource is None:
            use_resource = scope.use_resource if scope.use_resource is not None else True
        if initializer is None:
            initializer = scope.initializer
        initial = _initial(full_name, shape, wanted, initializer)
        with graph.name_scope(None):
            made = store.variables[full_name] = Variable(
                initial,
                trainable,
                collections,
                validate_shape,
                full_name,
                wanted if callable(initial) or dtype is not None else None,
                use_resource,
            )
    return made


def _check_found(
    name: str, known: Variable, scope: VariableScope, shape: ShapeLike, dtype: DTypeLike | None
) -> None:
    if not scope.reuse:
        raise ValueError(
            f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or "
            "reuse=tf.AUTO_REUSE in VarScope?"
        )
    if shape is not None and not known.shape.is_compatible_with(TensorShape(shape)):
        raise ValueError(
            f"Trying to share variable {name}, but specified shape {TensorShape(shape)} and found "
            f"shape {known.shape}."
        )
    if dtype is not None and as_dtype(dtype) is not known.dtype:
        raise ValueError(
            f"Trying to share variable {name}, but specified dtype "
            f"{as_dtype(dtype).name_on_wire} and found dtype {known.dtype.name_on_wire}."
        )


def _initial(
    name: str, shape: ShapeLike, dtype: DataType, initializer: Initializer | TensorLike | None
) -> InitialValue:
    """Return the initial value, or a function that returns it."""
    if initializer is not None and not callable(initializer):
        if shape is not None:
            raise ValueError("If initializer is a constant, do not specify shape.")
        return initializer
    known = TensorShape(shape)
    sizes = known.sizes
    if sizes is None or any(size < 0 for size in sizes):
        raise ValueError(
            f"Shape of a new variable ({name}) must be fully defined, but instead was {known}."
        )
    make: Initializer = initializer or (
        glorot_uniform_initializer() if dtype.is_floating else zeros_initializer()
    )

    def draw() -> Tensor:
        value = make(sizes, dtype)
        value.set_shape(sizes)
        return value

    return draw
