"""Runs small graphs twice, by the numpy kernels and as a compiled model, and compares the results.

A graph is built with `tests.conformance.case.Graph`. Its feeds are inputs of the cluster, or
sources (arrays that follow from variables).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from runtime.clusters.backend import CompiledModel
from runtime.clusters.dimensions import Shape, symbol
from runtime.clusters.emission import Operation, live_operations
from runtime.clusters.emit_cluster import ClusterGraph, EmittedCluster, emit_cluster
from runtime.clusters.model_proto import serialize
from runtime.clusters.patterns.pattern import Pattern
from runtime.executors.step import Step
from runtime.executors.step_plan import StepPlan
from runtime.framework.cancellation import CancellationManager
from runtime.framework.io.file_gate import AllowAll
from runtime.framework.op_kernel import SessionState
from runtime.framework.resource_manager import ResourceManager
from runtime.graph.graph import Graph as RuntimeGraph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.passes.pruning import prune
from runtime.graph.topology import topological_order
from runtime.registrations import kernel_registry
from runtime.sessions.direct.kernel_states import KernelStates
from tests.conformance.case import Graph

Feeds = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Emitted:
    """An emitted graph; `reference` computes by the numpy kernels what its feeds give."""

    cluster: EmittedCluster
    feeds: Feeds
    sources: Feeds
    reference: Callable[[], list[np.ndarray]]

    @functools.cached_property
    def expected(self) -> list[np.ndarray]:
        """What the numpy kernels give for the feeds."""
        return self.reference()

    @property
    def operations(self) -> list[Operation]:
        """The operations that the model has."""
        return live_operations(self.cluster.emission.operations, self.cluster.outputs)

    def kinds(self) -> list[str]:
        """The types of the operations, in order."""
        return [operation.op_type for operation in self.operations]

    def run(self, is_baked: bool = True, feeds: Feeds | None = None) -> list[np.ndarray]:
        """Compile the model and return its outputs for the feeds."""
        model = serialize(self.cluster, is_baked)
        arrays = list(self.sources.values())
        memo: dict[object, np.ndarray] = {}
        weights = [weight.evaluate(arrays, memo) for _, weight in model.weights]
        inputs = list((self.feeds if feeds is None else feeds).values())
        return CompiledModel(model, threads=1).run([*inputs, *weights])

    def check(self, tolerance: float = 1e-5) -> None:
        """Compare both forms with the numpy kernels, relative to the largest magnitude."""
        for is_baked in (True, False) if self.sources else (True,):
            for got, want in zip(self.run(is_baked), self.expected, strict=True):
                assert_close(got, want, tolerance)


def emitted(
    graph: Graph,
    feeds: Feeds,
    fetches: Sequence[str],
    *,
    sources: Feeds | None = None,
    shapes: Sequence[Shape] | None = None,
    patterns: Sequence[Pattern] = (),
    may_raise: bool = False,
) -> Emitted:
    """Emit the graph that computes `fetches`; raise what `emit_cluster` raises.

    Raises what the numpy kernels raise before that, unless `may_raise`: then `reference` raises it.

    `shapes` are those of `feeds`; by default axis 0 is the symbol `batch` and the others are fixed.
    By default no pattern runs, so that the operations are those which the emitters wrote.
    """
    sources = sources or {}
    given = {**feeds, **sources}
    runtime_graph = extend_graph(RuntimeGraph(), graph.graph_def)
    step_graph = prune(runtime_graph, list(given), fetches, [])
    arguments = []
    for argument in step_graph.arguments:
        assert argument is not None
        arguments.append((argument, 0))
    plan = StepPlan(step_graph, kernel_registry())
    state: SessionState = KernelStates(ResourceManager(), "test", [])

    def reference() -> list[np.ndarray]:
        step = Step(state, CancellationManager(), AllowAll(), None)
        return [np.asarray(each) for each in plan.run(step, list(given.values()))]

    answer = None if may_raise else reference()
    cluster = ClusterGraph(
        tuple(each for each in topological_order(step_graph.nodes) if each.op != "_Arg"),
        tuple(arguments[: len(feeds)]),
        tuple(arguments[len(feeds) :]),
        tuple(step_graph.fetches),
    )
    if shapes is None:
        shapes = [batched(array.shape) for array in feeds.values()]
    made = emit_cluster(cluster, shapes, list(sources.values()), patterns=patterns)
    return Emitted(made, feeds, sources, reference if answer is None else lambda: answer)


def batched(shape: Sequence[int]) -> Shape:
    """Return the shape with the symbol `batch` as its first size."""
    return (symbol("batch"), *shape[1:]) if shape else ()


def assert_close(got: np.ndarray, want: np.ndarray, tolerance: float = 1e-5) -> None:
    """Compare type, shape and elements, relative to the largest finite magnitude."""
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want)
        return
    finite = np.abs(want[np.isfinite(want)])
    scale = float(finite.max(initial=0.0)) or 1.0
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale)
