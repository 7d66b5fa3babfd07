"""Cases whose steps can run in the child process of a low-priority pool run there."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import protos as pb
from runtime.api import OpError, RunRequest, SessionOptions, ThreadPool, new_session
from runtime.executors.step import Executor
from runtime.framework.cancellation import CancellationManager
from runtime.sessions.child_process import step_processes as step_processes_module
from runtime.sessions.child_process.step_processes import step_processes
from runtime.sessions.child_process.variable_values import SentVariables
from runtime.sessions.direct.direct_session import DirectSession
from tests.conformance.case import assert_matches, cases_of, read_golden
from tests.conformance.test_cases import FAMILIES

FEW = 150  # fewer than twice as many cases of a family are run, as the same code transfers all


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPool]:
    """Yield a pool whose child process is ready."""
    pool = ThreadPool("cases", 1, low_priority=True, own_process=True)
    processes = step_processes(pool)
    deadline = time.monotonic() + 60
    while (process := processes.take()) is None:
        assert time.monotonic() < deadline, "the child process did not start"
        time.sleep(0.01)
    processes.give_back(process)
    yield pool
    pool.shutdown()


def _is_sent(session: DirectSession, executor: Executor) -> bool:
    portable = executor.portable
    step = session._new_step(CancellationManager(), None)
    return portable is not None and SentVariables(portable).changed(step) is not None


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str, pool: ThreadPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_processes_module, "WORTH_SECONDS", 0.0)
    cases = cases_of(family)
    golden = read_golden(family)
    processes = step_processes(pool)
    for case in cases[:: max(1, len(cases) // FEW)]:
        if any(answer.code for answer in golden[case.name][1]):
            continue  # only cases whose steps all succeed are run
        session = new_session(
            SessionOptions(config=pb.ConfigProto(inter_op_parallelism_threads=-1))
        )
        session.create(case.graph)
        for step, want in zip(case.steps, golden[case.name][1], strict=True):
            request = RunRequest(step.feeds, step.fetches, step.targets, pool=pool)
            executor = session._graph.compiled(request).executor
            sent = processes.steps + _is_sent(session, executor)
            executor.last_seconds = 1.0
            try:
                values = session.run_async(request).result()
            except OpError as error:
                raise AssertionError(f"{case.name}: {error.message}") from error
            assert_matches(case, values, want)
            assert processes.steps == sent, case.name
