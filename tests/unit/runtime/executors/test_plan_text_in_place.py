"""Plans that compute in place: only in memory that the step owns, and with the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import InvalidArgumentError, RuntimeSession, SessionOptions, new_session
from runtime.executors import plan_text, step_plan
from tests.conformance.case import Graph


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The generated texts; plans are generated at their first run."""
    seen: list[str] = []

    def spy(text: str, *rest: Any) -> Any:
        seen.append(text)
        return compile(text, *rest)

    monkeypatch.setattr(step_plan, "GENERATE_AT_RUN", 1)
    monkeypatch.setattr(plan_text, "compile", spy, raising=False)
    return seen


def session_of(graph: Graph) -> RuntimeSession:
    config = pb.ConfigProto(inter_op_parallelism_threads=-1)
    config.graph_options.optimizer_options.opt_level = pb.OptimizerOptions.L0
    session = new_session(SessionOptions(config=config))
    session.create(graph.graph_def)
    return session


def test_a_chain_works_in_the_memory_of_its_first_result(texts: list[str]) -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    constant = np.float32([10, 20])
    total = graph.add("AddV2", x, constant)[0]
    doubled = graph.add("Mul", total, np.float32([2, 2]))[0]
    less = graph.add("Sub", doubled, x)[0]
    halved = graph.add("RealDiv", less, np.float32(2))[0]
    rectified = graph.add("Relu6", halved)[0]
    session = session_of(graph)
    fed = np.float32([1, -40])
    for _ in range(2):
        (result,) = session.run({"x": fed}, [rectified[0]])
        np.testing.assert_array_equal(result, np.float32([6, 0]))
    np.testing.assert_array_equal(fed, np.float32([1, -40]))
    assert [operator in texts[0] for operator in ("+=", "*=", "-=", "/=")] == [
        False,
        True,
        True,
        True,
    ]


def test_what_is_fetched_or_read_again_is_left_alone(texts: list[str]) -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    first = graph.add("AddV2", x, np.float32(1))[0]
    fetched = graph.add("Mul", first, np.float32(3))[0]
    seen_again = graph.add("Mul", fetched, np.float32(5))[0]
    identity = graph.add("Identity", seen_again)[0]
    both = graph.add("AddV2", graph.add("Mul", identity, np.float32(2))[0], seen_again)[0]
    session = session_of(graph)
    one, last = session.run({"x": np.float32([1, 2])}, [fetched[0], both[0]])
    np.testing.assert_array_equal(one, np.float32([6, 9]))
    np.testing.assert_array_equal(last, np.float32([90, 135]))
    assert texts[0].count("*=") == 1  # the first product: it is the only reader of its input


def test_a_variable_is_never_overwritten_by_a_reader(texts: list[str]) -> None:
    graph = Graph()
    handle = graph.add("VarHandleOp", name="v", dtype="float32", shape=[2])[0]
    graph.add("AssignVariableOp", handle, np.float32([1, 2]), name="init", dtype="float32")
    value = graph.add("ReadVariableOp", handle, dtype="float32")[0]
    more = graph.add("AddV2", value, np.float32([1, 1]))[0]
    session = session_of(graph)
    session.run({}, (), ["init"])
    for _ in range(3):
        np.testing.assert_array_equal(session.run({}, [more[0]])[0], np.float32([2, 3]))
    assert not any("+=" in text for text in texts)


@pytest.mark.parametrize("nodes_a_part", [1, 100])
def test_what_an_earlier_reader_passed_on_or_kept_is_left_alone(
    texts: list[str], nodes_a_part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_text, "NODES_A_PART", nodes_a_part)
    graph = Graph()
    x = graph.placeholder("float32", "x")
    total = graph.add("AddV2", x, np.float32(1))[0]
    view = graph.add("Reshape", total, np.int32([2, 1]))[0]  # the same memory
    handle = graph.add("VarHandleOp", name="v", dtype="float32", shape=[2])[0]
    graph.add("AssignVariableOp", handle, total, name="keep", dtype="float32")
    value = graph.add("ReadVariableOp", handle, dtype="float32")[0]
    product = graph.add("Mul", total, np.float32(3))[0]  # the last reader
    session = session_of(graph)
    fed = {"x": np.float32([1, 2])}
    three, two_rows = session.run(fed, [product[0], view[0]], ["keep"])
    np.testing.assert_array_equal(three, np.float32([6, 9]))
    np.testing.assert_array_equal(two_rows, np.float32([[2], [3]]))
    np.testing.assert_array_equal(session.run({}, [value[0]])[0], np.float32([2, 3]))
    assert texts
    assert not any("*=" in text for text in texts)


