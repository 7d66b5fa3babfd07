"""Normalizations in a model give what the numpy kernels give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from runtime.clusters.emit_cluster import RefusedError
from runtime.clusters.running.engine import UncheckedRunError
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


def response(depth: int, **attrs: Any) -> Graph:
    graph = Graph()
    graph.add("LRN", graph.placeholder("float32", "x"), name="y", depth_radius=depth, **attrs)
    return graph


def test_a_square_that_overflows_is_left_to_numpy() -> None:
    """The sums of all channels would be NaN."""
    x = np.ones((1, 1, 1, 9), np.float32)
    made = emitted(response(1), {"x:0": x}, ["y:0"])
    made.check()
    x = x.copy()
    x[..., 0] = 1e30
    with pytest.raises(UncheckedRunError):
        made.run(feeds={"x:0": x})


@pytest.mark.parametrize("beta", [0.5, 0.75, 1.0])
@pytest.mark.parametrize("channels", [3, 24])
def test_a_large_square_takes_no_digits_from_other_windows(channels: int, beta: float) -> None:
    x = np.random.default_rng(1).uniform(-1, 1, (2, 3, 2, channels)).astype(np.float32)
    x[..., 0] = 1000
    emitted(response(1, beta=beta), {"x:0": x}, ["y:0"]).check(1e-6)


def test_powers_of_negative_sums_are_those_of_numpy() -> None:
    x = np.ones((1, 1, 1, 9), np.float32)
    for attrs in ({"alpha": -2.0}, {"alpha": math.nan}, {"beta": 0.0}, {"bias": -9.0, "beta": 1.0}):
        made = emitted(response(1, **attrs), {"x:0": x}, ["y:0"])
        with np.errstate(invalid="ignore"):
            expected = made.expected
        if np.isnan(attrs.get("alpha", 0.0)):
            with pytest.raises(UncheckedRunError):
                made.run()
        else:
            np.testing.assert_allclose(made.run()[0], expected[0], 1e-6)


def test_many_channels_are_left_to_numpy() -> None:
    x = np.ones((1, 1, 1, 513), np.float32)
    with pytest.raises(RefusedError, match="a band of 513 channels"):
        emitted(response(5), {"x:0": x}, ["y:0"])


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
