"""Which variables the nodes of a step may write, and which they only read.

A node may write every variable whose handle or reference it takes, unless its op is known to read
only. Two VarHandleOps may name one variable, so variables are compared by container and name. The
functions that a node calls may write the variables that they name or that are passed to them.
"""

from __future__ import annotations

from collections.abc import Iterable

import protos as pb
from runtime.foundation.errors import OpError
from runtime.framework.dtypes import DataType
from runtime.framework.resource_manager import DEFAULT_CONTAINER
from runtime.framework.resources.variable import RefVariable, Variable, VariableKey
from runtime.graph.function_library import FunctionLibrary, op_info
from runtime.graph.node import Endpoint, Node, OpInfo
from runtime.graph.passes.pruning import StepGraph
from runtime.graph.variable_nodes import VARIABLE_OPS, called_functions, variable_key
from runtime.kernels.state.resource_variables import ANONYMOUS_NAME

# Ops that take the handle of a variable and do not change the variable.
_READING_OPS = frozenset(
    (
        "DisableCopyOnRead", "ReadVariableOp", "ResourceGather", "ResourceGatherNd",
        "VarIsInitializedOp", "VariableShape",
    )
)  # fmt: skip
# Stateful ops whose handles are those of other resources, and which run no stored function.
_OTHER_RESOURCES = (
    "LookupTable", "Queue", "Reader", "ResourceAccumulator", "Stack", "TensorArray",
)  # fmt: skip
_OTHER_OPS = frozenset(
    (
        "Assert", "InitializeTableFromTextFileV2", "InitializeTableV2", "MapStage", "MutexLock",
        "OrderedMapStage", "Print", "Save", "SaveSlices", "SaveV2", "Stage",
    )
)  # fmt: skip
_WRITING_OPS = ("Assign", "Resource")  # how the names of ops begin that write by handle only
_HANDLE_TYPES = frozenset((DataType.RESOURCE, DataType.VARIANT))
_FUNCTION_KINDS = frozenset(("func", "list(func)"))
_Identity = tuple[str, type[Variable], str]  # container, kind and name of a variable


class _UnnamedVariableError(Exception):
    """A node may write a variable that the graph of the step does not name."""


def read_only_variables(graph: StepGraph, library: FunctionLibrary) -> dict[Node, VariableKey]:
    """Return the nodes of the variables that no node of `graph` may write, with their keys.

    `library` has the functions that the nodes call. The result is empty if a node may write a
    variable that can't be named. Anonymous variables are left out, and variables whose handle is
    fetched or is an input of anything but an op that only reads (for example Switch).
    """
    variables = {node: variable_key(node) for node in graph.nodes if node.op in VARIABLE_OPS}
    if not variables:
        return {}
    written = {
        _identity(variables[node])
        for node in map(handle_origin, graph.fetches)
        if node.op == "VarHandleOp"
    }
    try:
        for node in graph.nodes:
            if node.op not in VARIABLE_OPS:
                written |= _written_by(node, variables, library)
    except _UnnamedVariableError:
        return {}
    return {
        node: key
        for node, key in variables.items()
        if key.name != ANONYMOUS_NAME and _identity(key) not in written
    }


def writes_variables(nodes: Iterable[Node], library: FunctionLibrary) -> bool:
    """Return whether one of `nodes`, or a function that they call, may write a variable."""
    nodes = list(nodes)
    variables = {node: variable_key(node) for node in nodes if node.op in VARIABLE_OPS}
    try:
        return any(
            _written_by(node, variables, library) for node in nodes if node.op not in VARIABLE_OPS
        )
    except _UnnamedVariableError:
        return True


def handle_origin(endpoint: Endpoint) -> Node:
    """Return the node that makes the handle `endpoint`; Identity nodes only pass a handle on."""
    node, index = endpoint
    while node.op in ("Identity", "IdentityN") and node.output_types[index] is DataType.RESOURCE:
        node, index = node.inputs[index]
    return node


def _identity(key: VariableKey) -> _Identity:
    return key.container or DEFAULT_CONTAINER, key.kind, key.name


def _written_by(
    node: Node, variables: dict[Node, VariableKey], library: FunctionLibrary
) -> set[_Identity]:
    """Return the variables that `node` may write; raise _UnnamedVariableError if unknown."""
    written = set()
    handles = []
    for position, (source, index) in enumerate(node.inputs):
        if source.output_types[index] in _HANDLE_TYPES:
            if _passes_on(node, index=position):
                continue
            source = handle_origin((source, index))
            handles.append(source)
            is_read = node.op in _READING_OPS
        else:
            is_read = not node.input_is_ref[position]
        if source in variables and not is_read:
            written.add(_identity(variables[source]))
    functions = called_functions([node], library)
    are_named = all(handle.op == "VarHandleOp" for handle in handles)
    if functions:
        try:
            reachable = library.reachable(functions).function
        except OpError as error:  # the node raises it when it runs
            raise _UnnamedVariableError from error
        written |= _written_in_functions(reachable, library, are_named)
    elif node.info.is_stateful and not are_named and not _leaves_variables(node.op):
        raise _UnnamedVariableError
    return written


def _passes_on(node: Node, index: int) -> bool:
    """Return whether `node` only passes its input `index`, a handle, on; its readers count."""
    return node.op in ("Identity", "IdentityN") and (node.output_types[index] is DataType.RESOURCE)


def _leaves_variables(op: str) -> bool:
    return op in _READING_OPS or op in _OTHER_OPS or op.startswith(_OTHER_RESOURCES)


def _written_in_functions(
    functions: Iterable[pb.FunctionDef], library: FunctionLibrary, are_named: bool
) -> set[_Identity]:
    """Return the variables that `functions` name.

    Raises _UnnamedVariableError if a function may write another one. `are_named` is whether all
    handles that are passed to the functions are those of variables that the graph names.
    """
    named = set()
    for function in functions:
        for node in function.node_def:
            info = op_info(node.op)
            if node.op in VARIABLE_OPS:
                named.add(_named_by(node))
            elif info is None or any(argument.is_ref for argument in info.inputs):
                if node.op not in library:
                    raise _UnnamedVariableError
            elif not info.is_stateful or _leaves_variables(node.op):
                continue
            elif not _FUNCTION_KINDS.isdisjoint(info.attr_types.values()):
                continue  # `functions` includes the functions that it calls
            elif _takes_handles(info) and not (are_named and node.op.startswith(_WRITING_OPS)):
                raise _UnnamedVariableError
    return named


def _takes_handles(info: OpInfo) -> bool:
    return any(each.fixed_type in _HANDLE_TYPES or each.type_list_attr for each in info.inputs)


def _named_by(node: pb.NodeDef) -> _Identity:
    values = (node.attr["container"], node.attr["shared_name"])
    if any(value.WhichOneof("value") == "placeholder" for value in values):
        raise _UnnamedVariableError
    container, name = (value.s.decode(errors="replace") for value in values)
    if node.op == "VarHandleOp":
        return container or DEFAULT_CONTAINER, Variable, name
    return container or DEFAULT_CONTAINER, RefVariable, name or node.name
