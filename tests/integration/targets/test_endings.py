"""How steps end that do not end by themselves: cancelled, out of time, session closed."""

from __future__ import annotations

import concurrent.futures
import time
from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    CancellationManager,
    CancelledError,
    DeadlineExceededError,
    RunRequest,
    RuntimeSession,
)
from tests.integration.targets.graphs import queue
from tests.integration.targets.target import Target, fresh

SECONDS = 30  # for what ends at once on a quiet machine


def is_usable(session: RuntimeSession) -> bool:
    session.run({"value:0": np.float32(1)}, [], ["enqueue"])
    return session.run({}, ["dequeue:0"]) == [1]


def waiting(session: RuntimeSession, **request: Any) -> concurrent.futures.Future[list[Any]]:
    """A step that dequeues from the empty queue, on its way."""
    return session.run_async(RunRequest({}, ["dequeue:0"], **request))


def test_a_step_may_be_cancelled(target: Target) -> None:
    session = target.session(queue(fresh("q")))
    assert is_usable(session)
    cancellation = CancellationManager()
    future = waiting(session, cancellation=cancellation)
    # TensorFlow's master does not see the cancellation of a step that it has not begun.
    session.run({}, ["size:0"])
    cancellation.cancel(CancelledError("The caller has changed its mind."))
    with pytest.raises(CancelledError):
        future.result(SECONDS)
    assert is_usable(session)


def test_a_step_that_was_cancelled_before_does_not_run(target: Target) -> None:
    session = target.session(queue(fresh("q")))
    cancellation = CancellationManager()
    cancellation.cancel(CancelledError("Too late."))
    with pytest.raises(CancelledError):
        waiting(session, cancellation=cancellation).result(SECONDS)
    assert is_usable(session)


def test_more_steps_may_be_cancelled_than_have_threads(target: Target) -> None:
    if target.name == "tensorflow":
        pytest.skip("it does not see the cancellation of a step that it has not begun")
    session = target.session(queue(fresh("q")))
    cancellation = CancellationManager()
    futures = [waiting(session, cancellation=cancellation) for _ in range(24)]
    cancellation.cancel(CancelledError("All of them."))
    for future in futures:
        with pytest.raises(CancelledError):
            future.result(SECONDS)
    assert is_usable(session)


@pytest.mark.parametrize("how", ["options", "request", "config"])
def test_a_step_ends_at_its_deadline(target: Target, how: str) -> None:
    config = {"operation_timeout_in_ms": 400} if how == "config" else {}
    session = target.session(queue(fresh("q")), **config)
    options = pb.RunOptions(timeout_in_ms=400) if how == "options" else None
    started = time.monotonic()
    deadline = started + 0.4 if how == "request" else None
    with pytest.raises(DeadlineExceededError):
        waiting(session, options=options, deadline=deadline).result(SECONDS)
    assert 0.3 < time.monotonic() - started < SECONDS / 2
    assert is_usable(session)


def test_a_blocking_run_ends_at_its_deadline(target: Target) -> None:
    session = target.session(queue(fresh("q")))
    with pytest.raises(DeadlineExceededError):
        session.run({}, ["dequeue:0"], options=pb.RunOptions(timeout_in_ms=200))
    assert is_usable(session)


def test_close_cancels_running_steps(target: Target) -> None:
    session = target.session(queue(fresh("q")))
    futures = [waiting(session) for _ in range(3)]
    session.close()
    for future in futures:
        with target.raises("step of a session that is closed"):
            future.result(SECONDS)
    with target.raises("call on a closed session"):
        session.run({}, ["size:0"])
