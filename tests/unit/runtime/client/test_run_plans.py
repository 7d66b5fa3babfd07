"""The prepared plans of runs that a session keeps."""

from __future__ import annotations

import pytest

from runtime.client import (
    Graph,
    InaccessibleTensorError,
    Session,
    constant,
    float32,
    placeholder,
    run_plans,
)


def test_plans_of_runs_are_kept_and_stay_true():
    with Graph().as_default() as graph, Session() as session:
        x = placeholder(float32, [], name="x")
        y = x + 1
        plans = session._plans
        assert session.run([y, "x:0"], {x: 1.0}) == [2, 1]
        assert session.run((y, "x:0"), {x: 1.0}) == (2, 1)
        assert session.run(y, {y: 5.0}) == 5
        assert session.run(y, {x: 2.0}) == 3
        assert plans.find(y, {x: None}) is plans.find(y, {x: None})
        assert plans.find(y, {x: None}) is not plans.find(y, {})
        graph.prevent_fetching(y.op)
        with pytest.raises(InaccessibleTensorError):
            session.run(y, {x: 2.0})


def test_only_so_many_plans_are_kept():
    with Graph().as_default(), Session() as session:
        tensors = [constant(float(index)) for index in range(run_plans.CAPACITY + 3)]
        assert [session.run(tensor) for tensor in tensors] == list(range(len(tensors)))
        assert len(session._plans._plans) == 3
