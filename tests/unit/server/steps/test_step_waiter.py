import asyncio
import concurrent.futures
import gc
import time
import weakref

import pytest

from runtime.foundation.errors import CancelledError, DeadlineExceededError, InternalError
from runtime.framework.cancellation import CancellationManager
from server.steps.step_waiter import wait_for_step


def wait(future, cancellation=None, deadline=None):
    return asyncio.run(wait_for_step(future, cancellation or CancellationManager(), deadline))


def test_a_finished_step_answers_at_once():
    future = concurrent.futures.Future()
    future.set_result(["y"])
    assert wait(future) == ["y"]


def test_a_step_that_finishes_on_another_thread_wakes_the_loop():
    with concurrent.futures.ThreadPoolExecutor() as threads:
        started = concurrent.futures.Future()

        async def scenario():
            future = threads.submit(started.result)
            waiter = asyncio.create_task(wait_for_step(future, CancellationManager(), None))
            await asyncio.sleep(0)
            started.set_result("y")
            return await waiter

        assert asyncio.run(scenario()) == "y"


class Kept:
    """Something large that a caller holds."""


def fail_and_forget() -> weakref.ref:
    """Fail a step whose caller holds something; return a reference to it."""
    kept = Kept()
    future = concurrent.futures.Future()
    future.set_exception(InternalError("broken"))
    try:
        wait_for_step(future, CancellationManager(), None).send(None)
    except InternalError as error:
        assert error.message == "broken"
        assert error is not future.exception()
    return weakref.ref(kept)


def test_a_failed_step_keeps_nothing_of_its_caller():
    gc.disable()
    try:
        assert fail_and_forget()() is None
    finally:
        gc.enable()


def test_the_step_s_error_is_raised():
    future = concurrent.futures.Future()
    future.set_exception(InternalError("broken"))
    with pytest.raises(InternalError, match="broken"):
        wait(future)


def test_the_deadline_cancels_the_step_and_answers_though_it_goes_on():
    future, cancellation = concurrent.futures.Future(), CancellationManager()
    with pytest.raises(DeadlineExceededError, match="Timed out waiting for notification"):
        wait(future, cancellation, time.monotonic() + 0.001)
    assert cancellation.is_cancelled
    future.set_result("too late")  # and nobody minds


def test_a_deadline_that_has_passed_answers_at_once():
    with pytest.raises(DeadlineExceededError):
        wait(concurrent.futures.Future(), deadline=time.monotonic() - 1)


def test_a_cancellation_answers_at_once():
    cancellation = CancellationManager()
    cancellation.cancel(CancelledError("gone"))
    with pytest.raises(CancelledError, match="gone"):
        wait(concurrent.futures.Future(), cancellation)


def test_cancelling_the_task_that_waits_cancels_the_step():
    cancellation = CancellationManager()

    async def scenario():
        step = wait_for_step(concurrent.futures.Future(), cancellation, None)
        task = asyncio.create_task(step)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert cancellation.is_cancelled
