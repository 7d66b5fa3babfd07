"""Functions that build the default graph: placeholders, constants, scopes, groups.

TF: tensorflow/python/ops/array_ops.py, control_flow_ops.py, framework/ops.py
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.client.framework.argument_types import (
    CollectionMember,
    ElementLike,
    Structure,
    TensorLike,
)
from runtime.client.framework.conversion import constant_tensor, first_tensor
from runtime.client.framework.conversion import convert_to_tensor as convert_into
from runtime.client.framework.device_scopes import DeviceFunction
from runtime.client.framework.element_types import DTypeLike, as_array, as_dtype
from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.graph_elements import GraphKeys
from runtime.client.framework.op_call import graph_of
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.framework.tensor_shape import ShapeLike, TensorShape
from runtime.client.ops import op_function


def placeholder(
    dtype: DTypeLike, shape: ShapeLike | None = None, name: str | None = None
) -> Tensor:
    """Return a tensor that every run must feed with a value of shape `shape` (None: any shape)."""
    attrs = {"dtype": as_dtype(dtype), "shape": _known(shape)}
    result: Tensor = op_function("Placeholder")(**attrs, name=name)
    return result


def placeholder_with_default(
    input: TensorLike, shape: ShapeLike, name: str | None = None
) -> Tensor:
    """Return a tensor that may be fed; if it is not, it has the value of `input`."""
    result: Tensor = op_function("PlaceholderWithDefault")(input, shape=_known(shape), name=name)
    return result


def _known(shape: ShapeLike) -> pb.AttrValue:
    """Convert `shape` to an attribute; None means that the rank is unknown."""
    return pb.AttrValue(shape=TensorShape(shape).as_proto())


def constant(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    name: str = "Const",
) -> Tensor:
    """Return a constant tensor of `value`.

    If `shape` has more elements than `value`, the last element of `value` is repeated. Raises
    TypeError or ValueError if no constant can have the value.
    """
    if first_tensor(value) is not None:
        raise TypeError("Expected any non-tensor type, but got a tensor instead.")
    wanted = None if dtype is None else as_dtype(dtype)
    if shape is not None:
        value = _filled_up(as_array(value, wanted), TensorShape(shape).as_list())
    return constant_tensor(get_default_graph(), value, wanted, name)


def _filled_up(array: np.ndarray, sizes: Sequence[Any]) -> np.ndarray:
    count = int(np.prod(sizes, dtype=np.int64))
    if array.size > count:
        raise ValueError(
            f"Too many elements provided. Takes at most {count}, but got {array.size}."
        )
    rest = np.repeat(array.reshape(-1)[-1:], count - array.size)
    return (
        np.concatenate([array.reshape(-1), rest]).reshape(sizes)
        if rest.size
        else array.reshape(sizes)
    )


def convert_to_tensor(
    value: TensorLike, dtype: DTypeLike | None = None, name: str = "Const"
) -> Tensor:
    """Convert a tensor, a variable, nested lists with tensors, or a plain value to a tensor."""
    graph = graph_of([value], get_default_graph)
    return convert_into(graph, value, None if dtype is None else as_dtype(dtype), name)


def identity(input: TensorLike, name: str | None = None) -> Tensor:
    """Return a new tensor of the same value."""
    result: Tensor = op_function("Identity")(input, name=name)
    return result


def no_op(name: str | None = None) -> Operation:
    """Add an operation that does nothing but wait for its control inputs."""
    operation: Operation = op_function("NoOp")(name=name)
    return operation


def group(*inputs: Structure, name: str = "group_deps") -> Operation:
    """Add an operation that waits for all of `inputs`: operations, tensors, variables, or lists.

    Raises TypeError if one of them is something else.
    """
    flat = list(_flatten(inputs))
    for each in flat:
        if not hasattr(each, "graph"):
            raise TypeError(
                f"'inputs' should be zero or more (nested) Tensors. Received '{each}' with type "
                f"'{type(each)}'."
            )
    graph = flat[0].graph if flat else get_default_graph()
    with graph.as_default(), graph.control_dependencies(flat):
        return no_op(name=name)


def tuple_(
    tensors: Sequence[TensorLike],
    control_inputs: Sequence[ElementLike] | None = None,
    name: str = "tuple",
) -> list[Tensor | None]:
    """Return the tensors; none is available before all of them and `control_inputs` are computed.

    None entries stay None. Raises ValueError if there is no tensor.
    """
    waited = [each for each in [*tensors, *(control_inputs or ())] if each is not None]
    if not any(each is not None for each in tensors):
        raise ValueError(f"Must have at least one Tensor. Received: {tensors}.")
    with get_default_graph().name_scope(name):
        gate = group(*waited, name="group_deps")
        with gate.graph.control_dependencies([gate]):
            return [None if each is None else identity(each) for each in tensors]


def _flatten(inputs: Structure) -> Iterable[Structure]:
    for each in inputs:
        if isinstance(each, list | tuple):
            yield from _flatten(each)
        elif each is not None:
            yield each


def name_scope(name: str | None) -> contextlib.AbstractContextManager[str]:
    """Call `Graph.name_scope` of the default graph."""
    return get_default_graph().name_scope(name)


def device(
    device_name_or_function: str | DeviceFunction | None,
) -> contextlib.AbstractContextManager[None]:
    """Call `Graph.device` of the default graph."""
    return get_default_graph().device(device_name_or_function)


def control_dependencies(
    control_inputs: Iterable[ElementLike] | None,
) -> contextlib.AbstractContextManager[None]:
    """Call `Graph.control_dependencies` of the default graph."""
    return get_default_graph().control_dependencies(control_inputs)


def colocate_with(
    op: ElementLike, ignore_existing: bool = False
) -> contextlib.AbstractContextManager[None]:
    """Call `Graph.colocate_with` of the default graph."""
    return get_default_graph().colocate_with(op, ignore_existing)


def add_to_collections(names: str | Iterable[Hashable], value: CollectionMember) -> None:
    """Call `Graph.add_to_collections` of the default graph."""
    get_default_graph().add_to_collections(names, value)


def get_collection_ref(key: Hashable) -> list[CollectionMember]:
    """Call `Graph.get_collection_ref` of the default graph."""
    return get_default_graph().get_collection_ref(key)


def Assert(  # noqa: N802 # TensorFlow's name
    condition: TensorLike,
    data: Sequence[TensorLike],
    summarize: int | None = None,
    name: str | None = None,
) -> Operation:
    """Add an operation that fails with INVALID_ARGUMENT if `condition` is false.

    The error message shows `data`.
    """
    summarize = 3 if summarize is None else summarize
    operation: Operation = op_function("Assert")(condition, list(data), summarize, name=name)
    return operation


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """Add an operation that runs the initializers in the collection `table_initializer`."""
    return group(*get_collection(GraphKeys.TABLE_INITIALIZERS), name=name)


def add_to_collection(name: Hashable, value: CollectionMember) -> None:
    """Call `Graph.add_to_collection` of the default graph."""
    get_default_graph().add_to_collection(name, value)


def get_collection(key: Hashable, scope: str | None = None) -> list[CollectionMember]:
    """Call `Graph.get_collection` of the default graph."""
    return get_default_graph().get_collection(key, scope)
