"""How many elements a queue is asked for, when that is no scalar."""

import numpy as np
import pytest

from runtime.api import SessionOptions, new_session
from tests.conformance.case import Graph


@pytest.mark.parametrize("op", ["QueueDequeueManyV2", "QueueDequeueUpToV2"])
def test_the_first_number_counts(op):
    graph = Graph()
    queue = graph.add("FIFOQueueV2", component_types=["int32"], shapes=[()])[0]
    values = np.arange(5, dtype=np.int32)
    graph.add("QueueEnqueueManyV2", queue, values, Tcomponents=["int32"], name="fill")
    n = graph.placeholder("int32", "n")
    graph.add(op, queue, n, component_types=["int32"], name="taken")
    session = new_session(SessionOptions())
    session.create(graph.graph_def)
    session.run({}, (), ["fill"])
    for asked, expected in (([2, 9], [0, 1]), ([[0]], []), (3, [2, 3, 4])):
        (taken,) = session.run({"n": np.array(asked, np.int32)}, ["taken:0"])
        assert taken.tolist() == expected
