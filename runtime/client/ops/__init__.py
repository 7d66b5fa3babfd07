"""A function for every registered op: `ops.MatMul(a, b, transpose_a=True)` or `ops.mat_mul(…)`.

The arguments are the inputs of the op's signature, in order, then its attributes. Attributes that
have a default or that the inputs determine can be left out. `name` names the operation. A call
returns the output tensor, a namedtuple if there are several outputs, or the operation if there is
none. `help(ops.MatMul)` shows the signature.

TF: the generated modules behind tf.raw_ops
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping

import protos as pb
from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.op_call import OpResult, apply_op, graph_of, op_result, snake_case
from runtime.framework import op_def_registry


def __getattr__(name: str) -> Callable[..., OpResult]:
    op = name if op_def_registry.find(name) is not None else _names().get(name)
    if op is None:
        raise AttributeError(f"There is no op {name!r}")
    return op_function(op)


def __dir__() -> list[str]:
    return sorted([*op_def_registry.all_op_defs(), *_names()])


@functools.cache
def _names() -> Mapping[str, str]:
    """Return {snake-case name: op}; of two ops with the same name, the first is taken."""
    names: dict[str, str] = {}
    for op in op_def_registry.all_op_defs():
        names.setdefault(snake_case(op), op)
    return names


@functools.cache
def op_function(op: str) -> Callable[..., OpResult]:
    """Return the function that adds operations of `op`. Raises NotFoundError if `op` is unknown."""
    op_def = op_def_registry.look_up(op)
    signature = _signature(op_def)

    def call(*args: object, **kwargs: object) -> OpResult:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{snake_case(op)}() {error}") from None
        arguments = bound.arguments
        name = arguments.pop("name", None)
        graph = graph_of(arguments.values(), get_default_graph)
        return op_result(apply_op(graph, op_def, arguments, name))

    call.__name__ = call.__qualname__ = snake_case(op)
    call.__doc__ = _describe(op_def)
    call.__signature__ = signature  # type: ignore[attr-defined] # shown by `help`
    return call


def _signature(op_def: pb.OpDef) -> inspect.Signature:
    """Return the parameters of an op's function.

    They are the inputs, the required attributes, the optional attributes, and, by keyword only, the
    attributes that the inputs determine.
    """
    inferred = {
        name
        for argument in op_def.input_arg
        for name in (argument.type_attr, argument.number_attr, argument.type_list_attr)
    }
    needed = [argument.name for argument in op_def.input_arg]
    optional: list[str] = []
    for attr in op_def.attr:
        if attr.name not in inferred:
            (optional if attr.HasField("default_value") else needed).append(attr.name)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    by_name = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature(
        [
            *(inspect.Parameter(name, kind) for name in needed),
            *(inspect.Parameter(name, kind, default=None) for name in [*optional, "name"]),
            *(
                inspect.Parameter(attr.name, by_name, default=None)
                for attr in op_def.attr
                if attr.name in inferred
            ),
        ]
    )


def _describe(op_def: pb.OpDef) -> str:
    """Return the docstring of an op's function: its inputs, attributes and outputs with types."""
    lines = [f"Add a {op_def.name} operation.", ""]
    lines += [f"{argument.name}: input, {_type_text(argument)}" for argument in op_def.input_arg]
    lines += [f"{attr.name}: attribute, {attr.type}" for attr in op_def.attr]
    lines += [f"Gives {argument.name}: {_type_text(argument)}" for argument in op_def.output_arg]
    return "\n".join(lines)


def _type_text(argument: pb.OpDef.ArgDef) -> str:
    if argument.type_list_attr:
        return f"a list of the types {argument.type_list_attr}"
    text = argument.type_attr or pb.DataType.Name(argument.type).removeprefix("DT_").lower()
    return f"a list of {argument.number_attr} × {text}" if argument.number_attr else text
