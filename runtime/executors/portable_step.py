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
from typing import Any

import protos as pb
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from runtime.graph.function_library import op_info
from runtime.graph.graph import Graph
from runtime.graph.node import Node
from runtime.graph.pruning import find_endpoint, prune
from runtime.kernels.resource_variables import ANONYMOUS_NAME

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


@dataclasses.dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class PortableStep:
    """A step by the names of its graph; `variables` are fed after `feeds`, at their output 0."""

    number: int  # unique in the process
    config: pb.ConfigProto
    graph: Graph
    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    variables: tuple[Node, ...]

    def node_defs(self) -> Iterator[pb.NodeDef]:
        """The nodes that the names lead to, and all that these need."""
        for node in self._needed():
            yield node.to_node_def()

    def library(self) -> pb.FunctionDefLibrary:
        """The functions that the nodes call."""
        return self.graph.library.reachable(_functions_of(self._needed(), self.graph))

    def _needed(self) -> list[Node]:
        names = (*self.feeds, *self.fetches)
        pending = [find_endpoint(self.graph, name)[0] for name in names]
        pending += [self.graph.nodes[name] for name in self.targets]
        pending += self.variables
        needed: dict[Node, None] = {}
        while pending:
            node = pending.pop()
            if node not in needed:
                needed[node] = None
                pending += [source for source, _ in node.inputs]
                pending += node.control_inputs
        return list(needed)


def portable_step(
    graph: Graph,
    config: pb.ConfigProto,
    feeds: Sequence[str],
    fetches: Sequence[str],
    targets: Sequence[str],
) -> PortableStep | None:
    """The step, when another process may run it; else None. Errors as `prune` raises them."""
    pruned = prune(graph, feeds, fetches, targets)
    outputs = [node.output_types[index] for node, index in pruned.fetches]
    outputs += [node.output_types[0] for node in pruned.arguments if node is not None]
    if not _NOT_PORTABLE_TYPES.isdisjoint(outputs):
        return None
    if any(node.op in VARIABLE_OPS for node, _ in pruned.fetches):
        return None
    nodes = [node for node in pruned.nodes if node.op != "_Arg"]
    variables = [node for node in nodes if node.op in VARIABLE_OPS]
    others = [node for node in nodes if node.op not in VARIABLE_OPS]
    functions = graph.library.reachable(_functions_of(others, graph)).function
    if (
        any(node.find_attr("shared_name") == ANONYMOUS_NAME for node in variables)
        or any(any(node.input_is_ref) or not _is_portable(node.op, graph) for node in others)
        or not all(_is_portable_function(function, graph) for function in functions)
    ):
        return None
    return PortableStep(
        next(_numbers),
        config,
        graph,
        tuple(feeds),
        tuple(fetches),
        tuple(targets),
        tuple(graph.nodes[node.name] for node in variables),
    )


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
                names.update(each.name for each in _as_list(node.attr(name)) if each.name)
    return names


def _as_list(value: Any) -> Sequence[NameAttrList]:
    return value if isinstance(value, list | tuple) else [value]
