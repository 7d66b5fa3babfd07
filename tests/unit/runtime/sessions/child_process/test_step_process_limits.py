"""Limits of child processes: what is not sent, what is not kept, and faults that they survive."""

from __future__ import annotations

import gc
import math
import os
import pathlib
import resource
import signal
import subprocess
import sys
import types
import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

from runtime.api import InternalError, RunRequest, ThreadPool
from runtime.executors.portable_step import PortableStep
from runtime.framework.resources.variable import Variable
from runtime.sessions.child_process import step_process
from runtime.sessions.child_process import step_processes as step_processes_module
from runtime.sessions.child_process.step_processes import step_processes
from runtime.sessions.direct.direct_session import DirectSession
from tests.conformance.case import Graph
from tests.faults import no_descriptors
from tests.unit.runtime.sessions.child_process.child_processes import (
    is_running,
    opened,
    process_of,
    run,
    until,
)

ROOT = pathlib.Path(__file__).parents[5]


@pytest.fixture(scope="module")
def shared_pool() -> Iterator[ThreadPool]:
    pool = ThreadPool("child", 1, low_priority=True, own_process=True)
    yield pool
    pool.shutdown()


@pytest.fixture
def pool(shared_pool: ThreadPool, monkeypatch: pytest.MonkeyPatch) -> ThreadPool:
    """A pool whose child is ready."""
    monkeypatch.setattr(step_processes_module, "_RESTART_SECONDS", 0.0)
    process_of(shared_pool)
    return shared_pool


def negation() -> DirectSession:
    graph = Graph()
    graph.add("Neg", graph.placeholder("float32", "x"), name="y")
    return opened(graph)


def negation_request(pool: ThreadPool) -> RunRequest:
    return RunRequest({"x": np.float32([3])}, ["y"], pool=pool)


def variable_session(size: int) -> DirectSession:
    """A variable `v` of zeros, read by `y`."""
    graph = Graph()
    handle = graph.add("VarHandleOp", name="v", dtype="float32", shape=None, shared_name="v")[0]
    value = graph.placeholder("float32", "x")
    graph.add("AssignVariableOp", handle, value, name="assign", dtype="float32")
    graph.add("ReadVariableOp", handle, name="y", dtype="float32")
    session = opened(graph)
    session.run({"x": np.zeros(size, np.float32)}, (), ["assign"])
    return session


def variable_of(session: DirectSession) -> Variable:
    return session.resources.look_up("", Variable, "v")


# What is sent


def test_a_fed_variable_stays_here(pool: ThreadPool) -> None:
    graph = Graph()
    old = graph.add("VariableV2", name="r", dtype="float32", shape=())[0]
    graph.add("Identity", old, name="y", T="float32", control=["r"])
    request = RunRequest({"r:0": np.float32(9)}, ["y"], pool=pool)
    assert run(opened(graph), request) == ([9], 0)


def test_a_variable_of_variants_stays_here(pool: ThreadPool) -> None:
    graph = Graph()
    handle = graph.add("VarHandleOp", name="v", dtype="variant", shape=(), shared_name="v")[0]
    items = graph.add("EmptyTensorList", np.int32([2]), np.int32(5), element_dtype="float32")[0]
    graph.add("AssignVariableOp", handle, items, name="assign", dtype="variant")
    read = graph.add("ReadVariableOp", handle, name="read", dtype="variant")[0]
    graph.add("TensorListLength", read, name="y")
    session = opened(graph)
    session.run({}, (), ["assign"])
    assert run(session, RunRequest({}, ["y"], pool=pool)) == ([0], 0)


def test_a_value_that_changes_in_place_is_sent_whole(pool: ThreadPool) -> None:
    session = variable_session(2)
    request = RunRequest({}, ["y"], pool=pool)
    variable = variable_of(session)
    started: list[Future[list[Any]]] = []
    session._graph.compiled(request).executor.last_seconds = 1.0  # worth a child

    def change(array: np.ndarray) -> None:
        array[0] = 1
        started.append(session.run_async(request))
        array[1] = 1

    variable.update(lambda _: None)  # from now on only the variable holds the array
    variable.update(change)
    assert started[0].result()[0].tolist() == [1, 1]
    (value,), sent = run(session, request)
    assert (value.tolist(), sent) == ([1, 1], 1)


def test_a_step_that_turns_out_short_comes_back(pool: ThreadPool) -> None:
    session = negation()
    request = negation_request(pool)
    assert run(session, request) == ([-3], 1)
    assert session._graph.compiled(request).executor.last_seconds < 1.0


