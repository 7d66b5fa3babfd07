"""The nodes of variables, and the functions that nodes call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from runtime.framework.attr_value import AttributeValue, NameAttrList
from runtime.framework.resources.variable import RefVariable, Variable, VariableKey
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.node import Node

VARIABLE_OPS = frozenset(("VarHandleOp", "VariableV2", "Variable"))


def variable_key(node: Node) -> VariableKey:
    """Return the key of the variable of `node`, whose op must be one of `VARIABLE_OPS`."""
    container, name, dtype = node.attr("container"), node.attr("shared_name"), node.attr("dtype")
    if node.op == "VarHandleOp":
        return VariableKey(container, Variable, name, dtype)
    return VariableKey(container, RefVariable, name or node.name, dtype)


def called_functions(nodes: Iterable[Node], library: FunctionLibrary) -> set[str]:
    """Return the names of the functions that nodes call by their op or by an attribute."""
    names = set()
    for node in nodes:
        if node.op in library:
            names.add(node.op)
        for name, kind in node.info.attr_types.items():
            if kind in ("func", "list(func)"):
                names.update(_function_names(node.attr(name)))
    return names


def _function_names(value: AttributeValue) -> Iterator[str]:
    """Yield the names of the functions in the value of an attribute and its nested attributes."""
    if isinstance(value, NameAttrList):
        if value.name:
            yield value.name
        value = tuple(value.attrs.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _function_names(each)
