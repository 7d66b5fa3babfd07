"""Loops that look at whether anybody waits for their result."""

from __future__ import annotations

import threading

import pytest

from runtime.foundation import running_task
from runtime.foundation.errors import CancelledError
from runtime.foundation.running_task import check_task, checked
from runtime.foundation.thread_pool import ThreadPool

SECONDS = 30  # to wait for a thread


def test_a_thread_without_a_task_is_never_stopped():
    check_task()
    assert list(checked(range(10))) == list(range(10))


def test_a_task_stops_when_its_step_has_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(running_task, "BLOCK", 3)
    pool, ended, seen = ThreadPool("loop", 1), [], []
    caught: list[CancelledError] = []
    done = threading.Event()

    def task() -> None:
        try:
            for item in checked(range(100)):
                seen.append(item)
                if item == 4:
                    ended.append(CancelledError("The step has ended"))
        except CancelledError as error:
            caught.append(error)
        done.set()

    pool.schedule(task, ended=ended)
    assert done.wait(SECONDS)
    assert seen == [0, 1, 2, 3, 4, 5]  # to the end of the block
    assert caught[0].message == "The step has ended"
    assert caught[0] is not ended[0]  # another thread may raise that one

    free = threading.Event()
    pool.schedule(lambda: (check_task(), free.set()))  # the next task has not ended
    assert free.wait(SECONDS)
    pool.shutdown()
