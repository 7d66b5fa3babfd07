"""Convolutions in a model give what the numpy kernels give, without moving axes between them."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.clusters.dimensions import Shape, symbol
from runtime.clusters.emit_cluster import RefusedError
from tests.conformance.case import Graph
from tests.unit.runtime.clusters.emitted import Emitted, assert_close, emitted
from tests.unit.runtime.clusters.recorded_ops import check_recorded

UNIT = [1, 1, 1, 1]


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("op", "at_least"),
    [
        ("Conv2D", 20),
        ("Conv2DBackpropInput", 10),
        ("Conv3D", 6),
        ("Conv3DBackpropInputV2", 4),
        ("DepthwiseConv2dNative", 9),
    ],
)
def test_recorded_cases(op: str, at_least: int) -> None:
    assert len(check_recorded(op, sources=[1])) >= at_least


def network() -> Emitted:
    """Two convolutions, a depthwise one and an addition of an earlier result."""
    graph = Graph()
    x = graph.placeholder("float32", "x")
    f, g, h = (graph.placeholder("float32", name) for name in "fgh")
    first = graph.add("Conv2D", x, f, strides=[1, 2, 2, 1], padding="SAME")[0]
    active = graph.add("Relu", first)[0]
    deep = graph.add("DepthwiseConv2dNative", active, g, strides=UNIT, padding="SAME")[0]
    last = graph.add("Conv2D", deep, h, strides=UNIT, padding="VALID")[0]
    graph.add("AddV2", last, active, name="y")
    sources = {"f:0": values(3, 3, 3, 8), "g:0": values(3, 3, 8, 1), "h:0": values(1, 1, 8, 8)}
    return emitted(graph, {"x:0": values(2, 8, 8, 3)}, ["y:0"], sources=sources)


def test_a_chain_keeps_channels_first() -> None:
    made = network()
    kinds = ["Transpose", "Conv", "Relu", "Conv", "Conv", "Add", "Transpose"]
    assert made.kinds() == kinds
    made.check()


def test_one_model_takes_all_batch_sizes() -> None:
    made = network()
    whole = made.expected[0]
    assert_close(made.run(feeds={"x:0": made.feeds["x:0"][:1]})[0], whole[:1])
    assert made.run(feeds={"x:0": values(0, 8, 8, 3)})[0].shape == (0, *whole.shape[1:])


def convolved(shape: Shape, **attrs: object) -> Emitted:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    f = graph.placeholder("float32", "f")
    graph.add("Conv2D", x, f, name="y", **attrs)
    feeds = {"x:0": values(2, 6, 7, 3)}
    return emitted(graph, feeds, ["y:0"], sources={"f:0": values(3, 3, 3, 4)}, shapes=[shape])


def test_unknown_rows_and_columns_stay_if_windows_keep_them() -> None:
    image = (symbol("n"), symbol("h"), symbol("w"), 3)
    made = convolved(image, strides=UNIT, padding="SAME", dilations=[1, 2, 2, 1])
    assert made.cluster.outputs[0].shape == (*image[:3], 4)
    made.check()
    with pytest.raises(RefusedError, match="stride 2 over h"):
        convolved(image, strides=[1, 2, 2, 1], padding="SAME")
    with pytest.raises(RefusedError, match="stride 1 over h"):
        convolved(image, strides=UNIT, padding="VALID")


def test_channels_first_in_the_graph_needs_no_transpose() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    f = graph.placeholder("float32", "f")
    graph.add("Conv2D", x, f, strides=UNIT, padding="VALID", data_format="NCHW", name="y")
    feeds = {"x:0": values(2, 3, 6, 7)}
    made = emitted(graph, feeds, ["y:0"], sources={"f:0": values(3, 3, 3, 4)})
    assert made.kinds() == ["Conv"]
    made.check()


def test_a_filter_that_only_a_run_knows_is_refused() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    f = graph.placeholder("float32", "f")
    graph.add("Conv2D", x, f, strides=UNIT, padding="SAME", name="y")
    feeds = {"x:0": values(1, 4, 4, 3), "f:0": values(3, 3, 3, 4)}
    with pytest.raises(RefusedError, match="derived from variables"):
        emitted(graph, feeds, ["y:0"], shapes=[each.shape for each in feeds.values()])


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("size", [8, 9])
def test_transposed_convolution_of_a_symbolic_batch(padding: str, stride: int, size: int) -> None:
    graph = Graph()
    image, f = graph.placeholder("float32", "image"), graph.placeholder("float32", "f")
    wanted = np.array([size, size], np.int32)
    strides = [1, stride, stride, 1]
    graph.add("Conv2DBackpropInput", wanted, f, image, strides=strides, padding=padding, name="y")
    outputs = -(-size // stride) if padding == "SAME" else (size - 3) // stride + 1
    feeds = {"image:0": values(2, outputs, outputs, 5)}
    made = emitted(graph, feeds, ["y:0"], sources={"f:0": values(3, 3, 4, 5)})
    assert made.cluster.outputs[0].shape == (symbol("batch"), size, size, 4)
    made.check()
