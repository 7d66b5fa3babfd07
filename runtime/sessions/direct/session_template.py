"""SessionTemplate: the state of a loaded model from which new sessions start.

Guarantees: the graph and the resources of a template never change; sessions opened from it share
its graph and compiled steps. They share its variables and tables until a session writes to them.
"""

from __future__ import annotations

import dataclasses

from runtime.executors.clustered import ClusterOptions
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.resource_manager import ResourceManager
from runtime.graph.graph import Graph
from runtime.sessions.direct.executor_cache import ExecutorCache


@dataclasses.dataclass(frozen=True, slots=True)
class SessionTemplate:
    """A graph, its compiled steps and resources; `resources` is None if they can't be shared."""

    graph: Graph
    cache: ExecutorCache
    resources: ResourceManager | None
    kernels: KernelRegistry
    clusters: ClusterOptions
