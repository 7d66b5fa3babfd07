"""Kernels that check something and then use it: what another step does in between."""

from __future__ import annotations

import logging
import types
from typing import Any

import numpy as np
import pytest

from runtime.foundation.errors import AlreadyExistsError, InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.resource_manager import ResourceManager
from runtime.framework.resources.variable import Variable
from runtime.kernels.control.assertions import print_
from runtime.kernels.state import ref_variables, training
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import direct_session

FLOAT = DataType.FLOAT


@pytest.mark.parametrize("op", ["ResourceApplyMomentum", "ResourceSparseApplyMomentum"])
def test_training_checks_the_shapes_that_it_writes_into(
    op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = Graph()
    handles = []
    for name in ("v", "slot"):
        handle = graph.add("VarHandleOp", name=name, dtype=FLOAT, shape=None, shared_name=name)[0]
        zeros = np.zeros(2, np.float32)
        graph.add("AssignVariableOp", handle, zeros, name=f"{name}_init", dtype=FLOAT)
        handles.append(handle)
    rows = [np.arange(2, dtype=np.int32)] if "Sparse" in op else []
    numbers = np.float32(1), np.ones(2, np.float32), *rows, np.float32(0)
    graph.add(op, *handles, *numbers, name="update")
    session = direct_session(graph.graph_def)
    session.run({}, [], ["v_init", "slot_init"])
    slot = session.resources.look_up("", Variable, "slot")

    def assign_between(*_: Any) -> None:
        slot.assign(np.zeros(3, np.float32))

    monkeypatch.setattr(training, "_check_signs", assign_between)
    with pytest.raises(InvalidArgumentError, match="var and accum do not have the same shape"):
        session.run({}, [], ["update"])
    assert slot.read().tolist() == [0, 0, 0]
    assert session.resources.look_up("", Variable, "v").read().tolist() == [0, 0]


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


def test_print_counts_its_first_times_once(caplog: pytest.LogCaptureFixture) -> None:
    state: list[Any] = []

    def kernel_state(create: Any) -> Any:
        if not state:
            state.append(create())
        return state[0]

    context: Any = types.SimpleNamespace(kernel_state=kernel_state)

    class Limit(int):
        """1; another step prints when a count is compared with it."""

        def __gt__(self, count: int) -> bool:
            print_(context, 0, U=(), message="inner", first_n=1, summarize=3)
            return count < 1

    with caplog.at_level(logging.INFO):
        print_(context, 0, U=(), message="outer", first_n=Limit(1), summarize=3)
    assert caplog.messages == ["outer"]
