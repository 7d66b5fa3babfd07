"""Tasks that run in the thread that would wait for them, in place of a thread of the pool."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import os
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from runtime.foundation import thread_pool
from runtime.foundation.intra_op_pool import set_thread_width, thread_width
from runtime.foundation.priority_gate import gate
from runtime.foundation.running_task import check_task
from runtime.foundation.task_trace import TaskEvent, current_trace_id, set_task_tracer
from runtime.foundation.thread_pool import ThreadPool

SECONDS = 30  # to wait for a thread


def nothing() -> None:
    """A task that does nothing."""


@pytest.fixture
def pool() -> Iterator[ThreadPool]:
    made = ThreadPool("lent", 1, intra_op_threads=3)
    yield made
    made.shutdown()


def in_thread(call: Callable[[], object]) -> object:
    with concurrent.futures.ThreadPoolExecutor(1) as callers:
        return callers.submit(call).result(SECONDS)


def counts(pool: ThreadPool) -> tuple[int, int, int]:
    stats = pool.stats()
    return stats.queued, stats.running, stats.completed


def test_it_counts_as_a_task_of_the_pool(pool: ThreadPool) -> None:
    seen: list[object] = []
    pending = gate.pending

    def task() -> None:
        seen.extend((threading.current_thread(), counts(pool), pool.is_current, thread_width()))
        seen.append(gate.pending - pending)

    width = set_thread_width(5)
    try:
        assert pool.run_here(task)
        assert thread_width() == 5
    finally:
        set_thread_width(width)
    assert seen == [threading.current_thread(), (0, 1, 0), True, 3, 1]
    assert counts(pool) == (0, 0, 1)
    assert not pool.is_current
    assert gate.pending == pending
    assert pool.stats().run_seconds_total > 0


def test_tracers_see_it(pool: ThreadPool) -> None:
    seen = []
    set_task_tracer(lambda event, trace_id, name: seen.append((event, trace_id, name)))
    try:
        assert pool.run_here(lambda: seen.append(current_trace_id()))
    finally:
        set_task_tracer(None)
    number = seen[0][1]
    assert seen == [
        (TaskEvent.SCHEDULED, number, "lent"),
        (TaskEvent.BEGUN, number, "lent"),
        number,
        (TaskEvent.ENDED, number, "lent"),
    ]
    assert current_trace_id() == 0


def test_context_variables_do_not_leak_out_of_it(pool: ThreadPool) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("before")
    seen = []
    pool.run_here(lambda: (seen.append(variable.get()), variable.set("changed")))
    assert [*seen, variable.get()] == ["before", "before"]


def test_what_follows_it_sees_it_counted(pool: ThreadPool) -> None:
    seen = []
    pool.run_here(lambda: pool.after_task(lambda: seen.append(counts(pool))))
    assert seen == [(0, 0, 1)]


@pytest.mark.parametrize(("threads", "at_once"), [(1, 0), (3, 2)])
def test_the_thread_whose_place_it_takes_stays_idle(threads: int, at_once: int) -> None:
    pool = ThreadPool("limited", threads)
    begun, go_on = threading.Semaphore(0), threading.Event()
    ended = threading.Semaphore(0)

    def block() -> None:
        begun.release()
        assert go_on.wait(SECONDS)
        ended.release()

    def task() -> None:
        for _ in range(4):
            pool.schedule(block)
        for _ in range(at_once):
            assert begun.acquire(timeout=SECONDS)
        assert not begun.acquire(timeout=0.02)
        assert counts(pool) == (4 - at_once, 1 + at_once, 0)
        go_on.set()

    assert pool.run_here(task)
    for _ in range(4):
        assert ended.acquire(timeout=SECONDS)
    pool.shutdown()


def test_it_does_not_overtake_what_waits(pool: ThreadPool) -> None:
    begun, go_on = threading.Event(), threading.Event()
    pool.schedule(lambda: (begun.set(), go_on.wait(SECONDS)))
    assert begun.wait(SECONDS)
    assert not pool.run_here(nothing)  # the thread is busy
    waiting = threading.Event()
    pool.schedule(waiting.set)
    assert not pool.run_here(nothing)
    go_on.set()
    assert waiting.wait(SECONDS)


def test_threads_that_run_none(pool: ThreadPool) -> None:
    other = ThreadPool("other", 1)
    for each in (pool, other):
        done: concurrent.futures.Future[bool] = concurrent.futures.Future()
        each.schedule(lambda done=done: done.set_result(pool.run_here(nothing)))  # type: ignore[misc]
        assert done.result(SECONDS) is False  # a thread of a pool
    seen = []
    wide = ThreadPool("wide", 2)
    assert wide.run_here(lambda: seen.append(wide.run_here(nothing)))
    assert seen == [False]  # it has a task already
    for each in (other, wide):
        each.shutdown()

    async def call() -> bool:
        return pool.run_here(nothing)

    assert asyncio.run(call()) is False
    assert pool.run_here(nothing)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads have no nice value")
def test_a_thread_of_another_nice_value_runs_none(pool: ThreadPool) -> None:
    def call() -> bool:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        return pool.run_here(nothing)

    assert in_thread(call) is False
    assert in_thread(lambda: pool.run_here(nothing)) is True


def test_a_low_priority_pool_lets_nobody_run_its_tasks() -> None:
    pool = ThreadPool("low", 1, low_priority=True)
    assert not pool.run_here(nothing)
    pool.shutdown()


def test_an_error_is_logged(pool: ThreadPool, caplog: pytest.LogCaptureFixture) -> None:
    assert pool.run_here(lambda: 1 / 0)
    assert "A task of thread pool lent failed" in caplog.text
    assert counts(pool) == (0, 0, 1)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_is_raised(pool: ThreadPool, error: type[BaseException]) -> None:
    def stop() -> None:
        raise error

    with pytest.raises(error):
        pool.run_here(stop)
    assert counts(pool) == (0, 0, 1)
    assert pool.run_here(nothing)


def test_shutdown_waits_for_it() -> None:
    pool = ThreadPool("ending", 2)
    ended = threading.Event()
    pool.at_shutdown(ended.set)
    ran = threading.Event()

    def task() -> None:
        pool.schedule(ran.set)
        pool.shutdown()
        for thread in list(pool._threads):
            thread.join(SECONDS)
        assert ran.wait(SECONDS)
        assert not ended.is_set()

    assert pool.run_here(task)
    assert ended.is_set()
    assert counts(pool) == (0, 0, 2)
    assert not pool.run_here(nothing)


def test_its_thread_is_replaced_if_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "RELIEF_SECONDS", 0.001)
    pool, ran = ThreadPool("relieved", 1), threading.Event()
    ended: list[object] = []

    def task() -> None:
        check_task()
        pool.schedule(ran.set)
        assert not ran.wait(0.02)
        ended.append("cancelled")
        assert ran.wait(SECONDS)
        assert pool.stats().stuck == 1

    assert pool.run_here(task, ended=ended)
    for _ in range(SECONDS * 1000):
        if sum(thread.is_alive() for thread in pool._threads) == 1:
            break
        threading.Event().wait(0.001)
    assert len(pool._threads) == 1
    again = threading.Event()
    pool.schedule(again.set)
    assert again.wait(SECONDS)
    pool.shutdown()


def test_many_threads_never_run_more_than_the_pool_has() -> None:
    pool, lock = ThreadPool("many", 2), threading.Lock()
    running, most, here = 0, 0, 0
    left = threading.Semaphore(0)

    def task() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.0001)
        with lock:
            running -= 1
        left.release()

    def caller(owner: int) -> None:
        nonlocal here
        for _ in range(200):
            if pool.run_here(task, owner=owner):
                here += 1
            else:
                pool.schedule(task, owner=owner)

    callers = [threading.Thread(target=caller, args=(number,)) for number in range(4)]
    for each in callers:
        each.start()
    for _ in range(800):
        assert left.acquire(timeout=SECONDS)
    for each in callers:
        each.join(SECONDS)
    assert most == 2
    assert here > 0
    ended = threading.Event()
    pool.at_shutdown(ended.set)
    pool.shutdown()
    assert ended.wait(SECONDS)
    assert counts(pool) == (0, 0, 800)
