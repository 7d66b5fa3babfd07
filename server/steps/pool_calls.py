"""Calls on the threads of a pool: their results, deadlines and cancellation."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from runtime.api import CancellationManager, ThreadPool
from server.steps.step_waiter import wait_for_step

T = TypeVar("T")


def submit(
    pool: ThreadPool, work: Callable[[], T], owner: Hashable = None, ended: Sequence[object] = ()
) -> concurrent.futures.Future[T]:
    """Call `work` on the pool; the future receives its result or its exception.

    `owner` and `ended` are as in `ThreadPool.schedule`.
    """
    future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def task() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    pool.schedule(task, owner=owner, ended=ended)
    return future


async def call_on(pool: ThreadPool, work: Callable[[], T], seconds: float, owner: Hashable) -> T:
    """Call `work` on `pool` and wait for its result, for at most `seconds`.

    Raises DeadlineExceededError after that time; `work` is then to end at its next `check_task`.
    If the waiting task is cancelled, `work` is too.
    """
    cancellation = CancellationManager()
    future = submit(pool, work, owner, cancellation.error)
    result: T = await wait_for_step(future, cancellation, time.monotonic() + seconds)
    return result
