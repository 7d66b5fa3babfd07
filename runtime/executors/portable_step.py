"""PortableStep: a step in a form that another process can run.

A step is portable if it has no lasting effect: it only reads variables and computes. The values of
the variables are sent as additional feeds, for the nodes of the variables. A step that changes or
keeps state (variables, queues, tables, iterators, random generators), uses files or returns
resources is not portable: it must run in the process of its session.

Guarantees: a PortableStep is immutable and may be used by any thread.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

import protos as pb
from runtime.framework.dtypes import DataType
from runtime.framework.resources.variable import VariableKey
from runtime.graph.function_library import op_info
from runtime.graph.graph import Graph
from runtime.graph.node import Node
from runtime.graph.passes.pruning import find_endpoint, prune
from runtime.graph.tensor_name import parse_tensor_name
from runtime.graph.variable_nodes import VARIABLE_OPS, called_functions, variable_key
from runtime.kernels.state.resource_variables import ANONYMOUS_NAME

# Ops that are portable although their OpDef marks them as stateful. They read variables, keep state
# only in the step's own resources, only check a value, or call functions, whose nodes are checked.
PORTABLE_STATEFUL_OPS = frozenset(
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
# Ops that are not portable although their OpDef does not mark them as stateful. They read files or
# batch the inputs of concurrent steps.
NOT_PORTABLE_OPS = frozenset(
    (
        "ReadFile", "MatchingFiles", "GenerateVocabRemapping", "ImmutableConst", "DecodeProtoV2",
        "EncodeProto", "BatchFunction", "Batch", "Unbatch", "UnbatchGrad",
    )
)  # fmt: skip
_NOT_PORTABLE_TYPES = frozenset((DataType.RESOURCE, DataType.VARIANT))
_numbers = itertools.count(1)  # next() is atomic


@dataclasses.dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class PortableStep:
    """A step as a graph and names; after `feeds`, output 0 of each node in `variables` is fed.

    `graph` is a result of `nodes_of_step`: it lists only the nodes of feeds, fetches and targets.
    """

    number: int  # unique in this process
    config: pb.ConfigProto
    graph: Graph
    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    variables: tuple[Node, ...]
    keys: tuple[VariableKey, ...]  # one for each of `variables`, in that order

    def node_defs(self) -> Iterator[pb.NodeDef]:
        """Yield the NodeDefs of all nodes that the step depends on."""
        for node in self._nodes():
            yield node.to_node_def()

    def library(self) -> pb.FunctionDefLibrary:
        """Return the functions that the nodes of the step call, directly or indirectly."""
        called = called_functions(self._nodes(), self.graph.library)
        return _reachable(called, self.graph)

    def _nodes(self) -> list[Node]:
        return _transitive_fanin(self.graph)


def nodes_of_step(
    graph: Graph, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
) -> Graph:
    """Return a graph that lists only the nodes named by `feeds`, `fetches` and `targets`.

    The edges of these nodes still lead to every node that the step depends on. Other nodes can be
    freed, which matters if the graph of a session is extended often.
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
    """Return the step in portable form, or None if it must run in this process.

    `graph` must contain at least the nodes of `nodes_of_step`. Raises what `prune` raises.
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
    if may_keep_state(nodes, graph) or any(
        node.find_attr("shared_name") == ANONYMOUS_NAME for node in variables
    ):
        return None
    names = {node.name for node in variables}
    needed = tuple(node for node in _transitive_fanin(graph) if node.name in names)
    return PortableStep(
        next(_numbers),
        config,
        graph,
        tuple(feeds),
        tuple(fetches),
        tuple(targets),
        needed,
        tuple(map(variable_key, needed)),
    )


def may_keep_state(nodes: Iterable[Node], graph: Graph) -> bool:
    """Return whether a step of these nodes may change or keep state: a variable, a queue, a table.

    It may then keep the arrays that it is fed. `graph` has the functions that the nodes call.
    """
    others = [node for node in nodes if node.op not in VARIABLE_OPS and node.op != "_Arg"]
    called = called_functions(others, graph.library)
    functions = _reachable(called, graph).function
    return (
        any(any(node.input_is_ref) or not _is_portable(node.op, graph) for node in others)
        or not all(_is_portable(name, graph) for name in called)
        or not all(_is_portable_function(each, graph) for each in functions)
    )


def _reachable(called: Iterable[str], graph: Graph) -> pb.FunctionDefLibrary:
    """Return the called functions and those that they call; an op can be called like a function."""
    return graph.library.reachable(name for name in called if name in graph.library)


def _transitive_fanin(graph: Graph) -> list[Node]:
    """Return the nodes of a graph and all nodes that they depend on."""
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
    if op in graph.library:  # `op` names a function; `portable_step` checks the nodes of its body
        return True
    info = op_info(op)
    return (
        info is not None
        and (not info.is_stateful or op in PORTABLE_STATEFUL_OPS)
        and op not in NOT_PORTABLE_OPS
    )


def _is_portable_function(function: pb.FunctionDef, graph: Graph) -> bool:
    return all(_is_portable(node.op, graph) for node in function.node_def)
