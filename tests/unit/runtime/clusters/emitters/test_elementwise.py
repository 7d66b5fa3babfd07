"""Element-wise operations in a model give what the numpy kernels give."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Graph
from tests.unit.runtime.clusters.emitted import emitted


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def test_add_of_a_weight_and_relu() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    bias = graph.placeholder("float32", "bias")
    total = graph.add("AddV2", x, bias)[0]
    graph.add("Relu", total, name="y")
    made = emitted(graph, {"x:0": values(3, 4)}, ["y:0"], sources={"bias:0": values(4)})
    assert made.kinds() == ["Add", "Relu"]
    made.check()
