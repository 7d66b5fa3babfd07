"""Pools in a model give what the numpy kernels give, or say that they don't."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.clusters.backend import UncheckedRunError
from tests.conformance.case import Graph
from tests.unit.runtime.clusters.emitted import Emitted, assert_close, emitted
from tests.unit.runtime.clusters.recorded_ops import check_recorded


@pytest.mark.parametrize(
    ("op", "at_least"),
    [("AvgPool", 9), ("AvgPool3D", 5), ("MaxPool", 10), ("MaxPool3D", 5), ("MaxPoolV2", 3)],
)
def test_recorded_cases(op: str, at_least: int) -> None:
    assert len(check_recorded(op)) >= at_least


def pooled(image: np.ndarray) -> Emitted:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    sizes = {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1]}
    graph.add("MaxPool", x, name="y", padding="SAME", **sizes)
    return emitted(graph, {"x:0": image}, ["y:0"])


def test_of_a_maximum_all_elements_must_be_finite() -> None:
    image = np.random.default_rng(7).standard_normal((2, 5, 5, 3)).astype(np.float32)
    made = pooled(image)
    made.check()
    for value in (np.nan, np.inf, -np.inf):
        odd = image.copy()
        odd[1, 2, 3, 1] = value
        with pytest.raises(UncheckedRunError, match="not finite"):
            made.run(feeds={"x:0": odd})
    assert_close(made.run()[0], made.expected[0])


def test_empty_batch() -> None:
    assert pooled(np.zeros((0, 5, 5, 3), np.float32)).run()[0].shape == (0, 3, 3, 3)
