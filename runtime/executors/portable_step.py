"""PortableStep: what another process needs to run a step in this one's place.

A step may run elsewhere when nothing it does is seen later: it reads variables and computes. What
it reads goes along as feeds of the nodes that hold it. Steps that change or keep state (variables,
queues, tables, iterators, generators), touch files or hand out resources stay here.

Guarantees: a PortableStep is never changed; any thread may use it.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import protos as pb
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from runtime.framework.resources.variable import RefVariable, Variable
from runtime.graph.function_library import op_info
from runtime.graph.graph import Graph
from runtime.graph.node import Node
from runtime.graph.passes.pruning import find_endpoint, prune
from runtime.graph.tensor_name import parse_tensor_name
from runtime.kernels.state.resource_variables import ANONYMOUS_NAME

VARIABLE_OPS = frozenset(("VarHandleOp", "VariableV2", "Variable"))
# Stateful by their signature: they read variables, keep what they make in the step, or only check.
_HARMLESS = frozenset(
    (
        "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape",
        "VarIsInitializedOp", "Assert", "CheckNumerics", "CheckNumericsV2", "GuaranteeConst",
        "Empty", "DeepCopy", "DeviceIndex",
        "StatelessRandomGetAlg", "StatelessRandomGetKeyCounter",
        "StatelessRandomGetKeyCounterAlg", "StatefulPartitionedCall", "If", "Case", "While",
        "TensorArrayV3", "TensorArrayGradV3", "TensorArrayGradWithShape", "TensorArrayWriteV3",
        "TensorArrayReadV3", "TensorArrayGatherV3", "TensorArrayScatterV3", "TensorArrayConcatV3",
        "TensorArraySplitV3", "TensorArraySizeV3", "TensorArrayCloseV3",
    )
)  # fmt: skip
# Not stateful by their signature: they read files, or join concurrent steps.
KEPT_HERE = frozenset(
    (
        "ReadFile", "MatchingFiles", "GenerateVocabRemapping", "BatchFunction", "Batch", "Unbatch",
        "UnbatchGrad",
    )
)  # fmt: skip
_NOT_PORTABLE_TYPES = frozenset((DataType.RESOURCE, DataType.VARIANT))
_numbers = itertools.count(1)  # next() is atomic


class VariableKey(NamedTuple):
    """Where a resource manager has the variable of a node, and what it holds."""

    container: str
    kind: type[Variable]
    name: str
    dtype: DataType


def _key(node: Node) -> VariableKey:
    container, name, dtype = node.attr("container"), node.attr("shared_name"), node.attr("dtype")
    if node.op == "VarHandleOp":
        return VariableKey(container, Variable, name, dtype)
    return VariableKey(container, RefVariable, name or node.name, dtype)


@dataclasses.dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class PortableStep:
    """A step by the names of its graph; `variables` are fed after `feeds`, at their output 0.

    `graph` has the nodes of the names alone (`nodes_of_step`).
    """

    number: int  # unique in the process
    config: pb.ConfigProto
    graph: Graph
    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    variables: tuple[Node, ...]
    keys: tuple[VariableKey, ...]  # of `variables`, in their order

    def node_defs(self) -> Iterator[pb.NodeDef]:
        """The nodes that the names lead to, and all that these need."""
        for node in self._needed():
            yield node.to_node_def()

    def library(self) -> pb.FunctionDefLibrary:
        """The functions that the nodes call."""
        return self.graph.library.reachable(_functions_of(self._needed(), self.graph))

    def _needed(self) -> list[Node]:
        return _all_behind(self.graph)


def nodes_of_step(
    graph: Graph, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
) -> Graph:
    """The nodes that the names lead to; the edges from there lead to all that a step needs.

    It keeps nothing else alive: an extended session has had many graphs.
    """
    names = (parse_tensor_name(name)[0] for name in (*feeds, *fetches, *targets))
    return Graph({name: graph.nodes[name] for name in names}, graph.library, graph.versions)


def portable_step(
    graph: Graph,
    config: pb.ConfigProto,
    feeds: Sequence[str],
    fetches: Sequence[str],
    targets: Sequence[str],
) -> PortableStep | None:
    """The step, when another process may run it; else None. Errors as `prune` raises them.

    `graph` is that of `nodes_of_step`, or more.
    """
    pruned = prune(graph, feeds, fetches, targets)
    fed = [find_endpoint(graph, name) for name in feeds]
    nodes = [node for node in pruned.nodes if node.op != "_Arg"]
    variables = [node for node in nodes if node.op in VARIABLE_OPS]
    exchanged = [node.output_types[index] for node, index in (*pruned.fetches, *fed)]
    exchanged += [node.attr("dtype") for node in variables]
    if not _NOT_PORTABLE_TYPES.isdisjoint(exchanged):
        return None
    if any(node.op in VARIABLE_OPS for node, _ in (*pruned.fetches, *fed)):
        return None
    others = [node for node in nodes if node.op not in VARIABLE_OPS]
    functions = graph.library.reachable(_functions_of(others, graph)).function
    if (
        any(node.find_attr("shared_name") == ANONYMOUS_NAME for node in variables)
        or any(any(node.input_is_ref) or not _is_portable(node.op, graph) for node in others)
        or not all(_is_portable_function(function, graph) for function in functions)
    ):
        return None
    names = {node.name for node in variables}
    needed = tuple(node for node in _all_behind(graph) if node.name in names)
    return PortableStep(
        next(_numbers),
        config,
        graph,
        tuple(feeds),
        tuple(fetches),
        tuple(targets),
        needed,
        tuple(map(_key, needed)),
    )


def _all_behind(graph: Graph) -> list[Node]:
    """The nodes of a graph and all that these need."""
    pending = list(graph.nodes.values())
    found: dict[Node, None] = {}
    while pending:
        node = pending.pop()
        if node not in found:
            found[node] = None
            pending += [source for source, _ in node.inputs]
            pending += node.control_inputs
    return list(found)


def _is_portable(op: str, graph: Graph) -> bool:
    if op in graph.library:  # the nodes of its body decide
        return True
    info = op_info(op)
    return info is not None and (not info.is_stateful or op in _HARMLESS) and op not in KEPT_HERE


def _is_portable_function(function: pb.FunctionDef, graph: Graph) -> bool:
    return all(_is_portable(node.op, graph) for node in function.node_def)


def _functions_of(nodes: Iterable[Node], graph: Graph) -> set[str]:
    """Names of the functions that nodes call by their op or by an attribute."""
    names = set()
    for node in nodes:
        if node.op in graph.library:
            names.add(node.op)
        for name, kind in node.info.attr_types.items():
            if kind in ("func", "list(func)"):
                names.update(_function_names(node.attr(name)))
    return names


def _function_names(value: Any) -> Iterator[str]:
    """Functions in the value of an attribute, in their own attributes too."""
    if isinstance(value, NameAttrList):
        if value.name:
            yield value.name
        value = tuple(value.attrs.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _function_names(each)
