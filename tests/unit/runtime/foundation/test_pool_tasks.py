"""Tests of the tasks that the threads of a pool run, and of what follows a task."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator

import pytest

from runtime.foundation.pool_tasks import PoolTask, RunningTasks, call_all


def task_of(owner: Hashable, ended: list[object], started: float = 0.0) -> PoolTask:
    context = contextvars.copy_context()
    return PoolTask(lambda: None, time.monotonic(), 0, context, owner, ended, started)


@contextlib.contextmanager
def running(begun: list[PoolTask]) -> Iterator[RunningTasks]:
    """Run each task in a thread of its own until the end of the block."""
    tasks, end, have_begun = RunningTasks(), threading.Event(), threading.Barrier(len(begun) + 1)

    def work(task: PoolTask) -> None:
        tasks.begin(task)
        have_begun.wait()
        end.wait()
        tasks.end()

    threads = [threading.Thread(target=work, args=(each,)) for each in begun]
    for each in threads:
        each.start()
    have_begun.wait()
    try:
        yield tasks
    finally:
        end.set()
        for each in threads:
            each.join()


def test_a_thread_has_one_task() -> None:
    tasks = RunningTasks()
    tasks.begin(task_of("a", []))
    assert len(tasks) == 1
    tasks.end()
    assert len(tasks) == 0


def test_tasks_of_ended_steps_are_stuck() -> None:
    ended: list[object] = []
    begun = [task_of("a", ended), task_of("a", []), task_of("b", ended)]
    with running(begun) as tasks:
        assert tasks.stuck == 0
        ended.append("cancelled")
        assert tasks.stuck == 2
        assert [tasks.of_owner(owner) for owner in ("a", "b", None)] == [2, 1, 0]
    assert (len(tasks), tasks.stuck) == (0, 0)


@pytest.mark.parametrize(
    ("owners", "age", "is_busy"),
    [
        (["a", "a"], 2.0, True),
        (["a", "b"], 2.0, False),  # each owner has one of two threads
        (["a", "a"], 0.0, False),  # both have just begun
        ([None, None], 2.0, False),  # tasks without an owner are no owner's
    ],
)
def test_an_owner_is_busy_with_all_threads_for_some_time(
    owners: list[Hashable], age: float, is_busy: bool
) -> None:
    with running([task_of(owner, [], time.monotonic() - age) for owner in owners]) as tasks:
        assert tasks.has_busy_owner(2, 1.0) is is_busy


def test_callbacks_are_called_though_one_fails_and_one_adds_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    called: list[str] = []
    callbacks: list[Callable[[], object]] = [
        lambda: called.append("first"),
        lambda: 1 / 0,
        lambda: callbacks.append(lambda: called.append("added")),
    ]
    with caplog.at_level(logging.ERROR):
        call_all(callbacks, "low")
    assert called == ["first", "added"]
    assert callbacks == []
    assert "What follows a task of thread pool low failed" in caplog.text
