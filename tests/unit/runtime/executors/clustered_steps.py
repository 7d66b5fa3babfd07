"""Steps with clusters for tests: executors with compile queues of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from runtime.clusters.engine_choice import DEFAULT_CHOICE, EngineChoice
from runtime.clusters.running import background_cluster
from runtime.clusters.running.background_cluster import BackgroundCluster
from runtime.clusters.running.compile_queue import CompileQueue
from runtime.executors import clustered
from runtime.executors.clustered import ClusteredExecutor
from runtime.executors.step import Step
from runtime.executors.step_plan import StepPlan
from runtime.framework.cancellation import CancellationManager
from runtime.framework.derived_values import DerivedValues
from runtime.framework.io.file_gate import AllowAll
from runtime.framework.resource_manager import ResourceManager
from runtime.graph.graph import Graph as RuntimeGraph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.passes.pruning import prune
from runtime.registrations import kernel_registry
from runtime.sessions.direct.kernel_states import KernelStates
from tests.conformance.case import Graph

WAIT_SECONDS = 60.0


def new_step(
    *, is_low_priority: bool = False, cancellation: CancellationManager | None = None
) -> Step:
    return Step(
        KernelStates(ResourceManager(), "test", []),
        cancellation or CancellationManager(),
        AllowAll(),
        None,
        is_low_priority=is_low_priority,
    )


def executor_of(
    graph: Graph,
    feeds: Sequence[str],
    fetches: Sequence[str],
    source_count: int = 0,
    choice: EngineChoice = DEFAULT_CHOICE,
) -> ClusteredExecutor:
    """An executor with a queue of its own; its last `source_count` feeds are derived values."""
    step_graph = prune(extend_graph(RuntimeGraph(), graph.graph_def), feeds, fetches, [])
    arguments = step_graph.arguments[len(feeds) - source_count :]
    sources = {(node, 0): index for index, node in enumerate(arguments) if node is not None}
    plain = StepPlan(step_graph, kernel_registry())
    return ClusteredExecutor(plain, kernel_registry(), sources, CompileQueue(), choice=choice)


def relu_of_sum() -> Graph:
    graph = Graph()
    x, y = graph.placeholder("float32", "x"), graph.placeholder("float32", "y")
    graph.add("Relu", graph.add("AddV2", x, y)[0], name="z")
    return graph


def wait(executor: ClusteredExecutor) -> None:
    """Wait for the jobs in the queue, and for those that they add."""
    for _ in range(3):
        assert executor._queue.wait_until_idle(WAIT_SECONDS)


def run_with(executor: ClusteredExecutor, x: np.ndarray, derived: DerivedValues) -> np.ndarray:
    """Run with derived values after the feed, as a DerivedExecutor does."""
    step = new_step()
    step.derived = derived
    (value,) = executor.run(step, [x, *derived.values])
    assert isinstance(value, np.ndarray)
    return value


def values_of(array: np.ndarray) -> DerivedValues:
    return DerivedValues((array,), (array,), (1,), 0)


def warm_up_with(executor: ClusteredExecutor, x: np.ndarray, derived: DerivedValues) -> None:
    for _ in range(12):
        run_with(executor, x, derived)
        wait(executor)


def warm_up(executor: ClusteredExecutor, *arguments: Any, runs: int = 12) -> None:
    for _ in range(runs):
        executor.run(new_step(), arguments)
        wait(executor)


def cluster_of(executor: ClusteredExecutor) -> BackgroundCluster:
    assert executor.clustered is not None
    (found,) = executor.clustered.all_clusters
    assert isinstance(found, BackgroundCluster)
    return found


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is too small for a cluster, and the engine is never judged too slow."""
    monkeypatch.setattr(clustered, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(background_cluster, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(background_cluster, "WORTH_SECONDS_IF_HEAVY", 0.0)
    monkeypatch.setattr(BackgroundCluster, "_judge", lambda *_: None)
    yield


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)
