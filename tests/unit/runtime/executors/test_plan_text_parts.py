"""Plans whose text is split into parts: values pass between parts, errors name their node."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import protos as pb
from runtime.api import InvalidArgumentError, RuntimeSession, SessionOptions, new_session
from runtime.executors import plan_text, step_plan
from tests.conformance.case import Graph


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_plan, "GENERATE_AT_RUN", 1)
    monkeypatch.setattr(plan_text, "NODES_A_PART", 3)


def session_of(graph: Graph) -> RuntimeSession:
    config = pb.ConfigProto(inter_op_parallelism_threads=-1)
    config.graph_options.optimizer_options.opt_level = pb.OptimizerOptions.L0
    session = new_session(SessionOptions(config=config))
    session.create(graph.graph_def)
    return session


def test_values_cross_parts() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    late = graph.placeholder("float32", "late")
    first = value = graph.add("AddV2", x, np.float32([1, 1]), name="first")[0]
    for index in range(20):
        value = graph.add("Mul", value, np.float32([2, 1]), name=f"n{index}")[0]
    total = graph.add("AddN", [value, first, late], name="total")[0]
    constant = graph.add("Const", dtype="float32", value=pb.TensorProto(dtype=1, float_val=[7.0]))
    session = session_of(graph)
    fetches = [total[0], "first:0", "n10:0", "x:0", constant[0][0]]
    feeds = {"x": np.float32([1, 2]), "late": np.float32([5, 5])}
    with pytest.raises(InvalidArgumentError, match="both fed and fetched"):
        session.run(feeds, fetches)
    fetches.remove("x:0")
    for _ in range(3):
        got = session.run(feeds, fetches)
        want = [[2 * 2**20 + 2 + 5, 3 + 3 + 5], [2, 3], [2 * 2**11, 3], 7]
        for ours, theirs in zip(got, want, strict=True):
            np.testing.assert_array_equal(np.ravel(ours), np.ravel(np.float32(theirs)))


def test_an_error_names_its_node_in_whichever_form_the_plan_runs() -> None:
    graph = Graph()
    x, y = graph.placeholder("float32", "x"), graph.placeholder("float32", "y")
    value = x
    for index in range(10):
        value = graph.add("Neg", value, name=f"n{index}")[0]
    graph.add("MatMul", value, y, name="product")
    session = session_of(graph)
    feeds = {"x": np.ones((2, 3), np.float32), "y": np.ones((2, 3), np.float32)}
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="size-incompatible") as caught:
            session.run(feeds, ["product"])
        assert "{{node product}}" in caught.value.message


def test_a_value_is_dropped_after_its_last_reader_in_a_later_part() -> None:
    """Large values: a plan that kept all of them would need far more than the limit."""
    size = 1 << 18
    graph = Graph()
    x = value = graph.placeholder("float32", "x")
    for index in range(40):
        joined = graph.add("ConcatV2", [value, x], np.int32(0), name=f"n{index}")[0]
        half = graph.add("Slice", joined, np.int32([0]), np.int32([size]), name=f"s{index}")[0]
        value = graph.add("Softplus", half, name=f"p{index}")[0]
    session = session_of(graph)
    fed = np.ones(size, np.float32)
    session.run({"x": fed}, [value[0]])
    tracemalloc.start()
    try:
        session.run({"x": fed}, [value[0]])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12 * fed.nbytes
