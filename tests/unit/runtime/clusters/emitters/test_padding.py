"""Padding and moves between space, batch and depth give what the numpy kernels give."""

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


def one(op: str, *operands: Any, **attrs: Any) -> Graph:
    graph = Graph()
    graph.add(op, graph.placeholder("float32", "x"), *operands, name="y", **attrs)
    return graph


@settings(max_examples=60)
@given(
    op=st.sampled_from(["Pad", "PadV2", "REFLECT", "SYMMETRIC"]),
    axes=st.lists(
        st.integers(1, 4).flatmap(
            lambda size: st.tuples(
                st.just(size), st.integers(0, size - 1), st.integers(0, size - 1)
            )
        ),
        max_size=4,
    ),
)
def test_padding(op: str, axes: list[tuple[int, int, int]]) -> None:
    shape = tuple(size for size, _, _ in axes)
    paddings = np.array([each[1:] for each in axes], np.int32).reshape(-1, 2)
    if op in ("Pad", "PadV2"):
        graph = one(op, paddings, *([np.float32(-1.5)] if op == "PadV2" else []))
    else:
        graph = one("MirrorPad", paddings, mode=op)
    emitted(graph, {"x:0": numbers(*shape)}, ["y:0"], shapes=[shape]).check()


@pytest.mark.parametrize("mode", ["CONSTANT", "REFLECT", "SYMMETRIC"])
def test_padding_of_channels_first(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    graph = Graph()
    image = channels_first(graph, graph.placeholder("float32", "x"))
    paddings = np.int32([[0, 0], [1, 2], [0, 1], [2, 0]])
    more = {} if mode == "CONSTANT" else {"mode": mode}
    padded = graph.add("Pad" if mode == "CONSTANT" else "MirrorPad", image, paddings, **more)[0]
    graph.add("Relu", padded, name="y")
    made = emitted_with_layouts(monkeypatch, graph, {"x:0": numbers(2, 3, 4, 5)}, ["y:0"])
    made.check()
    assert made.kinds().count("Transpose") == 2
    assert made.run(feeds={"x:0": numbers(0, 3, 4, 5)})[0].shape == (0, 6, 5, 7)


def test_padding_of_the_batch_is_declined() -> None:
    with pytest.raises(RefusedError, match="batch is known at a run only"):
        emitted(one("Pad", np.int32([[1, 0], [0, 0]])), {"x:0": numbers(3, 4)}, ["y:0"])


@pytest.mark.parametrize("block", [[2, 2], [1, 2], [3]])
def test_space_to_batch_and_back(block: list[int]) -> None:
    count = len(block)
    paddings = np.int32([[0, 2], [1, 1]][:count])
    if count == 1:
        paddings = np.int32([[1, 1]])
    graph = Graph()
    x = graph.placeholder("float32", "x")
    moved = graph.add("SpaceToBatchND", x, np.int32(block), paddings, name="moved")[0]
    graph.add("BatchToSpaceND", moved, np.int32(block), paddings, name="y")
    made = emitted(graph, {"x:0": numbers(2, 4, 6, 3)}, ["moved:0", "y:0"])
    made.check()
    assert made.run(feeds={"x:0": numbers(5, 4, 6, 3)})[1].shape == (5, 4, 6, 3)


@pytest.mark.parametrize("op", ["SpaceToDepth", "DepthToSpace"])
@pytest.mark.parametrize("is_first", [True, False])
def test_space_and_depth(monkeypatch: pytest.MonkeyPatch, op: str, is_first: bool) -> None:
    graph = Graph()
    x: Any = graph.placeholder("float32", "x")
    image = channels_first(graph, x) if is_first else x
    graph.add(op, image, block_size=2, name="y")
    made = emitted_with_layouts(monkeypatch, graph, {"x:0": numbers(2, 4, 6, 8)}, ["y:0"])
    made.check()
    assert (op in made.kinds()) is is_first
    assert made.run(feeds={"x:0": numbers(3, 4, 6, 8)})[0].shape[0] == 3
