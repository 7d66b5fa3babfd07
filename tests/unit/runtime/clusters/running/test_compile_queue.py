"""The compile queue: order, dropped jobs, interrupts, and errors that end no thread."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

import pytest

from runtime.clusters.running.compile_queue import CompileQueue, Interrupt

WAIT_SECONDS = 30.0


def test_jobs_run_in_order_in_one_thread() -> None:
    jobs = CompileQueue()
    seen: list[tuple[int, int]] = []
    for number in range(5):
        jobs.submit(lambda number=number: seen.append((number, threading.get_ident())), Interrupt())
    assert jobs.wait_until_idle(WAIT_SECONDS)
    assert [number for number, _ in seen] == list(range(5))
    assert len({thread for _, thread in seen}) == 1


def test_a_job_whose_interrupt_is_set_is_dropped() -> None:
    jobs = CompileQueue()
    interrupt = Interrupt()
    interrupt.set()
    ran: list[int] = []
    jobs.submit(lambda: ran.append(1), interrupt)
    assert jobs.wait_until_idle(WAIT_SECONDS)
    assert ran == []


@pytest.mark.parametrize("error", [ZeroDivisionError("division"), SystemExit(1)])
def test_a_job_that_raises_is_logged_and_the_next_one_runs(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise error

    jobs = CompileQueue()
    with caplog.at_level(logging.ERROR):
        jobs.submit(fail, Interrupt())
        assert jobs.wait_until_idle(WAIT_SECONDS)
    assert "A job of the cluster compiler failed" in caplog.text


def test_an_interrupt_stops_native_work_once() -> None:
    interrupt = Interrupt()
    stopped: list[str] = []
    assert interrupt.begin(lambda: stopped.append("first"))
    interrupt.end()
    assert interrupt.begin(lambda: stopped.append("second"))
    interrupt.set()
    interrupt.set()
    assert stopped == ["second"]
    assert not interrupt.begin(lambda: stopped.append("third"))


ENDS_WHILE_COMPILING = """
import threading
from runtime.clusters.running.compile_queue import CompileQueue, Interrupt
jobs, interrupt, begun, stopped = CompileQueue(), Interrupt(), threading.Event(), threading.Event()
def compile_for_ever():
    interrupt.begin(stopped.set)
    begun.set()
    stopped.wait()
jobs.submit(compile_for_ever, interrupt)
jobs.submit(threading.Event().wait, Interrupt())
begun.wait()
"""


def test_the_interpreter_ends_while_a_job_runs_and_another_waits() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ENDS_WHILE_COMPILING],
        capture_output=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