def test_the_runs_that_compile_a_step_do_not_make_it_long(
    pool: ThreadPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_processes_module, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(step_processes_module, "_SURELY_SECONDS", math.inf)
    session = negation()
    before = step_processes(pool).steps
    sent = []
    for _ in range(5):
        assert session.run_async(negation_request(pool)).result() == [-3]
        sent.append(step_processes(pool).steps - before)
    assert sent == [0, 0, 0, 1, 2]


# What is kept


def test_a_session_takes_its_variables_along(pool: ThreadPool) -> None:
    session = variable_session(1000)
    assert run(session, RunRequest({}, ["y"], pool=pool))[1] == 1
    array = variable_of(session).peek()
    assert array is not None
    gone = weakref.ref(array)
    session.close()
    session.destroy()
    del session, array
    gc.collect()
    assert gone() is None


def test_the_child_forgets_steps_that_are_gone(pool: ThreadPool) -> None:
    process = process_of(pool)
    session = negation()
    assert run(session, negation_request(pool))[1] == 1
    number = next(reversed(process._sent))
    other = negation()
    assert run(other, negation_request(pool))[1] == 1
    del session
    gc.collect()
    assert run(other, negation_request(pool))[1] == 1
    assert number not in process._sent


def test_steps_that_are_sent_again_leave_nothing_behind(
    pool: ThreadPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_process, "_MAX_STEPS", 1)
    sessions = [negation(), negation()]
    for _ in range(3):
        for session in sessions:
            assert run(session, negation_request(pool))[1] == 1
    for session in sessions:
        portable = session._graph.compiled(negation_request(pool)).executor.portable
        assert portable is not None
        assert weakref.getweakrefcount(portable) <= 1


def test_a_step_keeps_only_what_it_names() -> None:
    graph = Graph()
    value = graph.placeholder("float32", "x")
    graph.add("Neg", graph.add("Abs", value, name="between")[0], name="y")
    graph.add("Neg", value, name="other")
    portable = opened(graph)._graph.compiled(RunRequest({"x": 0.0}, ["y"])).executor.portable
    assert portable is not None
    assert set(portable.graph.nodes) == {"x", "y"}
    assert {node.name for node in portable.node_defs()} == {"x", "between", "y"}


# What goes wrong


def test_a_step_that_the_child_cannot_compile_runs_here(
    pool: ThreadPool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    process = process_of(pool)
    session = negation()
    with monkeypatch.context() as patch:
        patch.setattr(PortableStep, "node_defs", lambda self: iter(()))
        assert run(session, negation_request(pool)) == ([-3], 1)
    assert "stays in this process: InvalidArgumentError: Tensor x:0" in caplog.text
    assert run(session, negation_request(pool)) == ([-3], 0)
    assert run(negation(), negation_request(pool)) == ([-3], 1)
    assert process_of(pool) is process


def test_half_a_message_ends_the_process(
    pool: ThreadPool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError("no room")

    process = process_of(pool)
    with monkeypatch.context() as patch:
        patch.setattr(step_process, "receive_tensors", fail)
        with pytest.raises(InternalError, match="MemoryError: no room"):
            run(negation(), negation_request(pool))
    assert process_of(pool) is not process
    assert "A process of thread pool child has ended with code" in caplog.text
    assert run(negation(), negation_request(pool)) == ([-3], 1)


def test_a_terminated_group_leaves_the_end_to_the_parent(pool: ThreadPool) -> None:
    process = process_of(pool)
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(process._process.pid, each)
    assert run(negation(), negation_request(pool)) == ([-3], 1)
    assert process_of(pool) is process


def test_a_fork_leaves_the_children_alone(
    pool: ThreadPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = step_processes(pool)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        processes.close()
    assert run(negation(), negation_request(pool)) == ([-3], 1)


def test_an_interpreter_without_a_program_runs_steps_here(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", None)
    pool = ThreadPool("embedded", 1, low_priority=True, own_process=True)
    try:
        assert run(negation(), negation_request(pool)) == ([-3], 0)
        assert "the interpreter has no program of its own" in caplog.text
    finally:
        pool.shutdown()


@pytest.mark.parametrize("free", range(0, 12, 2))
def test_without_descriptors_steps_run_here_and_a_child_comes_later(
    monkeypatch: pytest.MonkeyPatch, free: int
) -> None:
    monkeypatch.setattr(step_processes_module, "_RESTART_SECONDS", 0.0)
    pool = ThreadPool("starved", 1, low_priority=True, own_process=True)
    try:
        # The first session and step of a process open files.
        negation().run_async(RunRequest({"x": np.float32([3])}, ["y"])).result()
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        with no_descriptors(free):
            assert run(negation(), negation_request(pool)) == ([-3], 0)
        step_processes(pool).close()
        assert len(os.listdir("/proc/self/fd")) <= before
    finally:
        pool.shutdown()
    pool = ThreadPool("fed", 1, low_priority=True, own_process=True)
    try:
        process_of(pool)
        assert run(negation(), negation_request(pool)) == ([-3], 1)
    finally:
        pool.shutdown()


def test_a_process_is_found_ready_beside_thousands_of_connections() -> None:
    pool = ThreadPool("crowded", 1, low_priority=True, own_process=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, hard), hard))
        taken += (os.open(os.devnull, os.O_RDONLY) for _ in range(1100))
        assert process_of(pool)._socket.fileno() >= 1024
        assert run(negation(), negation_request(pool)) == ([-3], 1)
    finally:
        pool.shutdown()
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_processes_that_do_not_start_are_started_ever_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[float] = []
    now = [0.0]

    def refuse(name: str) -> None:
        started.append(now[0])
        raise OSError("no more processes")

    monkeypatch.setattr(step_processes_module, "StepProcess", refuse)
    monkeypatch.setattr(
        step_processes_module, "time", types.SimpleNamespace(monotonic=lambda: now[0])
    )
    pool = ThreadPool("refused", 1, low_priority=True, own_process=True)
    processes = step_processes(pool)
    try:
        for second in range(0, 200, 10):
            now[0] = float(second)
            assert processes.take() is None
    finally:
        pool.shutdown()
    assert started == [0, 20, 60, 140]


PROGRAM = """
import time
from runtime.api import ThreadPool
from runtime.sessions.child_process.step_processes import step_processes
pool = ThreadPool("parent", 1, low_priority=True, own_process=True)
while (process := step_processes(pool).take()) is None:
    assert all(each.is_alive for each in step_processes(pool)._all), "it did not start"
    time.sleep(0.01)
print(process._process.pid, flush=True)
"""


def test_what_lies_in_the_current_folder_is_not_imported(tmp_path: pathlib.Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('imported')")
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM], cwd=tmp_path, check=False, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    until(lambda: not is_running(int(done.stdout)))
