"""Shape arithmetic of graphs is done at emission, on sizes that may be symbolic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runtime.clusters.dimensions import InexpressibleError, SymbolicSize, product, symbol
from runtime.clusters.emitters.size_arithmetic import total
from tests.conformance.case import Graph
from tests.unit.runtime.clusters.emitted import Emitted, emitted
from tests.unit.runtime.clusters.layouts import numbers

BATCH = symbol("batch")


def test_a_sum_of_multiples_of_one_symbol() -> None:
    assert total([]) == 0
    assert total([2, 3, 0]) == 5
    assert total([BATCH, 0, BATCH]) == SymbolicSize(2, ("batch",))
    assert total([BATCH, product([-1, BATCH])]) == 0


@pytest.mark.parametrize("sizes", [[BATCH, 1], [BATCH, symbol("time")]])
def test_other_sums_are_not_expressible(sizes: list[Any]) -> None:
    with pytest.raises(InexpressibleError):
        total(sizes)


def graph_with_shape() -> tuple[Graph, Any, Any]:
    """Return a graph, its input `[batch, 4, 6]` and the shape of that."""
    graph = Graph()
    x = graph.placeholder("float32", "x")
    return graph, x, graph.add("Shape", x)[0]


def emit(graph: Graph) -> Emitted:
    made = emitted(graph, {"x:0": numbers(3, 4, 6)}, ["y:0"])
    made.check()
    for batch in (0, 1, 5):
        assert made.run(feeds={"x:0": numbers(batch, 4, 6)})[0].size in (batch * 24, batch)
    return made


def pick(graph: Graph, vector: Any, *positions: int) -> Any:
    return graph.add("GatherV2", vector, np.array(positions, np.int32), np.array(0))[0]


def test_the_shapes_of_a_dense_layer_of_rank_3_add_no_operation() -> None:
    # Keras: free and contracted axes, their products, the shape of the matrix and of the result.
    graph, x, shape = graph_with_shape()
    free, last = pick(graph, shape, 0, 1), pick(graph, shape, 2)
    rows = graph.add("Prod", free, np.array([0], np.int32))[0]
    columns = graph.add("Prod", last, np.array([0], np.int32))[0]
    matrix = graph.add("Reshape", x, graph.add("Pack", [rows, columns])[0])[0]
    result = graph.add("ConcatV2", [free, np.array([6], np.int32)], np.array(0, np.int32))[0]
    graph.add("Reshape", graph.add("Relu", matrix)[0], result, name="y")
    assert emit(graph).kinds() == ["Reshape", "Relu", "Reshape"]


def test_slices_of_a_shape_add_no_operation() -> None:
    graph, x, shape = graph_with_shape()
    one = [np.array([each], np.int32) for each in (0, 1, 1)]
    batch = graph.add("StridedSlice", shape, *one, shrink_axis_mask=1)[0]
    rest = graph.add("Slice", shape, np.array([1], np.int32), np.array([-1], np.int32))[0]
    count = graph.add("Prod", rest, np.array([0], np.int32), keep_dims=False)[0]
    graph.add("Reshape", x, graph.add("Pack", [batch, count])[0], name="y")
    assert emit(graph).kinds() == ["Reshape"]


def test_arithmetic_on_sizes_adds_no_operation() -> None:
    graph, x, shape = graph_with_shape()
    batch, rows, columns = graph.add("Unpack", shape, num=3)
    doubled = graph.add("AddV2", batch, batch)[0]
    product_of_all = graph.add("Mul", graph.add("Mul", doubled, rows)[0], columns)[0]
    half = graph.add("FloorDiv", product_of_all, np.array(2, np.int32))[0]
    minus = graph.add("Sub", rows, graph.add("Neg", columns)[0])[0]  # 10
    larger = graph.add("Maximum", minus, np.array(24, np.int32))[0]
    smaller = graph.add("Minimum", larger, np.array(99, np.int32))[0]
    count = graph.add("FloorDiv", half, smaller)[0]
    wide = graph.add("Cast", count, DstT="int64")[0]
    target = graph.add("Pack", [wide, np.array(24, np.int64)])[0]
    graph.add("Reshape", x, target, name="y")
    assert emit(graph).kinds() == ["Reshape"]


def test_choices_by_known_sizes_add_no_operation() -> None:
    graph, x, shape = graph_with_shape()
    _, rows, columns = graph.add("Unpack", shape, num=3)
    is_high = graph.add("Greater", rows, columns)[0]
    is_wide = graph.add("LogicalNot", is_high)[0]
    chosen = graph.add("SelectV2", is_wide, np.array([-1, 6], np.int32), np.int32([-1, 4]))[0]
    matrix = graph.add("Reshape", x, chosen)[0]
    graph.add("Reshape", matrix, shape, name="y")
    assert emit(graph).kinds() == ["Reshape", "Reshape"]


def test_sizes_that_are_a_result_are_computed_from_the_input() -> None:
    graph, x, shape = graph_with_shape()
    graph.add("Relu", x)
    graph.add("Prod", shape, np.array([0], np.int32), name="y")
    made = emitted(graph, {"x:0": numbers(3, 4, 6)}, ["y:0"])
    made.check()
    assert made.run(feeds={"x:0": numbers(7, 4, 6)})[0] == 7 * 24


def test_a_size_that_is_not_expressible_is_computed_at_the_run() -> None:
    graph, _, shape = graph_with_shape()
    graph.add("AddV2", pick(graph, shape, 0), np.array([1], np.int32), name="y")
    made = emitted(graph, {"x:0": numbers(3, 4, 6)}, ["y:0"])
    assert made.run(feeds={"x:0": numbers(7, 4, 6)})[0].tolist() == [8]


def test_sizes_beyond_their_type_wrap_as_in_tensorflow() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    size = graph.add("Size", x)[0]
    graph.add("Mul", size, np.array(1 << 30, np.int32), name="y")
    emitted(graph, {"x:0": numbers(4)}, ["y:0"], shapes=[(4,)]).check()
