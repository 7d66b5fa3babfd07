"""The inference service: predict, classify and regress on served models, for every transport.

Steps run in the version's one serving session, whose state persists between requests.

TF: tensorflow_serving/servables/tensorflow/{predict,classification,regression}_*.cc
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from runtime.api import CancellationManager, RunRequest
from server.models.manager import ModelManager
from server.models.model_version import ModelVersion
from server.models.serving_metrics import ServingMetrics
from server.models.signature import Signature
from server.priorities import Priorities


@dataclasses.dataclass(frozen=True, slots=True)
class StepContext:
    """How a request's step is to run. `deadline` is a monotonic instant."""

    priority: str | int | None
    deadline: float | None
    cancellation: CancellationManager


class InferenceService:
    """What REST and gRPC call; made once per server."""

    def __init__(
        self, manager: ModelManager, priorities: Priorities, metrics: ServingMetrics
    ) -> None:
        self.manager = manager
        self.metrics = metrics
        self._priorities = priorities

    def start(
        self,
        version: ModelVersion,
        signature: Signature,
        tensors: Mapping[str, np.ndarray],
        aliases: Sequence[str],
        context: StepContext,
    ) -> concurrent.futures.Future[list[Any]]:
        """Start the step that gives the outputs of `aliases`; keep `version` acquired meanwhile.

        Who waits for it sees to the deadline, by cancelling (`wait_for_step`): most steps are over
        before a timer would have been set.

        Raises InvalidArgumentError for missing or superfluous inputs and unknown priorities,
        ResourceExhaustedError when the pool's queue is full.
        """
        signature.check_inputs(tensors.keys())
        pool = self._priorities.resolve(context.priority).pool
        feed_names = signature.feed_names
        outputs = signature.outputs
        return version.session.run_async(
            RunRequest(
                {feed_names[alias]: array for alias, array in tensors.items()},
                [outputs[alias].name for alias in aliases],
                cancellation=context.cancellation,
                pool=pool,
                allow_inline=not pool.low_priority,
            )
        )
