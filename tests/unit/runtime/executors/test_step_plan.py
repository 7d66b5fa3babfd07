"""Generated plans whose kernels wait for other steps."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import DeadlineExceededError, SessionOptions, new_session
from runtime.executors.step_plan import GENERATE_AT_RUN
from tests.conformance.case import Graph


def test_a_generated_plan_waits_for_a_queue() -> None:
    graph = Graph()
    queue = graph.add("FIFOQueueV2", name="queue", component_types=["float32"], shapes=[[]])[0]
    graph.add("QueueEnqueueV2", queue, np.float32(5), name="put", Tcomponents=["float32"])
    taken = graph.add("QueueDequeueV2", queue, component_types=["float32"])[0]
    negative = graph.add("Neg", taken)[0]
    config = pb.ConfigProto()
    config.experimental.executor_type = "SINGLE_THREADED_EXECUTOR"
    session = new_session(SessionOptions(config=config))
    session.create(graph.graph_def)
    for _ in range(GENERATE_AT_RUN + 1):
        session.run({}, (), ["put"])
        assert session.run({}, [negative[0]]) == [-5]
    soon = pb.RunOptions(timeout_in_ms=50)
    with pytest.raises(DeadlineExceededError, match="Timed out waiting for notification"):
        session.run({}, [negative[0]], (), soon)
    session.close()
