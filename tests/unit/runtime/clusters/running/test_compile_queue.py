"""The compile queue: order, dropped jobs, interrupts, and errors that end no thread."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

import pytest

from runtime.clusters.running import compile_queue
from runtime.clusters.running.compile_queue import CompileQueue
from runtime.clusters.running.interrupt import Interrupt
from runtime.foundation.priority_gate import PriorityGate

WAIT_SECONDS = 30.0


def test_jobs_run_in_order_in_one_thread() -> None:
    jobs, all_wait = CompileQueue(), threading.Event()
    seen: list[tuple[int, int]] = []
    jobs.submit(all_wait.wait, Interrupt())
    for number in range(5):
        jobs.submit(lambda number=number: seen.append((number, threading.get_ident())), Interrupt())
    all_wait.set()
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


def test_memory_is_returned_once_after_the_last_job_when_no_step_runs() -> None:
    steps, seen, cleared = PriorityGate(), [], threading.Event()

    def clear_up() -> None:
        seen.append(steps.pending)
        cleared.set()

    steps.enter()
    jobs = CompileQueue(clear_up, steps)
    for number in range(3):
        jobs.submit(lambda number=number: seen.append(f"job {number}"), Interrupt())
    assert jobs.wait_until_idle(WAIT_SECONDS)
    assert seen == ["job 0", "job 1", "job 2"]
    steps.leave()
    assert cleared.wait(WAIT_SECONDS)
    assert seen[3:] == [0]


def test_memory_is_returned_at_last_beside_steps_without_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compile_queue, "_BUSY_SECONDS", 0.0)
    steps, cleared = PriorityGate(), threading.Event()
    steps.enter()  # and it never ends
    jobs = CompileQueue(cleared.set, steps)
    jobs.submit(lambda: None, Interrupt())
    assert cleared.wait(WAIT_SECONDS)


def test_the_thread_ends_when_nothing_is_left_to_do_and_the_next_job_starts_another() -> None:
    jobs, threads = CompileQueue(), list[threading.Thread]()

    def note_thread() -> None:
        threads.append(threading.current_thread())

    for _ in range(2):
        jobs.submit(note_thread, Interrupt())
        assert jobs.wait_until_idle(WAIT_SECONDS)
        threads[-1].join(WAIT_SECONDS)
        assert not threads[-1].is_alive()
    assert threads[0] is not threads[1]


def test_a_job_that_comes_while_memory_is_returned_runs_in_the_same_thread() -> None:
    threads: list[threading.Thread] = []

    def note_thread() -> None:
        threads.append(threading.current_thread())

    def clear_up() -> None:
        if len(threads) == 1:
            jobs.submit(note_thread, Interrupt())

    jobs = CompileQueue(clear_up)
    jobs.submit(note_thread, Interrupt())
    assert jobs.wait_until_idle(WAIT_SECONDS)
    threads[0].join(WAIT_SECONDS)
    assert threads == [threads[0]] * 2


ENDS_WHILE_COMPILING = """
import threading
from runtime.clusters.running.compile_queue import CompileQueue
from runtime.clusters.running.interrupt import Interrupt
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
