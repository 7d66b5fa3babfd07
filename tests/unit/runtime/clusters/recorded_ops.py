"""Runs the recorded conformance cases of an op as models, beside the numpy kernels."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence

import numpy as np

import protos as pb
from runtime.clusters.backend import UncheckedRunError
from runtime.clusters.emit_cluster import RefusedError
from runtime.clusters.emitters import EMITTERS
from runtime.foundation.errors import OpError
from runtime.framework.tensor_codec import tensor_to_proto
from runtime.graph.graph import Graph as RuntimeGraph
from runtime.graph.graph_constructor import extend_graph
from tests.conformance.case import Case, Graph, cases_of, families
from tests.unit.runtime.clusters.emitted import Emitted, batched, emitted


@functools.cache
def _cases() -> dict[str, list[tuple[str, Case]]]:
    """Op → (family, case) of every case of one step whose graph is one node beside its feeds."""
    found: dict[str, list[tuple[str, Case]]] = {}
    for family in families():
        for case in cases_of(family):
            nodes = [node for node in case.graph.node if node.op != "Placeholder"]
            if len(case.steps) == 1 and len(nodes) == 1 and nodes[0].op in EMITTERS:
                found.setdefault(nodes[0].op, []).append((family, case))
    return found


def check_recorded(op: str, sources: Sequence[int] = (), tolerance: float = 1e-5) -> list[str]:
    """Check every case of `op` whose types and attributes its row takes.

    Inputs that the row requires to be constant are; those with an index in `sources` are weights.
    Axis 0 of the first input is a symbol if that can be written, else fixed. Where the numpy
    kernels raise an error, the node must be refused or the engine must fail. A run that says that
    its results don't count is passed over, as the numpy kernels run then. Returns the names of
    the cases that ran as models.
    """
    ran = []
    for family, case in _cases().get(op, ()):
        for is_symbolic in (True, False):
            made = _emitted(case, op, sources, is_symbolic)
            if made is None:
                continue
            if _raises(made.reference):
                assert _raises(made.run), f"{family}/{case.name} must fail"
                continue
            if check_case(made, f"{family}/{case.name}", tolerance):
                ran.append(case.name)
            break
    return ran


def _raises(function: Callable[[], object]) -> bool:
    """Return whether `function` fails, as an engine does with errors of any kind."""
    try:
        function()
    except Exception:
        return True
    return False


def check_case(made: Emitted, name: str, tolerance: float) -> bool:
    """Check both forms of a model; a failure shows the name of the case.

    Returns whether the results count.
    """
    try:
        made.check(tolerance)
    except UncheckedRunError:
        return False
    except AssertionError as error:
        raise AssertionError(f"{name}: {error}") from error
    return True


def _emitted(case: Case, op: str, sources: Sequence[int], is_symbolic: bool) -> Emitted | None:
    row = EMITTERS[op]
    graph = Graph()
    graph.graph_def = copy.deepcopy(case.graph)
    node = next(each for each in graph.graph_def.node if each.op == op)
    step = case.steps[0]
    feeds: dict[str, np.ndarray] = {}
    weights: dict[str, np.ndarray] = {}
    for position, name in enumerate(node.input):
        key = name if ":" in name else f"{name}:0"
        array = step.feeds[key]
        if position in row.constants:
            _make_constant(graph.graph_def, key.partition(":")[0], array)
        else:
            (weights if position in sources else feeds)[key] = array
    try:
        built = extend_graph(RuntimeGraph(), graph.graph_def)
    except OpError:
        return None
    if not row.takes(built.nodes[node.name]):
        return None
    shapes = [array.shape for array in feeds.values()]
    if is_symbolic and shapes:
        shapes[0] = batched(shapes[0])
    try:
        return emitted(graph, feeds, step.fetches, sources=weights, shapes=shapes, may_raise=True)
    except RefusedError:
        return None


def _make_constant(graph: pb.GraphDef, name: str, array: np.ndarray) -> None:
    node = next(each for each in graph.node if each.name == name)
    data_type = copy.deepcopy(node.attr["dtype"])
    node.Clear()
    node.name, node.op = name, "Const"
    node.attr["dtype"].CopyFrom(data_type)
    node.attr["value"].tensor.CopyFrom(tensor_to_proto(array))
