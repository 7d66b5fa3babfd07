"""SessionTemplate: what new sessions of a loaded model start from.

Guarantees: the template never changes; sessions opened from it share its graph, its compiled
steps, and its variables and immutable tables until they write.
"""

from __future__ import annotations

import dataclasses

from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.resource_manager import ResourceManager
from runtime.graph.graph import Graph
from runtime.sessions.direct.executor_cache import ExecutorCache


@dataclasses.dataclass(frozen=True, slots=True)
class SessionTemplate:
    """Graph, compiled steps and resources; `resources` is None when they can't be shared."""

    graph: Graph
    cache: ExecutorCache
    resources: ResourceManager | None
    kernels: KernelRegistry
