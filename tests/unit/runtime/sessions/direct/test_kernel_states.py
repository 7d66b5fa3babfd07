"""State that a session keeps between steps, also when its graph is extended."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import (
    FLOAT,
    X,
    direct_session,
    graph_of,
    neg,
    variable_graph,
)


def test_variables_stay_when_the_graph_is_extended() -> None:
    session = direct_session(variable_graph())
    session.run({"value": X}, [], ["assign"])
    session.extend(graph_of(neg("negated", "read")))
    assert session.run({}, ["negated"]) == [-3]


def test_a_stateful_kernel_goes_on_where_it_was_after_an_extension() -> None:
    graph = Graph()
    options = {"dtype": FLOAT, "seed": 1, "seed2": 2}
    graph.add("RandomUniform", np.array([2], np.int32), name="draw", **options)
    whole, extended = direct_session(graph.graph_def), direct_session(graph.graph_def)
    expected = [whole.run({}, ["draw"])[0].tolist() for _ in range(2)]
    first = extended.run({}, ["draw"])[0].tolist()
    extended.extend(graph_of(neg("negated", "draw")))
    second = extended.run({}, ["draw"])[0].tolist()
    assert [first, second] == expected
    assert first != second


@pytest.mark.parametrize("isolated", [False, True])
def test_sessions_do_not_share_variables(isolated: bool) -> None:
    config = pb.ConfigProto(isolate_session_state=isolated)
    first = direct_session(variable_graph(), config)
    second = direct_session(variable_graph(), config)
    first.run({"value": X}, [], ["assign"])
    assert second.run({}, ["is_initialized"]) == [False]
