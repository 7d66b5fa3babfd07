"""Slices, gathering and one-hot vectors give what the numpy kernels give, or the engine fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.clusters.emit_cluster import RefusedError
from runtime.foundation.errors import OpError
from runtime.kernels.array.slicing import strided_slice
from tests.conformance.case import Graph
from tests.unit.runtime.clusters.emitted import emitted
from tests.unit.runtime.clusters.layouts import channels_first, emitted_with_layouts, numbers

SHAPE = (3, 4, 2, 5)
MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def strided(begin: Any, end: Any, strides: Any, **masks: int) -> Graph:
    graph = Graph()
    operands = (np.array(each, np.int32) for each in (begin, end, strides))
    graph.add("StridedSlice", graph.placeholder("float32", "x"), *operands, name="y", **masks)
    return graph


@settings(max_examples=200)
@given(
    entries=st.lists(
        st.tuples(st.integers(-7, 7), st.integers(-7, 7), st.sampled_from([-2, -1, 1, 1, 2])),
        min_size=1,
        max_size=5,
    ),
    masks=st.tuples(*[st.integers(0, 31)] * 2, st.sampled_from([0, 0, 1, 2, 4]),
                    *[st.sampled_from([0, 0, 1, 2, 8, 3])] * 2),
    is_symbolic=st.booleans(),
)  # fmt: skip
def test_slices_with_all_masks(
    entries: list[tuple[int, int, int]], masks: tuple[int, ...], is_symbolic: bool
) -> None:
    operands = [np.array(each, np.int32) for each in zip(*entries, strict=True)]
    named = dict(zip(MASKS, masks, strict=True))
    graph, x = strided(*operands, **named), numbers(*SHAPE)
    try:
        strided_slice(x, *operands, **named)
    except OpError:
        with pytest.raises(RefusedError):
            emitted_without_answer(graph, x)
        return
    try:
        made = emitted(graph, {"x:0": x}, ["y:0"], shapes=None if is_symbolic else [SHAPE])
    except RefusedError:
        assert is_symbolic, "all sizes are known"
        return
    made.check()


def emitted_without_answer(graph: Graph, x: np.ndarray) -> None:
    """Emit the graph alone; raise RefusedError if it can't be written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("runtime.executors.step_plan.StepPlan.run", lambda *_: [])
        emitted(graph, {"x:0": x}, ["y:0"], shapes=[x.shape])


@pytest.mark.parametrize("position", [0, 2, -1, -3])
def test_one_element_of_the_batch(position: int) -> None:
    made = emitted(
        strided([position], [position + 1], [1], shrink_axis_mask=1),
        {"x:0": numbers(3, 4)},
        ["y:0"],
    )
    made.check()
    np.testing.assert_array_equal(
        made.run(feeds={"x:0": numbers(5, 4)})[0], numbers(5, 4)[position]
    )
    with pytest.raises(Exception, match="out of data bounds"):
        made.run(feeds={"x:0": numbers(0, 4)})


@pytest.mark.parametrize(
    "end", [[2147483647, 2], [0, 2]], ids=["to the largest integer", "to the mask's end"]
)
def test_the_whole_batch(end: list[int]) -> None:
    made = emitted(strided([0, 1], end, [1, 1], end_mask=int(end[0] == 0)),
                   {"x:0": numbers(3, 4)}, ["y:0"])  # fmt: skip
    made.check()
    assert made.run(feeds={"x:0": numbers(6, 4)})[0].shape == (6, 1)


def test_a_slice_to_the_batch() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    batch = graph.add("Unpack", graph.add("Shape", x)[0], num=2)[0]
    end = graph.add("Pack", [batch, np.int32(2)])[0]
    graph.add("StridedSlice", x, np.int32([0, 0]), end, np.int32([1, 1]), name="y")
    made = emitted(graph, {"x:0": numbers(3, 4)}, ["y:0"])
    made.check()
    assert made.run(feeds={"x:0": numbers(6, 4)})[0].shape == (6, 2)


