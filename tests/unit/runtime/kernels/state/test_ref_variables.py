"""Reference variables that have no value."""

from __future__ import annotations

import pytest

from runtime.api import FailedPreconditionError
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import FLOAT, direct_session


def test_an_uninitialized_reference_variable() -> None:
    graph = Graph()
    v = graph.add("VariableV2", name="v", dtype=FLOAT, shape=())[0]
    graph.add("Identity", v, name="read")
    with pytest.raises(FailedPreconditionError) as caught:
        direct_session(graph.graph_def).run({}, ["read"])
    assert caught.value.message.startswith("Attempting to use uninitialized value v")
