"""Reference variables without a value, and temporary variables of one name."""

from __future__ import annotations

import types
from typing import Any

import pytest

from runtime.api import FailedPreconditionError
from runtime.foundation.errors import AlreadyExistsError
from runtime.framework.resource_manager import ResourceManager
from runtime.framework.resources.variable import Variable
from runtime.kernels.state import ref_variables
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import FLOAT, direct_session


def test_an_uninitialized_reference_variable() -> None:
    graph = Graph()
    v = graph.add("VariableV2", name="v", dtype=FLOAT, shape=())[0]
    graph.add("Identity", v, name="read")
    with pytest.raises(FailedPreconditionError) as caught:
        direct_session(graph.graph_def).run({}, ["read"])
    assert caught.value.message.startswith("Attempting to use uninitialized value v")


def test_one_temporary_variable_of_two_with_one_name_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = types.SimpleNamespace(step_id=1, resources=ResourceManager())

    def make(node: str) -> Variable:
        context: Any = types.SimpleNamespace(node=types.SimpleNamespace(name=node), step=step)
        return ref_variables.temporary_variable(context, var_name="name", dtype=FLOAT, shape=(2,))

    def make_another(*_: Any) -> None:
        monkeypatch.undo()
        make("other")

    monkeypatch.setattr(ref_variables, "check_allocation", make_another)
    with pytest.raises(AlreadyExistsError, match="Resource __per_step_1/name/"):
        make("one")
