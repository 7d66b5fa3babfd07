"""The optimiser's levels and switches."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import direct_session


@pytest.mark.parametrize(
    ("switches", "constant_sums", "exponentials"),
    [
        ({}, 1, 2),
        ({"do_constant_folding": True}, 0, 2),
        ({"do_common_subexpression_elimination": True}, 1, 1),
    ],
)
def test_level_zero_turns_off_what_is_not_asked_for(
    switches: dict[str, bool], constant_sums: int, exponentials: int
) -> None:
    level = pb.OptimizerOptions(opt_level=pb.OptimizerOptions.L0, **switches)
    config = pb.ConfigProto(graph_options=pb.GraphOptions(optimizer_options=level))
    graph = Graph()
    x = graph.placeholder("float32", "x")
    constant = graph.add("AddV2", np.float32(1), np.float32(1), name="constant")[0]
    equal = [graph.add("Exp", x, name=name)[0] for name in ("one", "two")]
    graph.add("AddN", [constant, *equal], name="sum")
    metadata = pb.RunMetadata()
    options = pb.RunOptions(output_partition_graphs=True)
    session = direct_session(graph.graph_def, config)
    assert session.run({x[0]: np.float32(0)}, ["sum"], (), options, metadata) == [4]
    ops = [node.op for node in metadata.partition_graphs[0].node]
    assert (ops.count("AddV2"), ops.count("Exp")) == (constant_sums, exponentials)
