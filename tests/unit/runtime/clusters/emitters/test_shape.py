"""Operations that change or fill a shape give what the numpy kernels give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.clusters.dimensions import symbol
from runtime.clusters.emit_cluster import RefusedError
from tests.conformance.case import Graph
from tests.unit.runtime.clusters.emitted import Emitted, emitted
from tests.unit.runtime.clusters.layouts import channels_first, emitted_with_layouts, numbers


def one(op: str, *operands: Any, dtype: object = "float32", **attrs: Any) -> Graph:
    graph = Graph()
    graph.add(op, graph.placeholder(dtype, "x"), *operands, name="y", **attrs)
    return graph


def checked(graph: Graph, shape: tuple[int, ...], **more: Any) -> Emitted:
    made = emitted(graph, {"x:0": numbers(*shape)}, ["y:0"], **more)
    made.check()
    return made


@pytest.mark.parametrize(
    ("target", "operand"),
    [
        ([-1, 24], [0, 24]),
        ([-1, 4, 2, 3], [0, 4, 2, 3]),
        ([-1, 12, 2], [0, 12, 2]),
        ([-1, 2], [-1, 2]),
        ([-1], [-1]),
    ],
)
def test_reshape_has_known_sizes_where_the_batch_stays(
    target: list[int], operand: list[int]
) -> None:
    made = checked(one("Reshape", np.int32(target)), (3, 4, 6))
    assert made.operations[0].inputs[1].array.tolist() == operand  # type: ignore[union-attr] # a constant
    for batch in (0, 1, 5):
        assert made.run(feeds={"x:0": numbers(batch, 4, 6)})[0].size == batch * 24


def test_reshape_to_a_part_of_the_batch_is_declined() -> None:
    with pytest.raises(RefusedError, match=r"24\*batch / 5"):
        checked(one("Reshape", np.int32([5, -1])), (5, 4, 6))


@pytest.mark.parametrize("target", [[2, 0, 3], [0], [-1, 0]])
def test_reshape_to_no_elements(target: list[int]) -> None:
    graph = one("Reshape", np.int32(target))
    if -1 in target:
        with pytest.raises(RefusedError):
            emitted(graph, {"x:0": np.zeros((0, 4), np.float32)}, ["y:0"], shapes=[(0, 4)])
    else:
        checked(graph, (0, 4), shapes=[(0, 4)])


def test_reshape_to_two_symbolic_sizes() -> None:
    graph = Graph()
    x, like = graph.placeholder("float32", "x"), graph.placeholder("float32", "like")
    graph.add("Reshape", x, graph.add("Shape", like)[0], name="y")
    b, t = symbol("b"), symbol("t")
    feeds = {"x:0": numbers(3, 2, 4), "like:0": numbers(2, 3, 4)}
    emitted(graph, feeds, ["y:0"], shapes=[(t, b, 4), (b, t, 4)]).check()


def test_reshape_of_a_weight_is_done_at_emission() -> None:
    graph = Graph()
    x, w = graph.placeholder("float32", "x"), graph.placeholder("float32", "w")
    column = graph.add("Reshape", w, np.int32([4, 1]))[0]
    graph.add("Mul", x, graph.add("Squeeze", column, squeeze_dims=(1,))[0], name="y")
    made = emitted(graph, {"x:0": numbers(3, 4)}, ["y:0"], sources={"w:0": numbers(2, 2)})
    assert made.kinds() == ["Mul"]
    made.check()


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_expand_dims(axis: int) -> None:
    checked(one("ExpandDims", np.int32(axis)), (3, 4))


@pytest.mark.parametrize(("axes", "is_static"), [((1,), False), ((-1, 1), False), ((), True)])
def test_squeeze(axes: tuple[int, ...], is_static: bool) -> None:
    shapes: Any = [(3, 1, 4, 1)] if is_static else None
    checked(one("Squeeze", squeeze_dims=axes), (3, 1, 4, 1), shapes=shapes)


@pytest.mark.parametrize("axes", [(), (0,), (2,)])
def test_squeeze_of_an_axis_that_may_not_be_1_is_declined(axes: tuple[int, ...]) -> None:
    with pytest.raises(RefusedError):
        emitted(one("Squeeze", squeeze_dims=axes), {"x:0": numbers(1, 1, 1)}, ["y:0"],
                shapes=[(symbol("batch"), 1, 4)])  # fmt: skip


@pytest.mark.parametrize("sizes", [[2, 3], [50, 60], [0, 3], []])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "float16"])
def test_fill(sizes: list[int], dtype: str) -> None:
    graph = Graph()
    x = graph.placeholder(dtype, "x")
    graph.add("Fill", np.array(sizes, np.int32), x, name="y")
    emitted(graph, {"x:0": np.array(1, dtype)}, ["y:0"]).check()


def test_fill_of_a_symbolic_shape() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    graph.add("Fill", graph.add("Shape", x)[0], np.float32(0.5), name="y")
    made = checked(graph, (3, 4))
    assert made.run(feeds={"x:0": numbers(0, 4)})[0].shape == (0, 4)


@pytest.mark.parametrize("op", ["ZerosLike", "OnesLike"])
def test_filled_like_a_tensor_that_is_channels_first(
    monkeypatch: pytest.MonkeyPatch, op: str
) -> None:
    graph = Graph()
    image = channels_first(graph, graph.placeholder("float32", "x"))
    graph.add(op, image, name="y")
    emitted_with_layouts(monkeypatch, graph, {"x:0": numbers(2, 3, 4, 5)}, ["y:0"]).check()


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=3), st.integers(0, 2))
def test_broadcast_to(axes: list[tuple[int, bool]], more: int) -> None:
    target = (*range(2, 2 + more), *(size for size, _ in axes))
    shape = tuple(1 if is_one else size for size, is_one in axes)
    checked(one("BroadcastTo", np.array(target, np.int32)), shape, shapes=[shape])


def test_broadcast_to_a_shape_that_may_not_fit_is_declined() -> None:
    with pytest.raises(RefusedError, match="batch and 3"):
        emitted(one("BroadcastTo", np.int32([3, 4])), {"x:0": numbers(3, 4)}, ["y:0"])
    with pytest.raises(RefusedError, match="can't be broadcast"):
        graph = one("BroadcastTo", np.int32([3, 4]))
        emitted(graph, {"x:0": numbers(3, 4)}, ["y:0"], shapes=[(2, 3, 4)])


@pytest.mark.parametrize("multiples", [[2, 3], [1, 1], [0, 2], [1, 4]])
def test_tile(multiples: list[int]) -> None:
    made = checked(one("Tile", np.array(multiples, np.int32)), (3, 4))
    assert made.run(feeds={"x:0": numbers(0, 4)})[0].shape == (0, 4 * multiples[1])


def test_tile_by_the_batch() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    batch, _ = graph.add("Unpack", graph.add("Shape", x)[0], num=2)
    multiples = graph.add("Pack", [batch, np.array(1, np.int32)])[0]
    graph.add("Tile", numbers(1, 4), multiples, name="y")
    made = checked(graph, (3, 2))
    assert made.run(feeds={"x:0": numbers(5, 2)})[0].shape == (5, 4)


def test_range_to_the_batch() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    size = graph.add("Size", x)[0]
    graph.add("Range", np.int32(0), size, np.int32(1), name="y")
    made = checked(graph, (3,))
    assert made.run(feeds={"x:0": numbers(5)})[0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("bounds", [(1, 9, 3), (9, 1, -3), (2, 2, 1)])
def test_range_of_known_bounds(bounds: tuple[int, int, int]) -> None:
    graph = Graph()
    x = graph.placeholder("int32", "x")
    numbers_in_range = graph.add("Range", *(np.int32(each) for each in bounds))[0]
    graph.add("AddV2", x, numbers_in_range, name="y")
    made = emitted(graph, {"x:0": np.array([[5]], np.int32)}, ["y:0"])
    made.check()
    assert made.kinds() == ["Add"]


def test_values_that_only_pass_add_no_operation() -> None:
    graph = Graph()
    value: Any = graph.placeholder("float32", "x")
    for op in ("Identity", "StopGradient", "PreventGradient", "Snapshot", "PlaceholderWithDefault"):
        more = {"shape": (-1, 4)} if op == "PlaceholderWithDefault" else {}
        value = graph.add(op, value, **more)[0]
    value = graph.add("EnsureShape", value, shape=(-1, 4))[0]
    graph.add("Relu", graph.add("IdentityN", [value])[0], name="y")
    assert checked(graph, (3, 4)).kinds() == ["Relu"]


def test_rank_size_and_shapes() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    graph.add("ShapeN", [x, x], out_type="int64", name="shapes")
    graph.add("Size", x, out_type="int64", name="size")
    graph.add("Rank", x, name="rank")
    names = ["shapes:0", "shapes:1", "size:0", "rank:0"]
    emitted(graph, {"x:0": numbers(3, 4, 6)}, names).check()