def test_slices_of_channels_first(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph()
    image = channels_first(graph, graph.placeholder("float32", "x"))
    operands = (np.int32(each) for each in ([0, 1, 0, 0], [0, -1, 3, 4], [1, 1, 2, 1]))
    part = graph.add("StridedSlice", image, *operands, begin_mask=1, end_mask=1)[0]
    graph.add("Relu", part, name="y")
    made = emitted_with_layouts(monkeypatch, graph, {"x:0": numbers(2, 4, 4, 5)}, ["y:0"])
    made.check()
    assert made.kinds() == ["Transpose", "Slice", "Relu", "Transpose"]


@pytest.mark.parametrize(
    ("begin", "size"), [([0, 1], [-1, 2]), ([0, 4], [3, -1]), ([1, 0], [0, 4])]
)
def test_slice(begin: list[int], size: list[int]) -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    graph.add("Slice", x, np.int32(begin), np.int32(size), name="y")
    emitted(graph, {"x:0": numbers(3, 4)}, ["y:0"], shapes=[(3, 4)]).check()


@pytest.mark.parametrize("axes", [[], [0], [-1], [1, 2], [0, 1, 2]])
def test_reverse(axes: list[int]) -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    graph.add("ReverseV2", x, np.array(axes, np.int32), name="y")
    for shape in ((3, 4, 2), (0, 4, 2), (1, 1, 1)):
        emitted(graph, {"x:0": numbers(*shape)}, ["y:0"]).check()


def gather(axis: int, dtype: str, **attrs: Any) -> Graph:
    graph = Graph()
    x, indices = graph.placeholder("float32", "x"), graph.placeholder(dtype, "indices")
    graph.add("GatherV2", x, indices, np.int32(axis), name="y", **attrs)
    return graph


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("indices", [[2, 0, 1], [[1], [1]], 2, np.zeros((0, 2))])
def test_gather(axis: int, dtype: str, indices: Any) -> None:
    array = np.array(indices, dtype)
    feeds = {"x:0": numbers(3, 4, 5), "indices:0": array}
    emitted(gather(axis, dtype), feeds, ["y:0"], shapes=[(3, 4, 5), array.shape]).check()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("index", [-1, -3, 3, -(1 << 31), (1 << 31) - 1])
@pytest.mark.parametrize("op", ["GatherV2", "GatherNd"])
def test_the_engine_fails_for_an_index_out_of_range(op: str, dtype: str, index: int) -> None:
    graph = gather(0, dtype)
    if op == "GatherNd":
        graph = Graph()
        x, indices = graph.placeholder("float32", "x"), graph.placeholder(dtype, "indices")
        graph.add("GatherNd", x, indices, name="y")
    feeds = {"x:0": numbers(3, 4), "indices:0": np.array([[1]], dtype)}
    made = emitted(graph, feeds, ["y:0"])
    made.check()
    with pytest.raises(Exception, match=r"out of data bounds|invalid index"):
        made.run(feeds={**feeds, "indices:0": np.array([[0], [index]], dtype)})


@pytest.mark.parametrize("index", [-1, 3])
@pytest.mark.parametrize("op", ["GatherV2", "GatherNd", "Gather"])
def test_a_constant_index_out_of_range_is_declined(op: str, index: int) -> None:
    graph = Graph()
    more = (np.int32(0),) if op == "GatherV2" else ()
    x = graph.placeholder("float32", "x")
    graph.add(op, x, np.int32([[0], [index]]), *more, name="y")
    with pytest.raises((RefusedError, OpError)):
        emitted(graph, {"x:0": numbers(3, 4)}, ["y:0"], shapes=[(3, 4)])
    with pytest.raises(RefusedError, match="an index beyond"):
        emitted_without_answer(graph, numbers(3, 4))


def test_rows_of_a_weight_by_constant_indices_are_taken_at_emission() -> None:
    graph = Graph()
    x, w = graph.placeholder("float32", "x"), graph.placeholder("float32", "w")
    graph.add("Add", x, graph.add("Gather", w, np.int32([2, 0]))[0], name="y")
    made = emitted(graph, {"x:0": numbers(5, 2, 4)}, ["y:0"], sources={"w:0": numbers(3, 4)})
    made.check()
    assert made.kinds() == ["Add"]


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "int8"])
@pytest.mark.parametrize("values", [(1.0, 0.0), (np.nan, -np.inf), (True, False), (7, -1)])
def test_one_hot_vectors(axis: int, dtype: str, values: tuple[Any, Any]) -> None:
    graph = Graph()
    indices = graph.placeholder(dtype, "x")
    on, off = (np.array(each) if isinstance(each, bool) else each for each in values)
    graph.add("OneHot", indices, np.int32(3), on, off, axis=axis, name="y")
    x = np.array([[0, 2, 3, 100], [1, -1, -3, -128]] if dtype[0] == "i" else [[0, 1, 3, 255]])
    emitted(graph, {"x:0": x.astype(dtype)}, ["y:0"]).check()


def test_an_end_behind_the_last_element_leaves_nothing_of_a_reversed_batch() -> None:
    # The end is then one that no step backwards reaches, not "up to the end".
    graph = strided([-1, 0], [2147483647, 4], [-1, 1])
    with pytest.raises(RefusedError, match="a part of an axis"):
        emitted(graph, {"x:0": numbers(3, 4)}, ["y:0"])
