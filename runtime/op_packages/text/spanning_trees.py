"""MaxSpanningTree: the arcs into the nodes of digraphs that make the best tree.

Each node takes its best inbound arc. Arcs that make a cycle are contracted to one node, whose
inbound arcs are those of the cycle's nodes, with what it costs to give up the cycle's arc there.
In the end, the arcs into contracted nodes break the cycles. A root's arc comes of an artificial
node 0, so that all others have their number and one more.

TF: tensorflow_text/core/kernels/mst_op_kernels.cc, mst_solver.h (R. E. Tarjan: Finding Optimum
Branchings. Networks 7, 1977)
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import FailedPreconditionError, InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.op_kernel import KernelDef
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import elements, itemsize, largest_in, shape_of, size_of

_LARGEST = (1 << 15) - 1  # nodes of a digraph: TensorFlow's index has 16 bits
_ROOT = 0
_DELETED = -1


def _lowest(dtype: np.dtype) -> int | float:
    """Return the score that an arc must have at least."""
    limits = np.iinfo(dtype) if dtype.kind == "i" else np.finfo(dtype)
    return limits.min.item() if isinstance(limits.min, np.generic) else limits.min


def _infeasible() -> FailedPreconditionError:
    return FailedPreconditionError("Infeasible digraph")


def _best_sources(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the source of the best arc of each row, the last if there are several, or -1."""
    lowest = _lowest(scores.dtype)
    valid = (targets != 0) & (scores >= lowest)
    best = np.where(valid, scores, scores.dtype.type(lowest)).max(axis=-1)
    hits = valid & (scores == best[..., None])
    last = scores.shape[-1] - 1 - np.argmax(hits[..., ::-1], axis=-1)
    found: np.ndarray = np.where(hits.any(axis=-1), last, -1)
    return found


class _Digraph:
    """A digraph of n nodes while its cycles are contracted.

    Row t of `_scores` and `_targets`, `[n + 1, n + 1]`, has the arcs into a node by their source:
    the score, and into which of the first nodes the arc leads (0: there is no arc). A contracted
    node has the row of a node of its cycle.
    """

    def __init__(self, scores: np.ndarray, forest: bool) -> None:
        """`scores[t, s]` is that of the arc from s to t, or of the root t; no arc if not finite."""
        n = len(scores)
        self._count = n
        self._scores = np.zeros((n + 1, n + 1), scores.dtype)
        self._scores[1:, 1:] = scores
        self._scores[1:, _ROOT] = scores.diagonal()
        self._targets = np.where(np.isfinite(self._scores), np.arange(n + 1)[:, None], 0)
        self._targets = self._targets.astype(np.uint16)
        np.fill_diagonal(self._targets, 0)
        if not forest:
            self._penalize_roots()
        # by node: the source and target of the arc that it takes, and where its arcs are
        self._arcs: list[tuple[int, int]] = [(0, 0)]
        self._rows = list(range(n + 1))
        # of the first nodes: the contracted node that they are in; neighbours by the arcs taken
        self._outermost = np.arange(n + 1)
        self._neighbours = list(range(n + 1))
        self._contracted_into = [0] * (n + 1)

    def _penalize_roots(self) -> None:
        """Make one root better than two, whatever the arcs are."""
        existing = self._scores[self._targets != 0]
        if existing.size:
            one, nodes = np.ones(1, existing.dtype), np.full(1, self._count + 1, existing.dtype)
            self._scores[:, _ROOT] -= one + nodes * (existing.max() - existing.min())

    def _family(self, node: int) -> int:
        """Return the first of the nodes that arcs connect with one, whatever their direction."""
        parents = self._neighbours
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    def take_arcs(self) -> None:
        """Let each node take its best arc; contract cycles. TF: MstSolver::ContractionPhase"""
        taken = _best_sources(self._scores, self._targets).tolist()
        node = 1
        while node < len(self._rows):
            row = self._rows[node]
            if node > self._count:
                check_task()
                taken[row] = int(_best_sources(self._scores[row], self._targets[row]))
            source = taken[row]
            if source < 0:
                raise _infeasible()
            target = int(self._targets[row, source])
            self._arcs.append((source, target))
            if source != _ROOT:
                families = self._family(source), self._family(target)
                if families[0] == families[1]:
                    self._contract(node)
                self._neighbours[families[0]] = families[1]
            node += 1

    def _contract(self, node: int) -> None:
        """Make a node of the cycle that a node is in. TF: MstSolver::ContractCycle"""
        contracted = len(self._rows)
        cycle = [node]
        while (before := int(self._outermost[self._arcs[cycle[-1]][0]])) != node:
            cycle.append(before)
        for each in cycle:
            self._contracted_into[each] = contracted
            self._outermost[self._outermost == each] = contracted
        self._contracted_into.append(0)
        is_inside = self._outermost == contracted
        kept = self._rows[node]
        self._rows.append(kept)
        for each in cycle:
            self._merge(self._rows[each], self._arcs[each][0], kept, is_inside)

    def _merge(self, row: int, source: int, kept: int, is_inside: np.ndarray) -> None:
        """Add the arcs in a row to those in the row `kept`; of two, the better stays."""
        scores, targets = self._scores[row], self._targets[row]
        scores -= scores[source].copy()
        targets[is_inside] = 0
        if row == kept:
            return
        mine, aims = self._scores[kept], self._targets[kept]
        is_better = (targets != 0) & ((aims == 0) | (mine < scores))
        mine[is_better] = scores[is_better]
        aims[is_better] = targets[is_better]

    def sources(self, forest: bool) -> np.ndarray:
        """Return the source of the arc into each node, itself if it is a root, `[n]`.

        TF: MstSolver::ExpansionPhase
        """
        into = self._contracted_into
        for root in range(len(into) - 1, self._count, -1):
            if into[root] == _DELETED:
                continue
            target = self._arcs[root][1]
            self._arcs[target] = self._arcs[root]
            node = into[target]
            while node not in (_DELETED, root):
                into[node], node = _DELETED, into[node]
        found = np.array([source for source, _ in self._arcs[1 : self._count + 1]], np.int32)
        is_root = found == _ROOT
        if not forest and is_root.sum() != 1:
            raise _infeasible()
        return np.where(is_root, np.arange(self._count, dtype=np.int32), found - 1)


