"""Nodes that return their input are removed; results keep every bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import protos as pb
from tests.conformance.case import Graph
from tests.unit.runtime.graph.passes.optimised_steps import optimised, placeholder, reached
from tests.unit.runtime.sessions.graphs import direct_session


def plus_zero(graph: Graph) -> None:
    graph.add("AddV2", np.int32(0), placeholder(graph), name="out")


def times_one(graph: Graph) -> None:
    graph.add("Mul", placeholder(graph, "float32"), np.float32(1), name="out")


def negated_twice(graph: Graph) -> None:
    inner = graph.add("Neg", placeholder(graph), name="inner")[0]
    graph.add("Neg", inner, name="out")


def transposed_back(graph: Graph) -> None:
    inner = graph.add("Transpose", placeholder(graph), np.int32([2, 0, 1]), name="inner")[0]
    graph.add("Transpose", inner, np.int32([1, 2, 0]), name="out")


def cast_to_itself(graph: Graph) -> None:
    graph.add("Cast", placeholder(graph), DstT="int32", name="out")


@pytest.mark.parametrize(
    "build", [plus_zero, times_one, negated_twice, transposed_back, cast_to_itself]
)
def test_what_changes_nothing_goes(build: object) -> None:
    graph = Graph()
    build(graph)  # type: ignore[operator]
    assert reached(optimised(graph.graph_def, "out")) == ["Placeholder"]


SOMETHING: dict[str, Callable[[Graph, Any], object]] = {
    "zero minus x": lambda graph, x: graph.add("Sub", np.float32(0), x, name="out"),
    "zero minus integers": lambda graph, x: graph.add(
        "Sub", np.int32(0), graph.add("Cast", x, DstT="int32")[0], name="out"
    ),
    "one over x": lambda graph, x: graph.add("RealDiv", np.float32(1), x, name="out"),
    "zero times x": lambda graph, x: graph.add("Mul", np.float32(0), x, name="out"),
    "ones that widen x": lambda graph, x: graph.add(
        "Mul", x, np.ones((3, 1, 1), np.float32), name="out"
    ),
    "a square's square": lambda graph, x: graph.add(
        "Square", graph.add("Square", x)[0], name="out"
    ),
    "a sign's negative": lambda graph, x: graph.add("Neg", graph.add("Sign", x)[0], name="out"),
    "turned twice": lambda graph, x: graph.add(
        "Transpose",
        graph.add("Transpose", graph.add("Reshape", x, np.int32([2, 2, 1]))[0],
                  np.int32([1, 2, 0]))[0],
        np.int32([1, 2, 0]),
        name="out",
    ),
    "cast and back": lambda graph, x: graph.add(
        "Cast", graph.add("Cast", x, DstT="int32")[0], DstT="float32", name="out"
    ),
    "reshaped twice": lambda graph, x: graph.add(
        "Reshape", graph.add("Reshape", x, np.int32([4]))[0], np.int32([1, 4]), name="out"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SOMETHING)
def test_what_changes_something_stays(what: str) -> None:
    graph = Graph()
    SOMETHING[what](graph, graph.placeholder("float32", "x"))
    fed = np.float32([[1.5, -2], [4, -0.0]])
    plain = pb.ConfigProto()
    plain.graph_options.optimizer_options.opt_level = pb.OptimizerOptions.L0
    ours, expected = (
        direct_session(graph.graph_def, config).run({"x": fed}, ["out"])[0]
        for config in (pb.ConfigProto(), plain)
    )
    assert (ours.dtype, ours.shape) == (expected.dtype, expected.shape)
    assert ours.tobytes() == expected.tobytes()
    assert ours.tobytes() != fed.tobytes() or ours.shape != fed.shape


def test_a_negative_zero_is_kept() -> None:
    graph = Graph()
    graph.add("AddV2", placeholder(graph, "float32"), np.float32(0), name="out")
    assert "AddV2" in reached(optimised(graph.graph_def, "out"))
    assert not np.signbit(direct_session(graph.graph_def).run({"x": np.float32(-0.0)}, ["out"])[0])
