"""Reductions in a model give what the numpy kernels give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.clusters.dimensions import symbol
from runtime.clusters.emit_cluster import RefusedError
from runtime.clusters.running.engine import UncheckedRunError
from tests.conformance.case import Graph
from tests.unit.runtime.clusters.emitted import emitted
from tests.unit.runtime.clusters.layouts import channels_first, emitted_with_layouts, numbers

NAN = np.nan


def reduction(op: str, axes: object, dtype: object = "float32", **attrs: object) -> Graph:
    graph = Graph()
    graph.add(op, graph.placeholder(dtype, "x"), np.array(axes, np.int32), name="y", **attrs)
    return graph


@settings(max_examples=60)
@given(
    op=st.sampled_from(["Sum", "Mean", "Max", "Min", "Prod"]),
    shape=st.lists(st.integers(1, 3), min_size=0, max_size=4),
    data=st.data(),
    keep_dims=st.booleans(),
)
def test_axes(op: str, shape: list[int], data: st.DataObject, keep_dims: bool) -> None:
    rank = len(shape)
    axes = data.draw(st.lists(st.integers(0, rank - 1), unique=True)) if rank else []
    signed = [axis - rank if data.draw(st.booleans()) else axis for axis in axes]
    graph = reduction(op, signed, keep_dims=keep_dims)
    emitted(graph, {"x:0": numbers(*shape)}, ["y:0"], shapes=[tuple(shape)]).check()


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize("axes", [[0], [1], [0, 1]])
def test_nan_and_infinities(op: str, axes: list[int]) -> None:
    rows = [[NAN, 1, 2, 3], [1, NAN, -np.inf, 0], [1, 2, np.inf, NAN], [np.inf, -np.inf, 1, 2]]
    x = np.array(rows * 9, np.float32)
    for each in (x, x[:3], x[1:2], x[:, :1], x[:, 1:3]):
        emitted(reduction(op, axes), {"x:0": each}, ["y:0"], shapes=[each.shape]).check()


@pytest.mark.parametrize("op", ["Prod", "Sum"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_reductions_of_integers_wrap_around_on_numpy_kernels(op: str, dtype: type) -> None:
    x = np.full((2, 3), 1 << 30, dtype)
    with pytest.raises(RefusedError, match="does not wrap around"):
        emitted(reduction(op, [1], x.dtype), {"x:0": x}, ["y:0"], shapes=[x.shape])


def test_products_that_are_not_finite_are_left_to_numpy() -> None:
    """In another order of factors 1e30 · 1e30 · 0 is 0 or NaN."""
    x = np.array([[0, 1e30, 1e30]], np.float32)
    made = emitted(reduction("Prod", [1]), {"x:0": x}, ["y:0"], shapes=[x.shape])
    made.check()
    with pytest.raises(UncheckedRunError):
        made.run(feeds={"x:0": x[:, ::-1] + np.float32([[0, 0, np.nan]])})


@pytest.mark.parametrize("op", ["Sum", "Mean", "Prod"])
def test_no_elements(op: str) -> None:
    made = emitted(reduction(op, [0]), {"x:0": numbers(3)}, ["y:0"])
    with np.errstate(all="ignore"):
        want = {"Sum": 0.0, "Mean": NAN, "Prod": 1.0}[op]
        np.testing.assert_equal(made.run(feeds={"x:0": numbers(0)})[0], np.float32(want))


@pytest.mark.parametrize("op", ["Max", "Min", "Mean", "All", "Any", "ArgMax"])
def test_reductions_of_a_fixed_size_of_0_are_declined(op: str) -> None:
    axes = 1 if op == "ArgMax" else [1]
    dtype = "bool" if op in ("All", "Any") else "float32"
    graph = reduction(op, axes, dtype)
    x = np.zeros((2, 1), dtype)
    with pytest.raises(RefusedError):
        emitted(graph, {"x:0": x}, ["y:0"], shapes=[(2, 0)])


@pytest.mark.parametrize("op", ["Max", "Min", "Mean", "Sum"])
def test_an_empty_batch(op: str) -> None:
    made = emitted(reduction(op, [1]), {"x:0": numbers(3, 4)}, ["y:0"])
    assert made.run(feeds={"x:0": numbers(0, 4)})[0].shape == (0,)


@pytest.mark.parametrize("op", ["Sum", "Mean"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((1, 6000), [1]),
        ((6000, 2), [0]),
        ((2, 100, 100, 3), [1, 2]),
        ((2, 1200, 3), [1]),
        ((6000, 3), [0, 1]),
        ((2, 1100, 1100), [1, 2]),
    ],
)
def test_long_sums_keep_their_digits(op: str, shape: tuple[int, ...], axes: list[int]) -> None:
    x = np.full(shape, 0.1, np.float32)
    exact = np.sum(x, tuple(axes), np.float64)
    if op == "Mean":
        exact /= x.size / exact.size
    for keep_dims in (True, False):
        graph = reduction(op, axes, keep_dims=keep_dims)
        made = emitted(graph, {"x:0": x}, ["y:0"], shapes=[shape])
        (got,) = made.run()
        assert got.shape == made.expected[0].shape
        np.testing.assert_allclose(got.ravel(), exact.ravel(), rtol=1e-5)


def test_a_long_sum_without_stages_is_declined() -> None:
    graph = reduction("Sum", [0])
    with pytest.raises(RefusedError, match="a sum of 4999 elements"):
        emitted(graph, {"x:0": np.ones((4999, 2), np.float32)}, ["y:0"], shapes=[(4999, 2)])
    with pytest.raises(RefusedError, match="a sum that may be long"):
        emitted(graph, {"x:0": numbers(3, 2)}, ["y:0"], shapes=[(symbol("batch"), 2)])


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max"])
@pytest.mark.parametrize("keep_dims", [True, False])
@pytest.mark.parametrize("axes", [[0], [1], [3], [1, 2], [2, 3], [1, 2, 3], [0, 3], [0, 1, 2, 3]])
def test_reductions_of_channels_first(
    monkeypatch: pytest.MonkeyPatch, op: str, axes: list[int], keep_dims: bool
) -> None:
    graph = Graph()
    image = channels_first(graph, graph.placeholder("float32", "x"))
    operand = np.array(axes, np.int32)
    graph.add(op, graph.add("Relu", image)[0], operand, keep_dims=keep_dims, name="y")
    feeds = {"x:0": numbers(2, 3, 4, 5)}
    emitted_with_layouts(monkeypatch, graph, feeds, ["y:0"], shapes=[(2, 3, 4, 5)]).check()


@pytest.mark.parametrize(
    ("keep_dims", "kinds"),
    [
        (False, ["Transpose", "GlobalAveragePool", "Flatten"]),
        (True, ["Transpose", "GlobalAveragePool", "Transpose"]),
    ],
)
def test_a_mean_over_the_spatial_axes_is_a_global_pool(
    monkeypatch: pytest.MonkeyPatch, keep_dims: bool, kinds: list[str]
) -> None:
    graph = Graph()
    image = channels_first(graph, graph.placeholder("float32", "x"))
    graph.add("Mean", image, np.array([1, 2], np.int32), keep_dims=keep_dims, name="y")
    made = emitted_with_layouts(monkeypatch, graph, {"x:0": numbers(2, 3, 4, 5)}, ["y:0"])
    made.check()
    assert made.kinds() == kinds


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("axis", [0, -1])
def test_positions_of_extremes_with_ties_and_nan(op: str, dtype: type, axis: int) -> None:
    rows = [[NAN, 1, 1, 0], [2, NAN, 2, NAN], [-np.inf, NAN, 1, np.inf], [NAN] * 4, [3, 3, 3, 3]]
    with np.errstate(all="ignore"):
        x = np.array(rows).astype(dtype)
    for to in ("int32", "int64"):
        graph = reduction(op, axis, dtype, output_type=to)
        emitted(graph, {"x:0": x}, ["y:0"], shapes=[x.shape]).check()


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_largest_elements_with_ties(is_sorted: bool, dtype: type) -> None:
    graph = Graph()
    x = graph.placeholder(dtype, "x")
    graph.add("TopKV2", x, np.array(4, np.int32), sorted=is_sorted, name="y")
    rows = np.random.default_rng(7).integers(0, 4, (50, 9)).astype(dtype)
    emitted(graph, {"x:0": rows}, ["y:0", "y:1"]).check()


@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
def test_running_sums(exclusive: bool, reverse: bool) -> None:
    for axis in (0, 1, -1):
        graph = reduction("Cumsum", axis, exclusive=exclusive, reverse=reverse)
        emitted(graph, {"x:0": numbers(3, 4, 2)}, ["y:0"]).check()


def test_half_the_sum_of_squares() -> None:
    for shape in ((3, 4), (), (2, 3000)):
        graph = Graph()
        graph.add("L2Loss", graph.placeholder("float32", "x"), name="y")
        emitted(graph, {"x:0": numbers(*shape)}, ["y:0"], shapes=[shape]).check()