def _check(num_nodes: np.ndarray, scores: np.ndarray) -> None:
    if num_nodes.ndim != 1:
        raise InvalidArgumentError(f"num_nodes must be a vector, got shape {list(num_nodes.shape)}")
    if scores.ndim != 3:
        raise InvalidArgumentError(f"scores must be rank 3, got shape {list(scores.shape)}")
    batch, size, sources = scores.shape
    if len(num_nodes) != batch:
        raise InvalidArgumentError(
            f"num_nodes misshapen: got {list(num_nodes.shape)} but expected [{batch}]"
        )
    if sources != size:
        raise InvalidArgumentError(
            f"scores misshapen: got {list(scores.shape)} but expected {[batch, size, size]}"
        )


def _check_size(problem: int, count: int, size: int) -> None:
    if count > size:
        raise InvalidArgumentError(
            f"number of nodes in digraph {problem} overflows input dimension: got {count} but "
            f"expected <= {size}"
        )
    if not 0 < count <= _LARGEST:
        raise InvalidArgumentError(
            f"number of nodes in digraph {problem} must be in [1, {_LARGEST}], got {count}"
        )


def max_spanning_tree(
    num_nodes: np.ndarray, scores: np.ndarray, *, forest: bool
) -> tuple[np.ndarray, np.ndarray]:
    """MaxSpanningTree: return the scores of the best trees [batch], and their arcs [batch, m].

    `scores[b, t, s]` is that of the arc from node s to node t, and of the root t if s is t; one
    that is not finite does not exist. The arcs are the source of each node, itself if it is a
    root, and -1 behind `num_nodes[b]` nodes. A `forest` may have several roots. Raises
    InvalidArgumentError if a digraph has more than m nodes or none, and FailedPreconditionError
    if no tree spans it.
    """
    _check(num_nodes, scores)
    totals = np.zeros(len(num_nodes), scores.dtype)
    found = np.full(scores.shape[:2], -1, np.int32)
    for problem, count in enumerate(num_nodes.tolist()):
        check_task()
        _check_size(problem, count, scores.shape[1])
        given = scores[problem, :count, :count]
        with np.errstate(all="ignore"):
            digraph = _Digraph(given, forest)
            digraph.take_arcs()
            sources = digraph.sources(forest)
            # in the order of the nodes, and from 0, as the sum is rounded at each of them
            parts = np.append(scores.dtype.type(0), given[np.arange(count), sources])
            totals[problem] = np.add.accumulate(parts, dtype=parts.dtype)[-1]
        found[problem, :count] = sources
    return totals, found


def _memory(num_nodes: TensorValue, scores: TensorValue) -> int:
    shape = shape_of(scores)
    nodes = min(max(largest_in(num_nodes), 0), shape[-1] if shape else 0) + 1
    arcs = nodes * nodes * (3 * itemsize(scores) + 16)
    return arcs + 400 * nodes + 8 * elements(num_nodes) + size_of(scores) + 4 * elements(scores)


KERNELS = (KernelDef("MaxSpanningTree", max_spanning_tree, expensive=True, memory=_memory),)
