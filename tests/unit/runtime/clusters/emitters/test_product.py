"""Matrix products and Einsum in a model give what the numpy kernels give."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.clusters.dimensions import symbol
from tests.conformance.case import Graph
from tests.unit.runtime.clusters.emitted import Emitted, emitted
from tests.unit.runtime.clusters.recorded_ops import check_recorded


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("op", "at_least"),
    [
        ("BatchMatMul", 13),
        ("BatchMatMulV2", 16),
        ("BatchMatMulV3", 2),
        ("Einsum", 29),
        ("MatMul", 12),
    ],
)
@pytest.mark.parametrize("sources", [(), (1,)])
def test_recorded_cases(op: str, at_least: int, sources: tuple[int, ...]) -> None:
    assert len(check_recorded(op, sources)) >= at_least


def test_a_transposed_weight_is_transposed_once() -> None:
    graph = Graph()
    x, w = graph.placeholder("float32", "x"), graph.placeholder("float32", "w")
    graph.add("MatMul", x, w, transpose_b=True, name="y")
    made = emitted(graph, {"x:0": values(3, 4)}, ["y:0"], sources={"w:0": values(5, 4)})
    assert made.kinds() == ["MatMul"]
    made.check()


def einsum(equation: str, left: np.ndarray, right: np.ndarray, is_weight: bool) -> Emitted:
    """Return an Einsum whose left operand has a symbolic batch and length."""
    graph = Graph()
    a, b = graph.placeholder("float32", "a"), graph.placeholder("float32", "b")
    graph.add("Einsum", [a, b], equation=equation, name="y")
    symbols = {"b": symbol("batch"), "t": symbol("time")}
    terms = equation.partition("->")[0].split(",")
    shapes = [
        tuple(symbols.get(label, size) for label, size in zip(term, array.shape, strict=True))
        for term, array in zip(terms, (left, right), strict=True)
    ]
    if is_weight:
        return emitted(graph, {"a:0": left}, ["y:0"], sources={"b:0": right}, shapes=shapes[:1])
    return emitted(graph, {"a:0": left, "b:0": right}, ["y:0"], shapes=shapes)


@pytest.mark.parametrize(
    ("equation", "left", "right", "is_weight", "kinds"),
    [
        # Keras's attention: projection, scores, weighted sum, output
        ("btd,dnh->btnh", (2, 5, 6), (6, 3, 4), True, ["MatMul", "Reshape"]),
        ("btnh,bsnh->bnts", (2, 5, 3, 4), (2, 5, 3, 4), False, ["Transpose"] * 2 + ["MatMul"]),
        (
            "bnts,bsnh->btnh",
            (2, 3, 5, 5),
            (2, 5, 3, 4),
            False,
            ["Transpose", "MatMul", "Transpose"],
        ),
        ("btnh,nhd->btd", (2, 5, 3, 4), (3, 4, 6), True, ["Reshape", "MatMul"]),
        # with the keys first, as earlier versions have it
        ("bsnh,btnh->bnts", (2, 5, 3, 4), (2, 5, 3, 4), False, ["Transpose"] * 2 + ["MatMul"]),
    ],
)
def test_einsum_is_a_product_without_more_than_it_needs(
    equation: str,
    left: tuple[int, ...],
    right: tuple[int, ...],
    is_weight: bool,
    kinds: list[str],
) -> None:
    made = einsum(equation, values(*left), values(*right), is_weight)
    assert made.kinds() == kinds
    made.check()


def test_empty_batch_of_einsum() -> None:
    made = einsum("btd,dnh->btnh", values(0, 5, 6), values(6, 3, 4), True)
    made.check()
    assert made.run()[0].shape == (0, 5, 3, 4)
