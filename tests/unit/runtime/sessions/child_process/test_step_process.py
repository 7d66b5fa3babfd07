"""Steps in the child process of a low-priority pool: values, errors, cancellation, its end."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import protos as pb
from runtime.api import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    KernelDef,
    RunRequest,
    ThreadPool,
    UnavailableError,
)
from runtime.framework.cancellation import CancellationManager
from runtime.sessions.child_process import overdue_step, step_process
from runtime.sessions.child_process import step_processes as step_processes_module
from runtime.sessions.child_process.step_process import StepProcess
from runtime.sessions.child_process.step_processes import StepProcesses, step_processes
from runtime.sessions.direct.direct_session import DirectSession
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.child_process.child_processes import (
    is_running,
    opened,
    process_of,
    run,
    until,
)

ROOT = pathlib.Path(__file__).parents[5]


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPool]:
    pool = ThreadPool("child", 1, low_priority=True, own_process=True)
    process_of(pool)
    yield pool
    pool.shutdown()


@pytest.fixture(autouse=True)
def _everything_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_processes_module, "WORTH_SECONDS", 0.0)


VALUES = [
    np.float32(2.5),
    np.zeros((0, 3), np.float64),
    np.arange(6, dtype=np.int32).reshape(2, 3).T,  # not contiguous
    np.array([1, -2], ml_dtypes.bfloat16),
    np.array([1, -2], ml_dtypes.int4),
    np.array([[b"a", b"\xff\x00"], [b"", b"long" * 9000]], object),
    np.array([True, False]),
    np.array([1 + 2j], np.complex64),
    np.ones((300, 1000), np.float32),  # larger than the buffer of the socket
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{value.dtype}-{value.ndim}")
def test_values_come_back_as_they_went(pool: ThreadPool, value: Any) -> None:
    graph = Graph()
    x = graph.placeholder(value.dtype.name if value.dtype != object else "string", "x")
    graph.add("Identity", x, name="y")
    (result,), sent = run(opened(graph), RunRequest({"x": value}, ["y"], pool=pool))
    assert sent == 1
    assert (result.dtype, result.shape) == (value.dtype, value.shape)
    np.testing.assert_array_equal(result, value)


def counter_graph() -> Graph:
    """A resource variable and a reference variable; `sum` adds them, `add` counts both up."""
    graph = Graph()
    handle = graph.add("VarHandleOp", name="v", dtype="float32", shape=(), shared_name="v")[0]
    old = graph.add("VariableV2", name="r", dtype="float32", shape=())[0]
    one = np.float32(1)
    graph.add("AssignVariableOp", handle, one, name="init_v", dtype="float32")
    graph.add("Assign", old, one, name="init_r")
    graph.add("AssignAddVariableOp", handle, one, name="add_v", dtype="float32")
    graph.add("AssignAdd", old, one, name="add_r")
    read = graph.add("ReadVariableOp", handle, name="read", dtype="float32")[0]
    graph.add("AddV2", read, graph.add("Identity", old, name="old", T="float32")[0], name="sum")
    return graph


def test_variables_are_those_of_the_session(pool: ThreadPool) -> None:
    session = opened(counter_graph())
    other = opened(counter_graph())
    for each in (session, other):
        each.run({}, (), ["init_v", "init_r"])
    request = RunRequest({}, ["sum"], pool=pool)
    for count in range(3):
        assert run(session, request) == ([2 + 2 * count], 1)
        assert run(session, request) == ([2 + 2 * count], 1)  # nothing has changed
        assert run(other, request) == ([2], 1)
        session.run({}, (), ["add_v", "add_r"])


def test_an_uninitialised_variable_is_told_here(pool: ThreadPool) -> None:
    session = opened(counter_graph())
    before = step_processes(pool).steps
    request = RunRequest({}, ["read"], pool=pool)
    session._graph.compiled(request).executor.last_seconds = 1.0
    with pytest.raises(Exception, match="Could not find variable v"):
        session.run_async(request).result()
    assert step_processes(pool).steps == before


def test_a_step_that_changes_state_stays_here(pool: ThreadPool) -> None:
    session = opened(counter_graph())
    session.run({}, (), ["init_v", "init_r"])
    assert run(session, RunRequest({}, (), ["add_v"], pool=pool))[1] == 0
    assert run(session, RunRequest({}, ["add_r"], pool=pool))[1] == 0
    assert run(session, RunRequest({}, ["sum"], pool=pool)) == ([4], 1)


def random_graph() -> Graph:
    graph = Graph()
    graph.add("RandomUniform", np.int32([2]), dtype="float32", seed=1, name="y")
    return graph


def handle_graph() -> Graph:
    graph = Graph()
    graph.add("VarHandleOp", name="y", dtype="float32", shape=(), shared_name="v")
    return graph


def file_graph() -> Graph:
    graph = Graph()
    pattern = np.array(b"/nowhere/*", object)
    graph.add("MatchingFiles", pattern, name="y")
    return graph


@pytest.mark.parametrize("make", [random_graph, file_graph])
def test_what_keeps_state_or_reads_files_stays_here(
    pool: ThreadPool, make: Callable[[], Graph]
) -> None:
    assert run(opened(make()), RunRequest({}, ["y"], pool=pool))[1] == 0


def test_a_handle_stays_here(pool: ThreadPool) -> None:
    session = opened(handle_graph())
    compiled = session._graph.compiled(RunRequest({}, ["y"], pool=pool))
    assert compiled.executor.portable is None


def test_kernels_of_ones_own_stay_here(pool: ThreadPool) -> None:
    graph = Graph()
    graph.add("StringUpper", np.array(b"a", object), name="y")
    kernel = KernelDef("StringUpper", lambda _: np.array(b"mine", object))
    session = opened(graph, kernels=[kernel])
    assert run(session, RunRequest({}, ["y"], pool=pool)) == ([b"mine"], 0)


def failing_graph() -> Graph:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    graph.add("MatMul", x, np.ones((2, 2), np.float32), name="product")
    return graph


def test_errors_are_the_same(pool: ThreadPool) -> None:
    session = opened(failing_graph())
    feeds = {"x": np.ones((1, 3), np.float32)}
    with pytest.raises(InvalidArgumentError) as here:
        session.run(feeds, ["product"])
    before = step_processes(pool).steps
    request = RunRequest(feeds, ["product"], pool=pool)
    session._graph.compiled(request).executor.last_seconds = 1.0
    with pytest.raises(InvalidArgumentError) as there:
        session.run_async(request).result()
    assert there.value.message == here.value.message
    assert step_processes(pool).steps == before + 1
    good = RunRequest({"x": np.ones((1, 2), np.float32)}, ["product"], pool=pool)
    assert run(session, good)[1] == 1


def endless_graph() -> Graph:
    """A loop that ends when its limit, which is fed, is reached."""
    graph = Graph()
    limit = graph.placeholder("float32", "limit")
    begin = graph.placeholder("float32", "begin")
    enter = graph.add("Enter", begin, name="enter", frame_name="f")[0]
    bound = graph.add("Enter", limit, name="bound", frame_name="f", is_constant=True)[0]
    merge = graph.add("Merge", [enter, enter], name="merge")[0]
    less = graph.add("Less", merge, bound, name="less")[0]
    cond = graph.add("LoopCond", less, name="cond")[0]
    switch = graph.add("Switch", merge, cond, name="switch")
    one = graph.add("Const", name="one", dtype="float32", value=np.float32(1),
                    control=["switch"])[0]  # fmt: skip
    added = graph.add("AddV2", switch[1], one, name="added")[0]
    graph.add("NextIteration", added, name="next")
    graph.add("Exit", switch[0], name="exit")
    for node in graph.graph_def.node:
        if node.name == "merge":
            node.input[1] = "next"
    return graph


def endless_request(pool: ThreadPool, **options: Any) -> RunRequest:
    feeds = {"limit": np.float32(np.inf), "begin": np.float32(0)}
    return RunRequest(feeds, ["exit"], pool=pool, **options)


def assert_answers(session: DirectSession, pool: ThreadPool) -> None:
    process_of(pool)  # the step before may have been answered while the child was still busy
    feeds = {"limit": np.float32(5), "begin": np.float32(0)}
    assert run(session, RunRequest(feeds, ["exit"], pool=pool)) == ([5], 1)


def test_a_cancelled_step_ends_there(pool: ThreadPool) -> None:
    session = opened(endless_graph())
    cancellation = CancellationManager()
    request = endless_request(pool, cancellation=cancellation)
    session._graph.compiled(request).executor.last_seconds = 1.0
    before = pool.stats()
    future = session.run_async(request)
    until(lambda: pool.stats().running)
    cancellation.cancel(CancelledError("enough"))
    with pytest.raises(CancelledError, match="enough"):
        future.result()
    until(lambda: pool.stats().completed > before.completed)
    assert_answers(session, pool)


def test_a_child_that_does_not_notice_a_cancellation_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(overdue_step, "GRACE_SECONDS", 0.01)
    pool = ThreadPool("deaf", 1, low_priority=True, own_process=True)
    session, cancellation = opened(endless_graph()), CancellationManager()
    request = endless_request(pool, cancellation=cancellation)
    session._graph.compiled(request).executor.last_seconds = 1.0
    child, before = process_of(pool), pool.stats()
    future = session.run_async(request)
    until(lambda: pool.stats().running)
    os.kill(child._process.pid, signal.SIGSTOP)  # as deaf as in a long native call
    cancellation.cancel(CancelledError("enough"))
    with pytest.raises(CancelledError, match="enough"):
        future.result()
    until(lambda: pool.stats().completed > before.completed)
    assert child._process.wait(30) == -signal.SIGKILL
    assert_answers(session, pool)  # in this process, until another child is ready
    pool.shutdown()


def test_a_deadline_ends_it_too(pool: ThreadPool) -> None:
    session = opened(endless_graph())
    request = endless_request(pool, deadline=time.monotonic() + 0.05)
    session._graph.compiled(request).executor.last_seconds = 1.0
    with pytest.raises(DeadlineExceededError):
        session.run_async(request).result()
    assert_answers(session, pool)


def test_a_closed_session_ends_its_step(pool: ThreadPool) -> None:
    session = opened(endless_graph())
    request = endless_request(pool)
    session._graph.compiled(request).executor.last_seconds = 1.0
    future = session.run_async(request)
    until(lambda: pool.stats().running)
    session.close()
    with pytest.raises(CancelledError):
        future.result()
    assert_answers(opened(endless_graph()), pool)


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadPool]:
    """A pool whose child is ended by a test."""
    monkeypatch.setattr(step_processes_module, "_RESTART_SECONDS", 0.0)
    pool = ThreadPool("dying", 1, low_priority=True, own_process=True)
    yield pool
    pool.shutdown()


def started(session: DirectSession, request: RunRequest, child: StepProcess) -> Any:
    """Start a step, and return its future once the child, which is stopped, has received it."""
    os.kill(child._process.pid, signal.SIGSTOP)
    session._graph.compiled(request).executor.last_seconds = 1.0
    before = child.steps
    future = session.run_async(request)
    until(lambda: child.steps > before)
    return future


def finite_request(pool: ThreadPool) -> RunRequest:
    feeds = {"limit": np.float32(5), "begin": np.float32(0)}
    return RunRequest(feeds, ["exit"], pool=pool)


def test_the_step_of_a_killed_process_runs_again_here(
    dying: ThreadPool, caplog: pytest.LogCaptureFixture
) -> None:
    session, child = opened(endless_graph()), process_of(dying)
    future = started(session, finite_request(dying), child)
    os.kill(child._process.pid, signal.SIGKILL)
    assert future.result(60) == [5]
    assert "runs again in the server's process" in caplog.text
    assert process_of(dying) is not child
    assert_answers(session, dying)


def test_the_step_of_a_killed_process_keeps_its_deadline(dying: ThreadPool) -> None:
    session, child = opened(endless_graph()), process_of(dying)
    request = endless_request(dying, deadline=time.monotonic() + 0.5)
    future = started(session, request, child)
    os.kill(child._process.pid, signal.SIGKILL)
    with pytest.raises(DeadlineExceededError):
        future.result(60)
    assert_answers(session, dying)


def test_the_step_of_a_killed_process_can_be_cancelled(dying: ThreadPool) -> None:
    session, child = opened(endless_graph()), process_of(dying)
    cancellation = CancellationManager()
    future = started(session, endless_request(dying, cancellation=cancellation), child)
    os.kill(child._process.pid, signal.SIGKILL)
    cancellation.cancel(CancelledError("enough"))
    with pytest.raises(CancelledError, match="enough"):
        future.result(60)
    assert_answers(session, dying)


def test_a_process_that_crashes_fails_its_step_alone(dying: ThreadPool) -> None:
    session, child = opened(endless_graph()), process_of(dying)
    future = started(session, finite_request(dying), child)
    os.kill(child._process.pid, signal.SIGSEGV)
    os.kill(child._process.pid, signal.SIGCONT)
    with pytest.raises(UnavailableError, match="process that ran this low-priority step"):
        future.result(60)
    values, _ = run(session, finite_request(dying))  # here or in the next one
    assert values == [5]
    assert process_of(dying) is not child
    assert_answers(session, dying)


def test_a_pool_that_ends_takes_its_process_along() -> None:
    pool = ThreadPool("ending", 1, low_priority=True, own_process=True)
    pid = process_of(pool)._process.pid
    assert is_running(pid)
    pool.shutdown()
    until(lambda: not is_running(pid))


def test_the_process_yields_the_processor(pool: ThreadPool) -> None:
    pid = process_of(pool)._process.pid
    assert os.getpriority(os.PRIO_PROCESS, pid) == 19


PROGRAM = """
import sys, time
from runtime.api import ThreadPool
from runtime.sessions.child_process.step_processes import step_processes
pool = ThreadPool("parent", 1, low_priority=True, own_process=True)
while (process := step_processes(pool).take()) is None:
    time.sleep(0.01)
