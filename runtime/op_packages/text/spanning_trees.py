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
_AT_ONCE = 1 << 16  # arcs that are looked at together
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


class _Digraphs:
    """Digraphs of at most m nodes as they begin.

    Row t of a digraph's `scores` and `targets`, `[digraphs, m + 1, m + 1]`, has the arcs into node
    t by their source: the score, and t itself, or 0 if there is no arc. `best` is the source of
    the best arc of each node, `[digraphs, m + 1]`, or -1.
    """

    def __init__(self, scores: np.ndarray, counts: np.ndarray, forest: bool) -> None:
        """`scores[b, t, s]` is that of the arc from s to t, or of the root t; no arc if not finite.

        Digraph b has `counts[b]` nodes.
        """
        batch, m, _ = scores.shape
        self.scores = np.zeros((batch, m + 1, m + 1), scores.dtype)
        self.scores[:, 1:, 1:] = scores
        self.scores[:, 1:, _ROOT] = scores.diagonal(axis1=1, axis2=2)
        nodes = np.arange(m + 1)
        exists = np.isfinite(self.scores) & (nodes[:, None] != nodes) & (nodes[:, None] > 0)
        is_node = nodes <= counts[:, None]
        exists &= is_node[:, None, :] & is_node[:, :, None]
        self.targets = np.where(exists, nodes[:, None].astype(np.uint16), np.uint16(0))
        if not forest:
            self._penalize_roots(exists, counts)
        self.best = _best_sources(self.scores, self.targets)

    def _penalize_roots(self, exists: np.ndarray, counts: np.ndarray) -> None:
        """Make one root better than two, whatever the arcs are."""
        dtype = self.scores.dtype
        lowest = np.array(_lowest(dtype), dtype)
        highest = np.array(np.iinfo(dtype).max if dtype.kind == "i" else -lowest, dtype)
        greatest = np.where(exists, self.scores, lowest).max(axis=(1, 2))
        least = np.where(exists, self.scores, highest).min(axis=(1, 2))
        penalty = np.ones(1, dtype) + (counts + 1).astype(dtype) * (greatest - least)
        self.scores[:, :, _ROOT] -= penalty[:, None]


class _Digraph:
    """A digraph of n nodes while its cycles are contracted.

    Its rows are those of `_Digraphs`, with the node of the first ones that an arc leads to for the
    target. A contracted node has the row of a node of its cycle.
    """

    def __init__(self, digraphs: _Digraphs, index: int, count: int) -> None:
        n = count
        self._count = n
        self._scores = digraphs.scores[index, : n + 1, : n + 1]
        self._targets = digraphs.targets[index, : n + 1, : n + 1]
        self._best: list[int] = digraphs.best[index].tolist()
        # by node: the source and target of the arc that it takes, and where its arcs are
        self._arcs: list[tuple[int, int]] = [(0, 0)]
        self._rows = list(range(n + 1))
        # of the first nodes: the contracted node that they are in; neighbours by the arcs taken
        self._outermost = np.arange(n + 1)
        self._neighbours = list(range(n + 1))
        self._contracted_into = [0] * (n + 1)

    def _family(self, node: int) -> int:
        """Return the first of the nodes that arcs connect with one, whatever their direction."""
        parents = self._neighbours
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    def take_arcs(self) -> None:
        """Let each node take its best arc; contract cycles. TF: MstSolver::ContractionPhase"""
        node = 1
        while node < len(self._rows):
            source = self._best[node] if node <= self._count else self._best_of_contracted(node)
            if source < 0:
                raise _infeasible()
            target = node if node <= self._count else int(self._targets[self._rows[node], source])
            self._arcs.append((source, target))
            if source != _ROOT:
                families = self._family(source), self._family(target)
                if families[0] == families[1]:
                    self._contract(node)
                self._neighbours[families[0]] = families[1]
            node += 1

    def _best_of_contracted(self, node: int) -> int:
        check_task()
        row = self._rows[node]
        return int(_best_sources(self._scores[row], self._targets[row]))

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

    def sources(self, forest: bool) -> list[int]:
        """Return the source of the arc into each of the n nodes, itself if it is a root.

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
        found = [source for source, _ in self._arcs[1 : self._count + 1]]
        if not forest and found.count(_ROOT) != 1:
            raise _infeasible()
        return [node if source == _ROOT else source - 1 for node, source in enumerate(found)]


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


def _wrong_size(num_nodes: np.ndarray, problem: int, size: int) -> InvalidArgumentError:
    count = num_nodes[problem]
    if count > size:
        return InvalidArgumentError(
            f"number of nodes in digraph {problem} overflows input dimension: got {count} but "
            f"expected <= {size}"
        )
    return InvalidArgumentError(
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
    batch, size, _ = scores.shape
    totals = np.zeros(batch, scores.dtype)
    found = np.full((batch, size), -1, np.int32)
    is_right = (num_nodes >= 1) & (num_nodes <= min(size, _LARGEST))
    right = batch if is_right.all() else int(np.argmin(is_right))  # those before a wrong one
    width = max(_AT_ONCE // (size + 1) ** 2, 1)
    for first in range(0, right, width):
        check_task()
        some = slice(first, min(first + width, right))
        largest = int(num_nodes[some].max())
        given = scores[some, :largest, :largest]
        with np.errstate(all="ignore"):
            sources = _sources(given, num_nodes[some], forest)
            totals[some] = _totals(given, sources)
        found[some, :largest] = sources
    if right < batch:
        raise _wrong_size(num_nodes, right, size)
    return totals, found


def _sources(scores: np.ndarray, counts: np.ndarray, forest: bool) -> np.ndarray:
    """Return the arcs of some trees, int32 `[digraphs, m]`."""
    found = np.full(scores.shape[:2], -1, np.int32)
    digraphs = _Digraphs(scores, counts, forest)
    for index, count in enumerate(counts.tolist()):
        digraph = _Digraph(digraphs, index, count)
        digraph.take_arcs()
        found[index, :count] = digraph.sources(forest)
    return found


def _totals(scores: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """Return the scores of trees: from 0, in the order of the nodes, rounded at each of them."""
    taken = np.take_along_axis(scores, np.maximum(sources, 0)[:, :, None], axis=2)[:, :, 0]
    parts = np.zeros((len(scores), sources.shape[1] + 1), scores.dtype)
    parts[:, 1:][sources >= 0] = taken[sources >= 0]
    sums: np.ndarray = np.add.accumulate(parts, axis=1, dtype=parts.dtype)
    return sums[:, -1]


def _memory(num_nodes: TensorValue, scores: TensorValue) -> int:
    shape = shape_of(scores)
    nodes = min(max(largest_in(num_nodes), 0), shape[-1] if shape else 0) + 1
    arcs = max(nodes * nodes, _AT_ONCE) * (4 * itemsize(scores) + 16)
    return arcs + 400 * nodes + 80 * size_of(num_nodes) + 12 * elements(scores) + 1000


KERNELS = (KernelDef("MaxSpanningTree", max_spanning_tree, expensive=True, memory=_memory),)
