"""Element-wise operations in a model give what the numpy kernels give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from runtime.clusters.emit_cluster import RefusedError
from tests.conformance.case import Graph
from tests.unit.runtime.clusters.emitted import emitted
from tests.unit.runtime.clusters.layouts import channels_first, emitted_with_layouts, numbers

UNARY = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf",
    "Erfc", "Exp", "Expm1", "Floor", "Inv", "Log", "Log1p", "Neg", "Reciprocal", "Rint", "Round",
    "Rsqrt", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Square", "Tan", "Tanh", "IsNan", "IsInf",
    "IsFinite", "Elu", "Relu", "Relu6", "Selu", "Softplus", "Softsign",
)  # fmt: skip
BINARY = (
    "Add", "AddV2", "Div", "DivNoNan", "Maximum", "Minimum", "Mul", "MulNoNan", "Pow", "RealDiv",
    "SquaredDifference", "Sub", "Xdivy", "Xlog1py", "Xlogy", "Less", "LessEqual", "Greater",
    "GreaterEqual", "Equal", "NotEqual",
)  # fmt: skip
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
ORDINARY = np.array([-4, -2.5, -1.5, -1, -0.5, -1e-3, 1e-3, 0.5, 1, 1.5, 2.5, 4], np.float32)
# Functions that keep all digits of numbers near 0, where a model could lose them.
EXACT_NEAR_ZERO = ["Asinh", "Atanh", "Erf", "Expm1", "Log1p", "Sin", "Sinh", "Softsign", "Tanh"]


@pytest.mark.parametrize("op", UNARY)
@pytest.mark.parametrize("x", [SPECIAL, ORDINARY, np.zeros((0, 3), np.float32)])
def test_functions_of_special_and_ordinary_numbers(op: str, x: np.ndarray) -> None:
    graph = Graph()
    graph.add(op, graph.placeholder("float32", "x"), name="y")
    emitted(graph, {"x:0": x}, ["y:0"]).check()


@pytest.mark.parametrize("op", EXACT_NEAR_ZERO)
def test_functions_of_small_numbers(op: str) -> None:
    graph = Graph()
    graph.add(op, graph.placeholder("float32", "x"), name="y")
    x = np.array([-3e-5, -1e-6, -2e-8, 1e-9, 3e-7, 1e-6, 4e-5], np.float32)
    for each in x:
        emitted(graph, {"x:0": each[None]}, ["y:0"]).check()


@pytest.mark.parametrize("x", [-30.0, -12.0, -5.0, 5.0, 80.0])
def test_softplus_has_exact_tails(x: float) -> None:
    graph = Graph()
    graph.add("Softplus", graph.placeholder("float32", "x"), name="y")
    emitted(graph, {"x:0": np.array([x], np.float32)}, ["y:0"]).check()


@pytest.mark.parametrize("reader", [None, "Log", "Reciprocal", "Identity"])
@pytest.mark.parametrize("op", ["Sigmoid", "Erfc"])
def test_what_not_only_sums_read_has_exact_tails(op: str, reader: str | None) -> None:
    x = np.array([-80, -30, -18.5, -6, -1, 0.6, 2, 5, 8], np.float32)
    graph = Graph()
    made = graph.add(op, graph.placeholder("float32", "x"), name="y")[0]
    if reader is not None:
        graph.add(reader, made, name="z")
    for each in x:
        emitted(graph, {"x:0": each[None]}, ["y:0" if reader is None else "z:0"]).check()


@pytest.mark.parametrize("reader", ["Mul", "Sub", "AddV2"])
@pytest.mark.parametrize(("op", "fast"), [("Sigmoid", "Sigmoid"), ("Erfc", "Erf")])
def test_what_only_sums_read_is_what_the_engine_has(op: str, fast: str, reader: str) -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    graph.add(reader, x, graph.add(op, x, name="y")[0], name="z")
    feeds = {"x:0": np.array([-30, -1, 4], np.float32)}
    for fetches in (["z:0"], ["y:0", "z:0"]):
        made = emitted(graph, feeds, fetches)
        made.check()
        assert (fast in made.kinds()) is (fetches == ["z:0"])


@pytest.mark.parametrize("op", BINARY)
def test_operands_with_every_pair_of_special_numbers(op: str) -> None:
    graph = Graph()
    x, y = (graph.placeholder("float32", name) for name in "xy")
    graph.add(op, x, y, name="z")
    values = np.concatenate([SPECIAL, np.array([-2, 0.5, 3], np.float32)])
    made = emitted(graph, {"x:0": values[:, None], "y:0": values}, ["z:0"], shapes=[(8, 1), (8,)])
    made.check()


@pytest.mark.parametrize("op", ["Maximum", "Minimum", "Relu", "Relu6", "ClipByValue"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clipping_keeps_nan_at_every_position(op: str, dtype: type) -> None:
    graph = Graph()
    bounds = {"Maximum": [0.1], "Minimum": [0.1], "ClipByValue": [-0.5, 0.5]}.get(op, [])
    x = graph.placeholder(dtype, "x")
    graph.add(op, x, *(np.array(bound, dtype) for bound in bounds), name="y")
    values = numbers(40, 50).astype(dtype)
    values[numbers(50, 40).T > 1] = np.nan
    emitted(graph, {"x:0": values}, ["y:0"]).check()


@settings(max_examples=80)
@given(
    shapes=mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=3),
    op=st.sampled_from(["AddV2", "Maximum", "SquaredDifference", "Less", "NotEqual"]),
    dtype=st.sampled_from([np.float32, np.float64, np.int32, np.int64]),
)
def test_broadcasting(shapes: Any, op: str, dtype: type) -> None:
    graph = Graph()
    graph.add(op, graph.placeholder(dtype, "x"), graph.placeholder(dtype, "y"), name="z")
    feeds = dict(
        zip(("x:0", "y:0"), (small(each, dtype) for each in shapes.input_shapes), strict=True)
    )
    emitted(graph, feeds, ["z:0"], shapes=list(shapes.input_shapes)).check()


@settings(max_examples=40)
@given(
    batch=st.sampled_from([0, 1, 3]),
    inner=mutually_broadcastable_shapes(num_shapes=2, min_dims=2, max_dims=2, max_side=3),
)
def test_broadcasting_with_a_symbolic_batch(batch: int, inner: Any) -> None:
    graph = Graph()
    graph.add("Sub", graph.placeholder("float32", "x"), graph.placeholder("float32", "y"), name="z")
    left, right = ((batch, *shape) for shape in inner.input_shapes)
    feeds = {"x:0": small(left, np.float32), "y:0": small(right, np.float32)}
    emitted(graph, feeds, ["z:0"]).check()


def small(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    return np.random.default_rng(7).integers(-3, 3, shape).astype(dtype)


def test_one_model_serves_all_batch_sizes() -> None:
    graph = Graph()
    graph.add("AddV2", graph.placeholder("float32", "x"), numbers(4), name="y")
    made = emitted(graph, {"x:0": numbers(3, 4)}, ["y:0"])
    for batch in (0, 1, 7):
        x = numbers(batch, 4)
        np.testing.assert_array_equal(made.run(feeds={"x:0": x})[0], x + numbers(4))


def test_a_symbol_and_a_fixed_size_are_declined() -> None:
    graph = Graph()
    graph.add("AddV2", graph.placeholder("float32", "x"), numbers(3, 4), name="y")
    with pytest.raises(RefusedError, match="y \\(AddV2\\): batch and 3 in one operation"):
        emitted(graph, {"x:0": numbers(3, 4)}, ["y:0"])


@pytest.mark.parametrize("shape", [(), (5,), (1, 5), (4, 5), (3, 4, 5), (1, 1, 1, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("is_first", [True, False])
def test_constants_follow_an_operand_that_is_channels_first(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], is_first: bool
) -> None:
    graph = Graph()
    image = channels_first(graph, graph.placeholder("float32", "x"))
    operands = (image, numbers(*shape)) if is_first else (numbers(*shape), image)
    graph.add("Relu", graph.add("Sub", *operands)[0], name="y")
    feeds = {"x:0": numbers(2, 3, 4, 5)}
    fixed = [(2, 3, 4, 5)]
    made = emitted_with_layouts(monkeypatch, graph, feeds, ["y:0"], shapes=fixed)
    made.check()
    assert made.kinds() == ["Transpose", "Sub", "Relu", "Transpose"]


def test_tensors_of_one_rank_follow_an_operand_that_is_channels_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = Graph()
    image = channels_first(graph, graph.placeholder("float32", "x"))
    scale = graph.placeholder("float32", "scale")
    graph.add("Mul", scale, image, name="y")
    feeds = {"x:0": numbers(2, 3, 4, 5), "scale:0": numbers(2, 1, 1, 5)}
    made = emitted_with_layouts(monkeypatch, graph, feeds, ["y:0"])
    made.check()
    assert made.kinds() == ["Transpose", "Transpose", "Mul", "Transpose"]


def test_a_tensor_of_lower_rank_leads_back_to_the_order_of_tensorflow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = Graph()
    image = channels_first(graph, graph.placeholder("float32", "x"))
    graph.add("Mul", graph.placeholder("float32", "row"), image, name="y")
    feeds = {"x:0": numbers(2, 3, 4, 5), "row:0": numbers(5)}
    shapes = [(2, 3, 4, 5), (5,)]
    made = emitted_with_layouts(monkeypatch, graph, feeds, ["y:0"], shapes=shapes)
    made.check()
    assert made.kinds() == ["Mul"]


def test_add_of_a_weight_and_relu() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    bias = graph.placeholder("float32", "bias")
    total = graph.add("AddV2", x, bias)[0]
    graph.add("Relu", total, name="y")
    made = emitted(graph, {"x:0": numbers(3, 4)}, ["y:0"], sources={"bias:0": numbers(4)})
    assert made.kinds() == ["Add", "Relu"]
    made.check()
