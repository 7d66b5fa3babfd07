"""Clusters that are said to compute each row from the same row do; others are not said to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from runtime.clusters.rows import row_inputs
from runtime.clusters.running.row_slices import run_in_slices
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph
from tests.unit.runtime.clusters.emitted import assert_close, emitted
from tests.unit.runtime.clusters.recorded import model_of, recorded_cases

pytest.importorskip("onnxruntime")

Output = tuple[str, DataType]  # of a node

LEAST_CASES = 300  # of the recorded ones that have rows; a change that loses many shows
X = np.arange(24, dtype=np.float32).reshape(4, 6) / 24


def test_recorded_cases_in_slices_are_as_a_whole() -> None:
    tried = 0
    for recorded in recorded_cases():
        fed = model_of(recorded, is_batch_symbolic=True)
        if fed is None or fed.rows is None or any(array.size == 0 for array in fed.arrays):
            continue
        try:
            whole = fed.run()
        except Exception:  # of any type; numpy kernels would run the cluster
            continue
        batch = len(fed.arrays[fed.rows.index(True)])
        for size in {1, max(1, batch - 1)}:
            sliced = run_in_slices(fed.rows, fed.arrays, size, 2, fed.model.run)
            for got, want in zip(sliced, whole, strict=True):
                try:
                    assert_close(got, want)
                except AssertionError as error:
                    raise AssertionError(
                        f"{recorded.family}/{recorded.case.name}: {error}"
                    ) from error
        tried += batch > 1
    assert tried >= LEAST_CASES


def rows_of(graph: Graph, result: Output, *feeds: np.ndarray) -> tuple[bool, ...] | None:
    names = ["x", "y"][: len(feeds)]
    graph.add("Identity", result, name="z")
    return row_inputs(emitted(graph, dict(zip(names, feeds, strict=True)), ["z"]).cluster)


def size_of_batch(graph: Graph, x: Output) -> Output:
    shape = graph.add("Shape", x)[0]
    (size,) = graph.add(
        "StridedSlice", shape, np.int32([0]), np.int32([1]), np.int32([1]), shrink_axis_mask=1
    )
    return size


def test_what_reads_its_own_row_has_rows() -> None:
    graph = Graph()
    x, y = graph.placeholder("float32", "x"), graph.placeholder("float32", "y")
    product = graph.add("MatMul", x, np.ones((6, 6), np.float32))[0]
    flat = graph.add("Reshape", product, np.int32([-1]))[0]
    back = graph.add("Reshape", flat, np.int32([-1, 2, 3]))[0]
    total = graph.add("Sum", back, np.int32([2]))[0]
    joined = graph.add("ConcatV2", [graph.add("Softmax", total)[0], y], np.int32(1))[0]
    assert rows_of(graph, joined, X, X) == (True, True)


def test_an_operand_without_the_batch_is_given_to_each_slice() -> None:
    graph = Graph()
    x, y = graph.placeholder("float32", "x"), graph.placeholder("float32", "y")
    assert rows_of(graph, graph.add("AddV2", x, y)[0], X, np.array(2, np.float32)) == (True, False)


def largest_of_all_rows(graph: Graph, x: Output) -> Output:
    return graph.add("Max", x, np.int32([0]), keep_dims=True)[0]


def minus_the_largest_of_all_rows(graph: Graph, x: Output) -> Output:
    return graph.add("Sub", x, graph.add("Max", x, np.int32([0]), keep_dims=True)[0])[0]


def product_with_itself(graph: Graph, x: Output) -> Output:
    return graph.add("MatMul", graph.add("MatMul", x, x, transpose_b=True)[0], x)[0]


def reversed_rows(graph: Graph, x: Output) -> Output:
    return graph.add("ReverseV2", x, np.int32([0]))[0]


def sums_so_far(graph: Graph, x: Output) -> Output:
    return graph.add("Cumsum", x, np.int32(0))[0]


def twice_all_rows(graph: Graph, x: Output) -> Output:
    return graph.add("ConcatV2", [x, x], np.int32(0))[0]


def columns_first(graph: Graph, x: Output) -> Output:
    return graph.add("Transpose", x, np.int32([1, 0]))[0]


def divided_by_the_number_of_rows(graph: Graph, x: Output) -> Output:
    count = graph.add("Cast", size_of_batch(graph, x), SrcT="int32", DstT="float32")[0]
    return graph.add("RealDiv", x, count)[0]


def filled_with_the_number_of_rows(graph: Graph, x: Output) -> Output:
    size = size_of_batch(graph, x)
    shape = graph.add("Pack", [size, np.int32(3)])[0]
    return graph.add("Fill", shape, graph.add("Cast", size, SrcT="int32", DstT="float32")[0])[0]


def numbers_of_rows(graph: Graph, x: Output) -> Output:
    return graph.add("Range", np.int32(0), size_of_batch(graph, x), np.int32(1))[0]


def the_first_row_for_all(graph: Graph, x: Output) -> Output:
    return graph.add("Mul", x, graph.add("GatherV2", x, np.int32([0]), np.int32(0))[0])[0]


@pytest.mark.parametrize(
    "function",
    [
        largest_of_all_rows, minus_the_largest_of_all_rows, product_with_itself, reversed_rows,
        sums_so_far, twice_all_rows, columns_first, divided_by_the_number_of_rows,
        filled_with_the_number_of_rows, numbers_of_rows, the_first_row_for_all,
    ],
)  # fmt: skip
def test_what_reads_other_rows_has_none(function: Callable[[Graph, Output], Output]) -> None:
    graph = Graph()
    assert rows_of(graph, function(graph, graph.placeholder("float32", "x")), X) is None