@pytest.mark.parametrize("size", [(), (1,), (3, 1)])
def test_a_result_that_does_not_fit_gets_new_memory(
    texts: list[str], size: tuple[int, ...]
) -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    first = graph.add("AddV2", x, np.float32(1))[0]
    wide = graph.add("Mul", first, np.float32([[1, 2, 3]]))[0]
    highest = graph.add("Maximum", graph.add("Neg", wide)[0], np.float32([[[-5]]]))[0]
    session = session_of(graph)
    (result,) = session.run({"x": np.ones(size, np.float32)}, [highest[0]])
    rows = size[0] if size else 1
    np.testing.assert_array_equal(result, np.tile(np.float32([[[-2, -4, -5]]]), (1, rows, 1)))
    assert "*=" in texts[0]


def test_shapes_that_do_not_broadcast_are_refused_in_the_words_of_the_kernel(
    texts: list[str],
) -> None:
    graph = Graph()
    x, y = graph.placeholder("float32", "x"), graph.placeholder("float32", "y")
    first = graph.add("AddV2", x, np.float32(1))[0]
    graph.add("Mul", first, y, name="product")
    session = session_of(graph)
    with pytest.raises(InvalidArgumentError, match=r"Incompatible shapes: \[2\] vs\. \[3\]") as e:
        session.run({"x": np.ones(2, np.float32), "y": np.ones(3, np.float32)}, ["product:0"])
    assert "{{node product}}" in str(e.value)
    assert "*=" in texts[0]


def test_the_nodes_of_a_network_work_in_place(texts: list[str]) -> None:
    graph = Graph()
    rng = np.random.default_rng(7)
    x = graph.placeholder("float32", "x")
    product = graph.add("MatMul", x, rng.normal(size=(4, 6)).astype(np.float32))[0]
    biased = graph.add("BiasAdd", product, rng.normal(size=6).astype(np.float32))[0]
    image = graph.add("Reshape", biased, np.int32([1, 2, 3, 6]))[0]  # a view, not new memory
    tanh = graph.add("Tanh", image)[0]
    statistics = [rng.uniform(0.5, 2, 6).astype(np.float32) for _ in range(4)]
    normal = graph.add("FusedBatchNormV3", tanh, *statistics, is_training=False)[0]
    result = graph.add("Relu", normal)[0]
    fed = rng.normal(size=(6, 4)).astype(np.float32)
    session = session_of(graph)
    # A traced step runs the list of instructions, which allocates memory for each result.
    traced = pb.RunOptions(trace_level=pb.RunOptions.FULL_TRACE)
    want = session.run({"x": fed}, [result[0]], (), traced, pb.RunMetadata())[0]
    got = session.run({"x": fed}, [result[0]])[0]
    np.testing.assert_array_equal(got, want)
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("op", "inputs"),
    [("Reshape", [np.int32([4])]), ("ExpandDims", [np.int32(0)]), ("Squeeze", [])],
)
def test_what_is_reshaped_is_overwritten_by_its_only_reader(
    op: str, inputs: list[np.ndarray], texts: list[str]
) -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    negated = graph.add("Neg", x)[0]
    shaped = graph.add(op, negated, *inputs)[0]
    total = graph.add("AddV2", shaped, np.float32(1))[0]
    fed = np.float32([[1, 2], [3, 4]])
    assert session_of(graph).run({"x": fed}, [total[0]])[0].ravel().tolist() == [0, -1, -2, -3]
    assert fed.ravel().tolist() == [1, 2, 3, 4]
    assert "+=" in texts[0]


@pytest.mark.parametrize("is_fetched", [False, True])
def test_what_is_reshaped_and_read_again_is_left_alone(is_fetched: bool, texts: list[str]) -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    negated = graph.add("Neg", x)[0]
    shaped = graph.add("Reshape", negated, np.int32([2]))[0]
    of_feed = graph.add("Reshape", x, np.int32([2]))[0]
    total = graph.add("AddV2", shaped, np.float32(1))[0]
    other = graph.add("AddV2", of_feed, np.float32(1))[0]
    again = negated if is_fetched else graph.add("Neg", negated)[0]
    fed = np.float32([1, 2])
    values = session_of(graph).run({"x": fed}, [total[0], again[0], other[0]])
    wanted = [[0, -1], [-1, -2] if is_fetched else [1, 2], [2, 3]]
    assert [value.tolist() for value in values] == wanted
    assert fed.tolist() == [1, 2]
    assert "+=" not in texts[0]
