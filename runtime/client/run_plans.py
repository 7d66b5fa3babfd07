"""Run plans: the resolved names of fetches, targets and feeds, cached for repeated runs.

Guarantees: thread-safe; at most CAPACITY plans are kept. Operations are never renamed or removed,
so a plan stays valid while the graph grows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping

from runtime.client.fetches import FetchHandler
from runtime.client.framework.argument_types import Fetches
from runtime.client.framework.graph import Graph
from runtime.client.framework.operation import Operation, Tensor
from runtime.framework.tensor_value import TensorValue

CAPACITY = 256  # plans that a session keeps; a full cache is emptied first
_SIMPLE = (Tensor, Operation, str)


@dataclasses.dataclass(frozen=True, slots=True)
class RunPlan:
    """The names to pass to the session for a fetch structure and a set of fed tensors."""

    handler: FetchHandler
    wanted: list[Tensor]
    fetches: list[str]
    targets: list[str]
    feeds: list[str]


class RunPlans:
    """The cached plans of one session."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._plans: dict[Hashable, RunPlan] = {}  # one dict operation is atomic

    def find(self, fetches: Fetches, feeds: Mapping[Tensor, TensorValue]) -> RunPlan:
        """Return the plan for `fetches` and the tensors in `feeds`, from the cache if possible.

        Plans of nested fetches are not cached. Raises what `FetchHandler` raises.
        """
        key: Hashable = None
        if isinstance(fetches, _SIMPLE):
            key = fetches
        elif isinstance(fetches, list | tuple) and all(
            isinstance(each, _SIMPLE) for each in fetches
        ):
            key = (type(fetches), *fetches)
        if key is None:
            return self._make(fetches, feeds)
        key = (key, self._graph.unfetchable_count, *feeds)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._make(fetches, feeds)
            if len(self._plans) >= CAPACITY:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def _make(self, fetches: Fetches, feeds: Mapping[Tensor, TensorValue]) -> RunPlan:
        handler = FetchHandler(self._graph, fetches)
        wanted = [tensor for tensor in handler.tensors if tensor not in feeds]
        return RunPlan(
            handler,
            wanted,
            [tensor.name for tensor in wanted],
            [operation.name for operation in handler.targets],
            [tensor.name for tensor in feeds],
        )
