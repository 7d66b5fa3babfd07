"""Helpers of tests that run steps in the child process of a low-priority pool."""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable
from typing import Any

from runtime.api import RunRequest, SessionOptions, ThreadPool, new_session
from runtime.sessions.child_process.step_process import StepProcess
from runtime.sessions.child_process.step_processes import step_processes
from runtime.sessions.direct.direct_session import DirectSession
from tests.conformance.case import Graph

DEADLINE_SECONDS = 60.0


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


def process_of(pool: ThreadPool) -> StepProcess:
    """The pool's child, once it is ready."""
    taken: list[StepProcess] = []

    def take() -> bool:
        process = step_processes(pool).take()
        if process is not None:
            step_processes(pool).give_back(process)
            taken.append(process)
        return bool(taken)

    until(take)
    return taken[0]


def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def opened(graph: Graph, **options: Any) -> DirectSession:
    session = new_session(SessionOptions(**options))
    assert isinstance(session, DirectSession)
    session.create(graph.graph_def)
    return session


def run(session: DirectSession, request: RunRequest) -> tuple[list[Any], int]:
    """The fetched values, and the number of steps sent to the child; a first run is not sent."""
    assert request.pool is not None
    session._graph.compiled(request).executor.last_seconds = 1.0
    before = step_processes(request.pool).steps
    values = session.run_async(request).result()
    return values, step_processes(request.pool).steps - before
