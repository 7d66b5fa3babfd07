"""Work that nobody waits for any more ends, and nobody waits for it."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from runtime.errors import DeadlineExceededError
from server.codec.large.slices import pause_if_due
from server.codec.serving.requests import parse_document
from server.steps.step_runner import OFF_LOOP_BYTES, off_loop
from server.steps.time_limit import OutOfTimeError, call_until, check_time, in_time

LONG = 60.0  # seconds


def test_work_ends_at_its_limit_and_leaves_none() -> None:
    with pytest.raises(DeadlineExceededError, match="Timed out waiting for notification"):
        call_until(time.monotonic() + 0.01, lambda: [pause_if_due() for _ in range(1 << 40)])
    check_time()


def test_work_that_is_late_does_not_begin() -> None:
    with pytest.raises(DeadlineExceededError):
        call_until(time.monotonic(), pytest.fail, "called")


def test_a_limit_within_a_limit_does_not_outlast_it() -> None:
    def work() -> int:
        assert call_until(time.monotonic() + LONG, int) == 0
        time.sleep(0.02)
        with pytest.raises(OutOfTimeError):
            check_time()
        return 1

    assert call_until(time.monotonic() + 0.01, work) == 1


def test_a_large_body_is_not_read_further_after_the_limit() -> None:
    body = b'{"instances":[' + b",".join([b"null"] * 2_000_000) + b"]}"
    began = time.thread_time()
    with pytest.raises(DeadlineExceededError):
        call_until(time.monotonic() + 0.002, parse_document, body)
    assert time.thread_time() - began < 0.1


def test_the_wait_ends_at_the_deadline_though_the_thread_does_not() -> None:
    async def scenario() -> None:
        go_on = threading.Event()
        try:
            with pytest.raises(DeadlineExceededError):
                deadline = time.monotonic() + 0.02
                await off_loop(OFF_LOOP_BYTES, go_on.wait, LONG, deadline=deadline)
            with pytest.raises(DeadlineExceededError):
                await off_loop(OFF_LOOP_BYTES, pytest.fail, "called", deadline=time.monotonic())
        finally:
            go_on.set()
        assert await off_loop(OFF_LOOP_BYTES, int, deadline=time.monotonic() + LONG) == 0

    asyncio.run(scenario())


def test_errors_and_results_that_come_in_time_are_those_of_the_work() -> None:
    async def fail() -> None:
        raise ValueError("no")

    async def scenario() -> None:
        with pytest.raises(ValueError, match="no"):
            await in_time(time.monotonic() + LONG, fail())
        with pytest.raises(ValueError, match="no"):
            await in_time(None, fail())
        assert await in_time(None, asyncio.sleep(0, "yes")) == "yes"

    asyncio.run(scenario())
