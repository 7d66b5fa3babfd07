"""Wait on the event loop until a step ends, reaches its deadline or is cancelled.

The wait ends at the deadline even if a kernel of the step still runs.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import time
from collections.abc import Callable
from typing import Any

from runtime.api import CancellationManager
from runtime.errors import CancelledError, DeadlineExceededError, OpError

TIMED_OUT = "Timed out waiting for notification"  # TF: direct_session.cc (WaitForNotification)


async def wait_for_step(
    future: concurrent.futures.Future[Any],
    cancellation: CancellationManager,
    deadline: float | None,
) -> Any:
    """Wait for a step that was started with `cancellation`, and return its result.

    `deadline` is an instant of `time.monotonic()`. Raises the step's error, DeadlineExceededError
    at the deadline, or the error of the cancellation as soon as there is one.
    """
    if future.done():
        return _result_of(future)
    loop = asyncio.get_running_loop()
    woken = asyncio.Event()

    def wake(_: object = None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, so no task waits
            loop.call_soon_threadsafe(woken.set)

    future.add_done_callback(wake)
    token = cancellation.add_callback(wake)
    timer = _cancel_at(deadline, cancellation, loop)
    try:
        if not cancellation.is_cancelled:
            await woken.wait()
    except asyncio.CancelledError:  # the waiting task was cancelled, so the step must be too
        cancellation.cancel(CancelledError("The request was cancelled."))
        raise
    finally:
        if timer is not None:
            timer.cancel()
        cancellation.remove_callback(token)
    if future.done():
        return _result_of(future)
    raise cancellation.copy_of_error()


def _result_of(future: concurrent.futures.Future[Any]) -> Any:
    """Return the result of a step that is done, or raise a copy of its error.

    The error itself is in the future, which the frames of its traceback would refer to: a cycle
    that keeps the session in memory until the garbage collector runs.
    """
    error = future.exception()
    if isinstance(error, OpError):
        raise error.copy()
    return future.result()


def _cancel_at(
    deadline: float | None, cancellation: CancellationManager, loop: asyncio.AbstractEventLoop
) -> asyncio.TimerHandle | None:
    if deadline is None:
        return None
    expire: Callable[[], object] = lambda: cancellation.cancel(  # noqa: E731 - one line
        DeadlineExceededError(TIMED_OUT)
    )
    return loop.call_later(deadline - time.monotonic(), expire)
