"""Joining, splitting and reordering in a model give what the numpy kernels give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.clusters.emit_cluster import RefusedError
from tests.conformance.case import Graph
from tests.unit.runtime.clusters.emitted import emitted
from tests.unit.runtime.clusters.layouts import channels_first, emitted_with_layouts, numbers

IMAGE = (2, 3, 4, 5)


@settings(max_examples=40)
@given(
    shape=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    sizes=st.lists(st.integers(0, 3), min_size=2, max_size=4),
    data=st.data(),
)
def test_concatenation(shape: list[int], sizes: list[int], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    graph = Graph()
    feeds = {}
    for index, size in enumerate(sizes):
        each = list(shape)
        each[axis] = size
        feeds[f"x{index}:0"] = numbers(*each)
    parts = [graph.placeholder("float32", name[:-2]) for name in feeds]
    graph.add("ConcatV2", parts, np.array(axis, np.int32), name="y")
    emitted(graph, feeds, ["y:0"], shapes=[each.shape for each in feeds.values()]).check()


@pytest.mark.parametrize("axis", [0, 1, 3, -1])
def test_concatenation_of_channels_first(monkeypatch: pytest.MonkeyPatch, axis: int) -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    image = channels_first(graph, x)
    parts = [image, graph.add("Relu", image)[0], numbers(*IMAGE)]
    graph.add("ConcatV2", parts, np.array(axis, np.int32), name="y")
    feeds = {"x:0": numbers(*IMAGE)}
    made = emitted_with_layouts(monkeypatch, graph, feeds, ["y:0"], shapes=[IMAGE])
    made.check()
    assert made.kinds() == ["Transpose", "Relu", "Concat", "Transpose"]


def test_concatenation_along_the_batch() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    doubled = graph.add("ConcatV2", [x, x], np.int32(0))[0]
    graph.add("Reshape", doubled, np.int32([-1, 2]), name="y")
    made = emitted(graph, {"x:0": numbers(3, 4)}, ["y:0"])
    made.check()
    assert made.run(feeds={"x:0": numbers(5, 4)})[0].shape == (20, 2)


def test_concatenation_of_a_batch_and_one_row_is_declined() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    graph.add("ConcatV2", [x, numbers(1, 4)], np.int32(0), name="y")
    with pytest.raises(RefusedError, match="batch"):
        emitted(graph, {"x:0": numbers(3, 4)}, ["y:0"])


def test_concatenation_of_weights_is_done_at_emission() -> None:
    graph = Graph()
    x, a, b = (graph.placeholder("float32", name) for name in ("x", "a", "b"))
    graph.add("Add", x, graph.add("Concat", np.int32(0), [a, b])[0], name="y")
    sources = {"a:0": numbers(2), "b:0": numbers(3)}
    made = emitted(graph, {"x:0": numbers(4, 5)}, ["y:0"], sources=sources)
    made.check()
    assert made.kinds() == ["Add"]


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_pack_and_unpack(axis: int) -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    packed = graph.add("Pack", [x, graph.add("Neg", x)[0]], axis=axis)[0]
    parts = graph.add("Unpack", packed, num=2, axis=axis)
    graph.add("Sub", *parts, name="y")
    emitted(graph, {"x:0": numbers(3, 4)}, ["y:0"]).check()


@pytest.mark.parametrize(("op", "axis"), [("Split", 1), ("Split", -1), ("SplitV", 1)])
@pytest.mark.parametrize("is_first", [True, False])
def test_split(monkeypatch: pytest.MonkeyPatch, op: str, axis: int, is_first: bool) -> None:
    graph = Graph()
    x: Any = graph.placeholder("float32", "x")
    image = channels_first(graph, x) if is_first else x
    if op == "Split":
        parts = graph.add(op, np.int32(axis), image, num_split=2)
    else:
        parts = graph.add(op, image, np.int32([1, -1]), np.int32(axis), num_split=2)
    names = [graph.add("Relu", part, name=f"y{i}")[0][0] for i, part in enumerate(parts)]
    emitted_with_layouts(monkeypatch, graph, {"x:0": numbers(2, 4, 4, 6)}, names).check()


def test_split_of_the_batch_is_declined() -> None:
    graph = Graph()
    graph.add("Split", np.int32(0), graph.placeholder("float32", "x"), num_split=2, name="y")
    with pytest.raises(RefusedError, match="batch is known at a run only"):
        emitted(graph, {"x:0": numbers(4, 4)}, ["y:0", "y:1"])


@settings(max_examples=30)
@given(st.permutations(range(4)), st.booleans())
def test_transpose(order: list[int], is_negative: bool) -> None:
    graph = Graph()
    perm = np.array(order, np.int32) - 4 * is_negative
    graph.add("Transpose", graph.placeholder("float32", "x"), perm, name="y")
    made = emitted(graph, {"x:0": numbers(*IMAGE)}, ["y:0"])
    made.check()
    assert made.kinds() == ([] if order == [0, 1, 2, 3] else ["Transpose"])


@pytest.mark.parametrize("lower", [-1, 0, 1, 3])
@pytest.mark.parametrize("upper", [-1, 0, 2, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_bands_of_matrices(lower: int, upper: int, dtype: type) -> None:
    graph = Graph()
    x = graph.placeholder(dtype, "x")
    graph.add("MatrixBandPart", x, np.int64(lower), np.int64(upper), name="y")
    matrices = np.ones((2, 3, 4), dtype)
    if dtype is np.float32:
        matrices[:, [0, 2], [3, 0]] = np.nan
    emitted(graph, {"x:0": matrices}, ["y:0"]).check()