print(process._process.pid, flush=True)
if sys.argv[1] != "exit":
    time.sleep(1000)
"""


@pytest.mark.parametrize("how", ["exit", "wait", "wait while it is stopped"])
def test_it_ends_with_its_parent(how: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, how], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        if how.endswith("stopped"):
            os.kill(pid, signal.SIGSTOP)
        if how != "exit":
            parent.kill()
        parent.wait()
    until(lambda: not is_running(pid))


def test_old_steps_are_forgotten(pool: ThreadPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_process, "_MAX_STEPS", 2)
    process = process_of(pool)
    sessions = [opened(endless_graph()) for _ in range(4)]
    for _ in range(2):
        for session in sessions:
            assert_answers(session, pool)
            assert len(process._sent) <= 2


def test_a_system_without_processes_runs_steps_here(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(name: str) -> StepProcess:
        raise OSError("no more processes")

    monkeypatch.setattr(step_processes_module, "StepProcess", refuse)
    pool = ThreadPool("alone", 1, low_priority=True, own_process=True)
    try:
        feeds = {"limit": np.float32(5), "begin": np.float32(0)}
        request = RunRequest(feeds, ["exit"], pool=pool)
        assert run(opened(endless_graph()), request) == ([5], 0)
        assert "Low-priority steps stay in this process: no more processes" in caplog.text
    finally:
        pool.shutdown()


def test_tracing_stays_here(pool: ThreadPool) -> None:
    session = opened(failing_graph())
    options = pb.RunOptions(trace_level=pb.RunOptions.FULL_TRACE)
    metadata = pb.RunMetadata()
    feeds = {"x": np.ones((1, 2), np.float32)}
    request = RunRequest(feeds, ["product"], (), options, metadata, pool=pool)
    assert run(session, request)[1] == 0
    assert metadata.step_stats.dev_stats


def test_no_more_processes_than_threads() -> None:
    pool = ThreadPool("two", 2, low_priority=True, own_process=True)
    processes = StepProcesses(pool)
    try:
        taken: list[StepProcess] = []
        while len(taken) < 2:
            process = processes.take()
            if process is not None:
                taken.append(process)
            time.sleep(0.005)
        assert processes.take() is None
        assert len(processes._all) == 2
    finally:
        processes.close()
        pool.shutdown()
