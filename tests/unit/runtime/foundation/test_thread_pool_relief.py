"""Threads that a pool adds: for kernels of ended steps, and for owners behind one that has all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from runtime.foundation import thread_pool
from runtime.foundation.errors import ResourceExhaustedError
from runtime.foundation.thread_pool import ThreadPool

SECONDS = 30  # to wait for a thread


class Block:
    """A task that blocks its thread until `release`."""

    def __init__(self) -> None:
        self.begun, self._end = threading.Event(), threading.Event()
        self.ended: list[str] = []  # the step's errors

    def __call__(self) -> None:
        self.begun.set()
        assert self._end.wait(SECONDS)

    def release(self) -> None:
        self._end.set()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "RELIEF_SECONDS", 0.001)
    monkeypatch.setattr(thread_pool, "BUSY_SECONDS", 0.0)


@pytest.fixture
def block() -> Iterator[Callable[..., Block]]:
    """Schedule a block on a pool and wait until it runs."""
    made: list[Block] = []

    def schedule(pool: ThreadPool, owner: object = None) -> Block:
        task = Block()
        made.append(task)
        pool.schedule(task, owner=owner, ended=task.ended)
        assert task.begun.wait(SECONDS)
        return task

    yield schedule
    for each in made:
        each.release()


def ran(pool: ThreadPool, owner: object = None) -> threading.Event:
    event = threading.Event()
    pool.schedule(event.set, owner=owner)
    return event


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(SECONDS * 1000):
        if condition():
            return
        threading.Event().wait(0.001)
    raise AssertionError("waited in vain")


def threads_of(pool: ThreadPool) -> int:
    return sum(thread.name == f"tf_{pool.name}" for thread in threading.enumerate())


def test_a_thread_that_is_stuck_behind_an_ended_step_is_replaced(block):
    pool = ThreadPool("stuck", 2)
    stuck = [block(pool) for _ in range(2)]
    waiting = ran(pool)
    for each in stuck:
        each.ended.append("cancelled")
    assert waiting.wait(SECONDS)
    assert pool.stats().stuck == 2
    assert not pool.is_exhausted
    for each in stuck:
        each.release()
    wait_until(lambda: threads_of(pool) == 2)  # the stuck threads have ended
    assert pool.stats().num_threads == 2
    assert ran(pool).wait(SECONDS)
    pool.shutdown()


def test_a_pool_replaces_as_many_threads_as_it_has_and_is_exhausted_then(block):
    pool = ThreadPool("exhausted", 1)
    first = block(pool)
    first.ended.append("cancelled")
    second = block(pool)  # by the thread that replaced the first
    assert not pool.is_exhausted
    second.ended.append("cancelled")
    assert pool.is_exhausted
    waiting = ran(pool)
    assert not waiting.wait(0.05)
    assert threads_of(pool) == 2
    first.release()
    assert waiting.wait(SECONDS)
    assert not pool.is_exhausted
    pool.shutdown()


def test_steps_that_have_not_ended_keep_their_threads(block):
    pool = ThreadPool("busy", 1)
    running = block(pool)
    waiting = ran(pool)
    assert not waiting.wait(0.05)
    assert threads_of(pool) == 1
    running.release()
    assert waiting.wait(SECONDS)
    pool.shutdown()


def test_one_owner_with_all_threads_does_not_starve_the_others(block):
    pool = ThreadPool("owned", 2)
    endless = [block(pool, "greedy") for _ in range(2)]
    own = ran(pool, "greedy")
    assert ran(pool, "modest").wait(SECONDS)
    assert ran(pool, None).wait(SECONDS)
    assert not own.is_set()  # an owner has at most the threads that the pool was made with
    assert ran(pool, "third").wait(SECONDS)
    assert threads_of(pool) == 3
    for each in endless:
        each.release()
    assert own.wait(SECONDS)
    wait_until(lambda: threads_of(pool) == 2)
    pool.shutdown()


def test_an_owner_alone_gets_no_more_threads(block):
    pool = ThreadPool("alone", 1)
    running = block(pool, "only")
    waiting = ran(pool, "only")
    assert not waiting.wait(0.05)
    assert threads_of(pool) == 1
    running.release()
    assert waiting.wait(SECONDS)
    pool.shutdown()


def test_held_tasks_run_after_shutdown(block):
    pool = ThreadPool("held", 1)
    running = block(pool, "greedy")
    assert ran(pool, "modest").wait(SECONDS)  # on an additional thread
    own = [ran(pool, "greedy") for _ in range(3)]
    pool.shutdown()
    running.release()
    assert all(each.wait(SECONDS) for each in own)
    wait_until(lambda: threads_of(pool) == 0)


def test_many_tasks_of_many_owners_all_run():
    pool = ThreadPool("many", 2, queue_size=100_000)
    left = threading.Semaphore(0)
    for number in range(3000):
        pool.schedule(left.release, owner=number % 7 or None)
    for _ in range(3000):
        assert left.acquire(timeout=SECONDS)
    wait_until(lambda: pool.stats().completed == 3000)
    pool.shutdown()
    with pytest.raises(ResourceExhaustedError, match="has been shut down"):
        ran(pool)


def test_all_superfluous_threads_end_when_the_last_task_does() -> None:
    pool = ThreadPool("test", 2)
    with pool._lock:
        pool._start_threads(3)
        threads = list(pool._threads)
    ended = threading.Event()
    pool.at_shutdown(ended.set)
    done = threading.Event()
    pool.schedule(done.set)
    assert done.wait(SECONDS)
    for thread in threads:
        thread.join(0.5)  # two of them stay
    assert sum(each.is_alive() for each in threads) == pool.num_threads
    again = threading.Event()
    pool.schedule(again.set)
    assert again.wait(SECONDS)
    pool.shutdown()
    assert ended.wait(SECONDS)
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
