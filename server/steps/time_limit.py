"""The time limit of work on another thread whose result nobody waits for after a deadline.

A thread cannot be ended from outside. Work on large content looks at the limit itself, between its
slices, so that it does not go on for a client that has its answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from runtime.errors import DeadlineExceededError
from server.steps.step_waiter import TIMED_OUT

T = TypeVar("T")


class OutOfTimeError(Exception):
    """Ends work at its limit; no OpError, so that nothing takes it for a fault of the content."""


class _Limit(threading.local):
    """The instant of `time.monotonic()` at which the work of the current thread must end."""

    instant = math.inf


_limit = _Limit()


def check_time() -> None:
    """Raise OutOfTimeError if the limit of the current thread's work has passed."""
    if _limit.instant < math.inf and time.monotonic() >= _limit.instant:
        raise OutOfTimeError


def call_until(deadline: float, work: Callable[..., T], *arguments: Any) -> T:
    """Call `work(*arguments)`, which calls `check_time` if it may take long.

    Raises DeadlineExceededError if it has not ended at `deadline`, or soon after.
    """
    before, _limit.instant = _limit.instant, deadline
    try:
        check_time()
        return work(*arguments)
    except OutOfTimeError:
        raise DeadlineExceededError(TIMED_OUT) from None
    finally:
        _limit.instant = before


@contextlib.asynccontextmanager
async def ending_at(deadline: float | None) -> AsyncIterator[None]:
    """Raise DeadlineExceededError at `deadline`, if there is one, unless the block has ended."""
    try:
        async with asyncio.timeout(None if deadline is None else deadline - time.monotonic()):
            yield
    except TimeoutError:
        raise DeadlineExceededError(TIMED_OUT) from None


async def in_time(deadline: float | None, result: Awaitable[T]) -> T:
    """Wait for a result; raise DeadlineExceededError at `deadline`, if there is one."""
    if deadline is None:
        return await result
    async with ending_at(deadline):
        return await result
