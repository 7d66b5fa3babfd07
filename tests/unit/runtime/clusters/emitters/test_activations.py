"""Activations, biases and softmax in a model give what the numpy kernels give."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.case import Graph
from tests.unit.runtime.clusters.emitted import emitted
from tests.unit.runtime.clusters.layouts import channels_first, emitted_with_layouts, numbers


@pytest.mark.parametrize("alpha", [0.2, 1.5, -0.5, 0.0])
def test_leaky_relu(alpha: float) -> None:
    graph = Graph()
    graph.add("LeakyRelu", graph.placeholder("float32", "x"), alpha=alpha, name="y")
    x = np.array([[np.nan, np.inf, 0.0, -0.0, 2.5, -3.5, 1e-6]], np.float32)
    emitted(graph, {"x:0": x}, ["y:0"]).check()


@pytest.mark.parametrize(
    ("low", "high", "kinds"), [(-1, 1, ["Clip"]), (1, -1, ["Min", "Max"])], ids=["plain", "crossed"]
)
def test_clipping(low: float, high: float, kinds: list[str]) -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    graph.add("ClipByValue", x, np.float32(low), np.float32(high), name="y")
    made = emitted(graph, {"x:0": numbers(5, 6)}, ["y:0"])
    assert made.kinds() == kinds
    made.check()


def test_clipping_to_tensors() -> None:
    graph = Graph()
    x, low, high = (graph.placeholder("float32", name) for name in ("x", "low", "high"))
    graph.add("ClipByValue", x, low, high, name="y")
    feeds = {"x:0": numbers(5, 6), "low:0": -abs(numbers(5, 6)) / 2, "high:0": numbers(6, 5).T}
    feeds["high:0"] = np.ascontiguousarray(abs(feeds["high:0"].reshape(5, 6)))
    emitted(graph, feeds, ["y:0"]).check()


@pytest.mark.parametrize("shape", [(2, 5), (2, 5, 3), (2, 5, 3, 4), (2, 5, 3, 4, 2)])
@pytest.mark.parametrize("is_weight", [True, False])
def test_biases_of_channels_at_axis_1(shape: tuple[int, ...], is_weight: bool) -> None:
    graph = Graph()
    x, bias = graph.placeholder("float32", "x"), graph.placeholder("float32", "bias")
    graph.add("BiasAdd", x, bias, data_format="NCHW", name="y")
    more = {"bias:0": numbers(5)}
    feeds = {"x:0": numbers(*shape)}
    if is_weight:
        emitted(graph, feeds, ["y:0"], sources=more).check()
    else:
        emitted(graph, {**feeds, **more}, ["y:0"], shapes=[shape, (5,)]).check()


def test_a_bias_and_an_activation_stay_channels_first(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph()
    image = channels_first(graph, graph.placeholder("float32", "x"))
    biased = graph.add("BiasAdd", image, numbers(5))[0]
    graph.add("Relu6", biased, name="y")
    made = emitted_with_layouts(monkeypatch, graph, {"x:0": numbers(2, 3, 4, 5)}, ["y:0"])
    made.check()
    assert made.kinds() == ["Transpose", "Add", "Clip", "Transpose"]
    assert made.operations[1].inputs[1].array.shape == (5, 1, 1)  # type: ignore[union-attr] # a constant


@pytest.mark.parametrize(
    ("op", "dtype"),
    [("Softmax", np.float32), ("Softmax", np.float64), ("LogSoftmax", np.float32)],
)
def test_softmax(op: str, dtype: type) -> None:
    graph = Graph()
    graph.add(op, graph.placeholder(dtype, "x"), name="y")
    rows = [[1, 2, 3], [1000, 0, -1000], [np.inf, 1, 2], [-np.inf, 1, 2], [np.nan, 1, 2]]
    for x in (np.array(rows), np.zeros((0, 3)), np.zeros((2, 2, 1)), np.full((1, 3), -np.inf)):
        emitted(graph, {"x:0": x.astype(dtype)}, ["y:0"]).check()
