"""Steps that run by their values alone, in the caller's thread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    DirectSession,
    InternalError,
    InvalidArgumentError,
    RunRequest,
    ShortStep,
)
from runtime.sessions.direct import short_step
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import direct_session, neg


@pytest.fixture(autouse=True)
def every_step_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a busy machine changes nothing."""
    monkeypatch.setattr(short_step, "INLINE_SECONDS", float("inf"))


def difference() -> pb.GraphDef:
    """`d` is a - b."""
    graph = Graph()
    a, b = graph.placeholder("float32", "a"), graph.placeholder("float32", "b")
    graph.add("Sub", a, b, name="d")
    return graph.graph_def


A, B = np.float32(5), np.float32(3)
VALUES = [np.array(A), np.array(B)]


def run_twice(session: DirectSession, feeds: Sequence[str] = ("a", "b")) -> DirectSession:
    """The session after runs of the step with its feeds in this order, which are measured."""
    for _ in range(2):
        request = RunRequest(dict(zip(feeds, VALUES, strict=True)), ["d"])
        session.run_async(request).result(30)
    return session


def short(session: DirectSession, feeds: Sequence[str] = ("a", "b")) -> ShortStep:
    """The step of the session, which must have one."""
    step = session.short_step(feeds, ["d"])
    assert step is not None
    return step


def test_a_step_that_is_not_compiled_does_not_run() -> None:
    session = direct_session(difference())
    step = short(session)
    assert step.run(VALUES) is None
    run_twice(session)
    assert step.run(VALUES) == [2]


@pytest.mark.parametrize(("feeds", "expected"), [(["a", "b"], 2), (["b", "a"], -2)])
def test_values_are_in_the_order_of_the_names(feeds: list[str], expected: int) -> None:
    session = run_twice(direct_session(difference()), feeds)
    assert short(session, feeds).run(VALUES) == [expected]


def test_a_value_of_another_type_is_refused_as_in_any_run() -> None:
    session = run_twice(direct_session(difference()))
    step = short(session)
    text = r"Expects arg\[1\] to be float but double is provided"
    with pytest.raises(InvalidArgumentError, match=text):
        session.run({"a": A, "b": np.float64(3)}, ["d"])
    with pytest.raises(InvalidArgumentError, match=text):
        step.run([VALUES[0], np.array(3.0)])


@pytest.mark.parametrize("dtypes", [(">f4", "<f4"), ("<f4", ">f4"), (">f4", ">f4")])
@pytest.mark.parametrize(("feeds", "expected"), [(["a", "b"], [2]), (["b", "a"], [-2])])
def test_values_of_another_byte_order_are_converted(
    feeds: list[str], expected: list[int], dtypes: tuple[str, str]
) -> None:
    session = run_twice(direct_session(difference()), feeds)
    values = [np.array([5], dtypes[0]), np.array([3], dtypes[1])]
    step = short(session, feeds)
    for results in (step.run(values), session.run(dict(zip(feeds, values, strict=True)), ["d"])):
        assert results is not None
        assert results[0].dtype.isnative and results[0].tolist() == expected


def test_a_step_that_was_slow_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    session = run_twice(direct_session(difference()))
    step = short(session)
    assert step.may_run
    assert step.run(VALUES) == [2]
    monkeypatch.setattr(short_step, "INLINE_SECONDS", 0)
    assert not step.may_run
    assert step.run(VALUES) is None


def test_a_closed_session_runs_nothing() -> None:
    session = run_twice(direct_session(difference()))
    step = short(session)
    session.close()
    assert step.run(VALUES) is None


def test_an_extended_session_runs_the_step_on() -> None:
    session = run_twice(direct_session(difference()))
    step = short(session)
    session.extend(pb.GraphDef(node=[neg("e", "d")], versions=difference().versions))
    assert step.run(VALUES) == [2]


def test_a_run_counts_for_the_cache() -> None:
    session = run_twice(direct_session(difference()))
    step = short(session)
    before = session.executor_cache.hits
    step.run(VALUES)
    assert session.executor_cache.hits == before + 1


def test_a_session_that_reports_every_step_has_none() -> None:
    config = pb.ConfigProto()
    config.graph_options.build_cost_model = 1
    assert direct_session(difference(), config).short_step(["a", "b"], ["d"]) is None


def test_an_unexpected_error_is_internal(monkeypatch: pytest.MonkeyPatch) -> None:
    session = run_twice(direct_session(difference()))
    step = short(session)

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(session._steps, "run_arguments", broken)
    with pytest.raises(InternalError, match="RuntimeError: broken"):
        step.run(VALUES)
