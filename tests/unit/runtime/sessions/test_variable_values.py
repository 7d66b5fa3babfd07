"""Which variables a child process has to be sent again."""

import numpy as np
import pytest

from runtime.api import RunRequest
from runtime.framework.cancellation import CancellationManager
from runtime.sessions.child_process.variable_values import ChangedVariables, SentVariables
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.child_processes import opened


def graph_of_two() -> Graph:
    graph = Graph()
    values = []
    for name in ("a", "b"):
        handle = graph.add("VarHandleOp", name=name, dtype="float32", shape=(), shared_name=name)[0]
        graph.add("AssignVariableOp", handle, np.float32(1), name=f"init_{name}", dtype="float32")
        graph.add("AssignAddVariableOp", handle, np.float32(1), name=f"add_{name}", dtype="float32")
        graph.add("DestroyResourceOp", handle, name=f"destroy_{name}")
        values.append(graph.add("ReadVariableOp", handle, dtype="float32")[0])
    graph.add("AddV2", *values, name="sum")
    return graph


class Sent:
    """What a child would be sent of a session's `sum`."""

    def __init__(self) -> None:
        self.session = opened(graph_of_two())
        self.session.run({}, (), ["init_a", "init_b"])
        compiled = self.session._graph.compiled(RunRequest({}, ["sum"]))
        portable = compiled.executor.portable
        assert portable is not None
        self.variables = SentVariables(portable)

    def changed(self) -> ChangedVariables | None:
        return self.variables.changed(self.session._new_step(CancellationManager(), None))

    def send(self) -> list[float]:
        changed = self.changed()
        assert changed is not None
        self.variables.note_sent(changed)
        return [float(array) for array in changed.arrays]


def test_each_change_is_sent_once():
    sent = Sent()
    assert sent.send() == [1, 1]
    assert sent.send() == []
    sent.session.run({}, (), ["add_b"])
    assert sent.send() == [2]
    assert sent.send() == []


def test_nothing_is_looked_at_while_nothing_changes(monkeypatch: pytest.MonkeyPatch):
    sent = Sent()
    sent.send()
    monkeypatch.setattr(sent.session.resources, "find", None)
    assert sent.send() == []


def test_a_variable_that_is_gone_is_noticed():
    sent = Sent()
    sent.send()
    sent.session.run({}, (), ["destroy_a"])
    assert sent.changed() is None
    sent.session.run({}, (), ["init_a"])
    sent.session.run({}, (), ["add_a"])
    assert sent.send() == [2]


def test_a_cleared_container_is_noticed():
    sent = Sent()
    sent.send()
    sent.session.resources.clear()
    assert sent.changed() is None


def test_what_is_not_sent_in_the_end_is_changed_still():
    sent = Sent()
    sent.send()
    sent.session.run({}, (), ["add_a"])
    for _ in range(2):
        changed = sent.changed()
        assert changed is not None
        assert [float(array) for array in changed.arrays] == [2]


def test_variables_of_another_session_are_others():
    sent, other = Sent(), Sent()
    sent.send()
    other.session.run({}, (), ["add_a"])
    step = other.session._new_step(CancellationManager(), None)
    changed = sent.variables.changed(step)
    assert changed is not None
    assert sorted(float(array) for array in changed.arrays) == [1, 2]
