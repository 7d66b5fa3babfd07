"""Normalizations in a model give what the numpy kernels give."""

from __future__ import annotations

import math

import numpy as np
import pytest

from runtime.clusters.emitters import EMITTERS
from runtime.clusters.running.engine import UncheckedRunError
from runtime.graph.graph import Graph as RuntimeGraph
from runtime.graph.graph_constructor import extend_graph
from tests.conformance.case import Graph
from tests.unit.runtime.clusters.emitted import assert_close, emitted
from tests.unit.runtime.clusters.recorded_ops import check_recorded

STATISTICS = (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("op", "sources", "at_least"),
    [
        ("FusedBatchNorm", STATISTICS, 6),
        ("FusedBatchNormV2", STATISTICS, 6),
        ("FusedBatchNormV3", STATISTICS, 7),
        ("FusedBatchNormV3", (), 7),
        ("LRN", (), 3),
    ],
)
def test_recorded_cases(op: str, sources: tuple[int, ...], at_least: int) -> None:
    assert len(check_recorded(op, sources)) >= at_least


def test_a_square_that_overflows_is_left_to_numpy() -> None:
    """The engine's sums over channels would be NaN for all channels after it."""
    graph = Graph()
    graph.add("LRN", graph.placeholder("float32", "x"), name="y", depth_radius=1)
    x = np.ones((1, 1, 1, 9), np.float32)
    made = emitted(graph, {"x:0": x}, ["y:0"])
    made.check()
    x = x.copy()
    x[..., 0] = 1e30
    with pytest.raises(UncheckedRunError):
        made.run(feeds={"x:0": x})


@pytest.mark.parametrize("powers", [{"alpha": -1.0}, {"alpha": math.nan}, {"beta": 0.0}])
def test_powers_that_the_engine_has_no_response_for_are_left_to_numpy(
    powers: dict[str, float],
) -> None:
    graph = Graph()
    graph.add("LRN", graph.placeholder("float32", "x"), name="y", **powers)
    node = extend_graph(RuntimeGraph(), graph.graph_def).nodes["y"]
    assert not EMITTERS["LRN"].takes(node)


def test_statistics_of_an_empty_batch_are_nan() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    vectors = [np.full(3, value, np.float32) for value in (1, 2, 3, 4)]
    graph.add("FusedBatchNormV3", x, *vectors, name="y", is_training=False)
    feeds = {"x:0": np.zeros((0, 2, 2, 3), np.float32)}
    made = emitted(graph, feeds, [f"y:{index}" for index in range(6)])
    assert np.isnan(made.expected[1]).all()
    made.check()
    full = {"x:0": np.ones((1, 2, 2, 3), np.float32)}
    assert_close(made.run(feeds=full)[1], np.full(3, 3, np.float32))
