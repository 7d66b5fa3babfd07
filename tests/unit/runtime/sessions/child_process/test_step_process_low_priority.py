"""Steps of low-priority pools wait for normal steps."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.api import RunRequest, ThreadPool
from runtime.foundation import priority_gate
from runtime.sessions.child_process import step_processes as step_processes_module
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.child_process.child_processes import (
    DEADLINE_SECONDS,
    opened,
    process_of,
    run,
    until,
)


@pytest.mark.parametrize("own_process", [False, True])
def test_a_low_priority_step_begins_when_no_normal_work_is_pending(
    own_process: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = ThreadPool("patient", 1, low_priority=True, own_process=own_process)
    monkeypatch.setattr(priority_gate, "MAX_WAIT_SECONDS", DEADLINE_SECONDS)
    graph = Graph()
    graph.add("Neg", graph.placeholder("float32", "x"), name="y")
    session = opened(graph)
    request = RunRequest({"x": np.float32(2)}, ["y"], pool=pool)
    priority_gate.gate.enter()
    try:
        step = session.run_async(request)
        until(lambda: pool.stats().running == 1)
        assert not step.done()
    finally:
        priority_gate.gate.leave()
    assert step.result(DEADLINE_SECONDS) == [np.float32(-2)]
    pool.shutdown()


def test_a_process_that_was_killed_while_it_waited_costs_no_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(step_processes_module, "WORTH_SECONDS", 0.0)
    pool = ThreadPool("killed", 1, low_priority=True, own_process=True)
    graph = Graph()
    graph.add("Neg", graph.placeholder("float32", "x"), name="y")
    session = opened(graph)
    request = RunRequest({"x": np.float32(2)}, ["y"], pool=pool)
    process = process_of(pool)
    assert run(session, request) == ([np.float32(-2)], 1)
    process._process.kill()
    process._process.wait(DEADLINE_SECONDS)
    assert run(session, request) == ([np.float32(-2)], 0)
    pool.shutdown()
