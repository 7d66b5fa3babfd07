"""What the runner decides, with a session that only notes what it is given."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, cast

import numpy as np
import pytest

import protos as pb
from runtime.api import CancellationManager, RunRequest, ShortStep
from runtime.errors import (
    CancelledError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from server.metrics import Metrics
from server.settings import Settings
from server.settings_sections.priorities import PrioritySettings
from server.steps.priorities import Priorities
from server.steps.step_answer import StepAnswer
from server.steps.step_request import StepRequest
from server.steps.step_runner import OFF_LOOP_BYTES, StepRunner, deadline_of, off_loop


class FakeSession:
    """`short` is what a short step gives; `future` what any other does."""

    def __init__(self, short: list[Any] | Exception | None = None) -> None:
        self.short = short
        self.future: concurrent.futures.Future[list[Any]] = concurrent.futures.Future()
        self.tried: list[RunRequest] = []
        self.started: list[RunRequest] = []
        self.threads: list[int] = []

    def run_if_short(self, request: RunRequest) -> list[Any] | None:
        self.tried.append(request)
        if isinstance(self.short, Exception):
            raise self.short
        return self.short

    def run_async(self, request: RunRequest) -> concurrent.futures.Future[list[Any]]:
        self.started.append(request)
        self.threads.append(threading.get_ident())
        return self.future

    def partial_run_async(
        self, handle: str, feeds: Any, fetches: Any, cancellation: CancellationManager
    ) -> concurrent.futures.Future[list[Any]]:
        self.threads.append(threading.get_ident())
        return self.future


class Account:
    """Notes when steps begin and end."""

    default_timeout_ms = 0
    max_step_seconds = 0.0
    runs_in_caller = False
    queue_owner = "account"

    def __init__(self) -> None:
        self.events: list[str] = []

    def begin_step(self, request: StepRequest) -> None:
        self.events.append("begin")

    def end_step(self, request: StepRequest) -> None:
        self.events.append("end")


Scenario = Callable[[StepRunner], Coroutine[Any, Any, None]]


def with_runner(
    scenario: Scenario, max_answer_bytes: int = 1 << 30, settings: Settings | None = None
) -> str:
    """Run a scenario; the metrics after it."""
    metrics = Metrics()

    async def run() -> None:
        runner = StepRunner(Priorities(settings or Settings()), metrics, max_answer_bytes)
        try:
            await scenario(runner)
        finally:
            runner.shutdown()

    asyncio.run(run())
    return metrics.exposition().decode()


async def run(runner: StepRunner, session: Any, request: StepRequest, *more: Any) -> StepAnswer:
    return await runner.run(session, request, *more)


def test_a_short_step_ends_at_once_and_makes_nothing_to_cancel_it_by() -> None:
    session, account, request = FakeSession([np.float32(3)]), Account(), StepRequest()

    async def scenario(runner: StepRunner) -> None:
        answer = await run(runner, session, request, account)
        assert answer == ([3], 4)
        assert request.cancellation is None and not session.started
        assert account.events == ["begin", "end"]

    text = with_runner(scenario)
    assert 'runstep_steps_total{code="OK",priority="normal"} 1.0' in text


class FakeShortStep(ShortStep):
    """Gives `result`, or raises it; notes the values."""

    def __init__(self, result: list[Any] | Exception | None) -> None:
        self.result = result
        self.seen: list[Any] = []

    @property
    def may_run(self) -> bool:
        return True

    def run(self, values: Any) -> list[Any] | None:
        self.seen.append(values)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


STEPS = "runstep_steps_total{"


@pytest.mark.parametrize(
    ("fetched", "is_small"),
    [
        ([np.zeros(3, np.float32), np.float32(1)], True),
        ([np.zeros(OFF_LOOP_BYTES, np.int8)], False),
        ([np.array([b"x"], object)], False),
        ([], True),
    ],
    ids=["numbers", "large", "strings", "nothing"],
)
def test_a_step_run_by_its_values_is_counted(fetched: list[Any], is_small: bool) -> None:
    step = FakeShortStep(fetched)

    async def scenario(runner: StepRunner) -> None:
        began = time.perf_counter()
        *answer, seconds = runner.run_short(step, [np.ones(1)])
        assert answer == [fetched, is_small]
        assert 0 < seconds <= time.perf_counter() - began

    assert 'runstep_steps_total{code="OK",priority="normal"} 1.0' in with_runner(scenario)
    assert step.seen == [[np.ones(1)]]


def test_a_step_that_is_not_short_is_not_counted() -> None:
    async def scenario(runner: StepRunner) -> None:
        assert runner.run_short(FakeShortStep(None), []) is None

    assert STEPS not in with_runner(scenario)


def test_a_step_run_by_its_values_fails_with_its_error_and_is_counted() -> None:
    async def scenario(runner: StepRunner) -> None:
        with pytest.raises(InternalError, match="broken"):
            runner.run_short(FakeShortStep(InternalError("broken")), [])

    assert 'runstep_steps_total{code="INTERNAL",priority="normal"} 1.0' in with_runner(scenario)


def test_values_over_the_limit_are_refused_after_the_step() -> None:
    async def scenario(runner: StepRunner) -> None:
        with pytest.raises(ResourceExhaustedError, match=r"12 bytes; rest.max_answer_bytes is 11"):
            runner.run_short(FakeShortStep([np.zeros(3, np.float32)]), [])

    text = with_runner(scenario, max_answer_bytes=11)
    assert 'runstep_steps_total{code="OK",priority="normal"} 1.0' in text


def test_no_step_of_low_priority_runs_in_the_loop_s_thread() -> None:
    step = FakeShortStep([])

    async def scenario() -> None:
        settings = Settings(default_priority="low")
        runner = StepRunner(Priorities(settings), Metrics(), 1 << 30)
        assert runner.run_short(step, []) is None
        runner.shutdown()

    asyncio.run(scenario())
    assert not step.seen


def test_a_step_s_wait_and_run_are_measured_by_pool_priority_and_model() -> None:
    session = FakeSession()

    async def scenario(runner: StepRunner) -> None:
        step = asyncio.ensure_future(run(runner, session, StepRequest(priority="low", model="m")))
        while not session.started:
            await asyncio.sleep(0)
        (started,) = session.started
        started.began_at = time.perf_counter()
        session.future.set_result([np.float32(1)])
        await step
        runner.run_short(FakeShortStep([]), [], "m")

    text = with_runner(scenario)
    low = 'model="m",pool="background",priority="low"'
    normal = 'model="m",pool="online",priority="normal"'
    for labels in (low, normal):
        for metric in ("queue_steps", "wait_seconds", "run_seconds"):
            assert f"runstep_step_{metric}_count{{{labels}}} 1.0" in text


@pytest.mark.parametrize("priority", ["low", "normal"])
def test_others_are_answered_between_the_parts_of_a_request_of_low_priority(priority: str) -> None:
    session, events = FakeSession(), list[str]()
    session.future.set_result([])

    async def scenario(runner: StepRunner) -> None:
        loop = asyncio.get_running_loop()

        def run_async(request: RunRequest) -> concurrent.futures.Future[list[Any]]:
            events.append("start")
            loop.call_soon(events.append, "other")
            return session.future

        session.run_async = run_async  # type: ignore[method-assign]
        loop.call_soon(events.append, "other")
        await run(runner, session, StepRequest(priority=priority))
        events.append("end")

    with_runner(scenario)
    if priority == "low":
        assert events == ["other", "start", "other", "end"]
    else:
        assert events[:2] == ["start", "end"]


def test_the_deadline_of_a_priority_is_a_limit() -> None:
    low = Priorities(
        Settings(priorities={"normal": PrioritySettings(pool="online", timeout_ms=50)})
    ).default
    for asked, seconds in ((0, 0.05), (20, 0.02), (90, 0.05)):
        request = StepRequest(timeout_ms=asked, received_at=100.0)
        deadline = deadline_of(request, None, low)
        assert deadline == pytest.approx(100 + seconds)
    assert deadline_of(StepRequest(), None, Priorities(Settings()).default) is None


def test_a_step_ends_at_the_deadline_of_its_priority() -> None:
    settings = Settings(priorities={"normal": PrioritySettings(pool="online", timeout_ms=1)})

    async def scenario(runner: StepRunner) -> None:
        with pytest.raises(DeadlineExceededError):
            await run(runner, FakeSession(), StepRequest(model="m"))

    text = with_runner(scenario, settings=settings)
    assert 'runstep_steps_total{code="DEADLINE_EXCEEDED",priority="normal"} 1.0' in text
    labels = 'model="m",pool="online",priority="normal"'
    assert f"runstep_step_wait_seconds_count{{{labels}}} 1.0" in text
    assert f"runstep_step_run_seconds_count{{{labels}}} 0.0" in text


def test_a_full_queue_of_a_priority_refuses_its_steps_alone() -> None:
    settings = Settings(
        priorities={
            "normal": PrioritySettings(pool="online"),
            "low": PrioritySettings(pool="online", queue_size=1),
        }
    )
    session = FakeSession()

    async def scenario(runner: StepRunner) -> None:
        waiting = asyncio.ensure_future(run(runner, session, StepRequest(priority="low")))
        await asyncio.sleep(0)
        with pytest.raises(ResourceExhaustedError, match="The queue of priority low is full: 1"):
            await run(runner, session, StepRequest(priority="low"))
        assert len(session.started) == 1
        normal = asyncio.ensure_future(run(runner, session, StepRequest()))
        await asyncio.sleep(0)
        assert len(session.started) == 2
        session.future.set_result([])
        await asyncio.gather(waiting, normal)
        await run(runner, session, StepRequest(priority="low"))

    text = with_runner(scenario, settings=settings)
    assert 'runstep_steps_total{code="RESOURCE_EXHAUSTED",priority="low"} 1.0' in text


def test_another_step_is_started_once_and_waited_for() -> None:
    session, account = FakeSession(), Account()
    watched: list[CancellationManager] = []

    @contextlib.contextmanager
    def watch(cancellation: CancellationManager) -> Any:
        watched.append(cancellation)
        yield

    async def scenario(runner: StepRunner) -> None:
        request = StepRequest(feeds={"x": 1}, fetches=["y"], watch_client=watch)
        waiting = asyncio.ensure_future(run(runner, session, request, account))
        await asyncio.sleep(0)
        assert account.events == ["begin"]
        session.future.set_result([np.ones(3)])
        assert (await waiting).size == 24
        (started,) = session.started
        assert (started.feeds, started.fetches, started.deadline) == ({"x": 1}, ["y"], None)
        assert started.pool is not None and started.pool.name == "online"
        assert started.cancellation is request.cancellation is watched[0]
        assert account.events == ["begin", "end"]

    with_runner(scenario)


def test_low_priority_never_runs_in_this_thread() -> None:
    session = FakeSession([1])
    session.future.set_result([2])

    async def scenario(runner: StepRunner) -> None:
        assert (await run(runner, session, StepRequest(priority="low"))).values == [2]
        assert not session.tried
        assert session.started[0].pool is not None
        assert session.started[0].pool.name == "background"

    with_runner(scenario)


def test_a_step_on_large_inputs_never_runs_in_this_thread() -> None:
    """It was short with the small inputs that it had before."""
    session = FakeSession([1])
    session.future.set_result([2])

    async def scenario(runner: StepRunner) -> None:
        large, small = StepRequest(body_bytes=OFF_LOOP_BYTES), StepRequest(body_bytes=10)
        assert (await run(runner, session, large)).values == [2]
        assert not session.tried
        assert (await run(runner, session, small)).values == [1]

    with_runner(scenario)


def test_a_pool_of_the_session_excludes_a_priority() -> None:
    session = FakeSession([1])
    session.future.set_result([2])
    options = pb.RunOptions(inter_op_thread_pool=1)

    async def scenario(runner: StepRunner) -> None:
        request = StepRequest(options=options, pool_is_chosen=True)
        assert (await run(runner, session, request)).values == [2]
        assert session.started[0].pool is None and not session.tried
        request.priority = "low"
        with pytest.raises(InvalidArgumentError, match="Expected either priority or options"):
            await run(runner, session, request)
        with pytest.raises(InvalidArgumentError, match="Unknown priority 'urgent'"):
            await run(runner, session, StepRequest(priority="urgent"))

    text = with_runner(scenario)
    assert 'runstep_steps_total{code="OK",priority="pool"} 1.0' in text


@pytest.mark.parametrize("index", [-1, 0])
def test_a_step_in_the_caller_s_thread_leaves_the_event_loop_alone(index: int) -> None:
    session, account = FakeSession(), Account()
    session.future.set_result([1])
    account.runs_in_caller = index == 0
    options = pb.RunOptions(inter_op_thread_pool=index)

    async def scenario(runner: StepRunner) -> None:
        await run(runner, session, StepRequest(options=options, pool_is_chosen=True), account)
        assert session.threads != [threading.get_ident()]

    with_runner(scenario)


def test_errors_end_the_account_and_are_counted_by_code() -> None:
    account = Account()

    async def scenario(runner: StepRunner) -> None:
        with pytest.raises(InternalError, match="broken"):
            await run(runner, FakeSession(InternalError("broken")), StepRequest(), account)
        assert account.events == ["begin", "end"]

    text = with_runner(scenario)
    assert 'runstep_steps_total{code="INTERNAL",priority="normal"} 1.0' in text


def test_the_deadline_cancels_what_runs() -> None:
    session = FakeSession()

    async def scenario(runner: StepRunner) -> None:
        with pytest.raises(DeadlineExceededError, match="Timed out waiting for notification"):
            await run(runner, session, StepRequest(timeout_ms=50))
        cancellation = session.started[0].cancellation
        assert cancellation is not None and cancellation.is_cancelled

    with_runner(scenario)


def test_a_step_whose_deadline_has_passed_is_not_started() -> None:
    session, account = FakeSession([1]), Account()

    async def scenario(runner: StepRunner) -> None:
        late = StepRequest(received_at=0.0, timeout_ms=1)
        for call in (runner.run, runner.run_part):
            with pytest.raises(DeadlineExceededError, match="Timed out waiting for notification"):
                await call(cast(Any, session), late, account)
        assert not session.tried and not session.started and not session.threads
        assert account.events == ["begin", "end"] * 2

    text = with_runner(scenario)
    assert 'runstep_steps_total{code="DEADLINE_EXCEEDED",priority="normal"} 2.0' in text


def test_the_deadline_of_a_request_comes_before_that_of_the_session_s_configuration() -> None:
    session, account = FakeSession(), Account()
    session.future.set_result([1])

    async def scenario(runner: StepRunner) -> None:
        request = StepRequest(timeout_ms=60_000)
        await run(runner, session, request, account)
        assert session.started[0].deadline == request.received_at + 60

    with_runner(scenario)


def test_a_front_that_stops_waiting_cancels_the_step() -> None:
    session, account = FakeSession(), Account()

    async def scenario(runner: StepRunner) -> None:
        waiting = asyncio.ensure_future(run(runner, session, StepRequest(), account))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        cancellation = session.started[0].cancellation
        assert cancellation is not None and cancellation.is_cancelled
        assert account.events == ["begin", "end"]

    text = with_runner(scenario)
    assert 'runstep_steps_total{code="CANCELLED",priority="normal"} 1.0' in text


def test_a_part_is_waited_for_and_can_be_cancelled() -> None:
    session: Any = FakeSession()
    account = Account()

    async def scenario(runner: StepRunner) -> None:
        request = StepRequest(partial_run_handle="h", fetches=["y"])
        waiting = asyncio.ensure_future(runner.run_part(session, request, account))
        await asyncio.sleep(0)
        assert request.cancellation is not None and account.events == ["begin"]
        request.cancellation.cancel(CancelledError("enough"))
        with pytest.raises(CancelledError, match="enough"):
            await waiting
        assert account.events == ["begin", "end"]

    text = with_runner(scenario)
    assert 'runstep_steps_total{code="CANCELLED",priority="normal"} 1.0' in text
    labels = 'model="",pool="online",priority="normal"'
    for metric in ("queue_steps", "wait_seconds", "run_seconds"):
        assert f"runstep_step_{metric}_count{{{labels}}} 1.0" in text


def test_a_part_ends_at_the_deadline_of_the_default_priority() -> None:
    settings = Settings(priorities={"normal": PrioritySettings(pool="online", timeout_ms=1)})
    session: Any = FakeSession()

    async def scenario(runner: StepRunner) -> None:
        with pytest.raises(DeadlineExceededError):
            await runner.run_part(session, StepRequest(partial_run_handle="h"), Account())

    text = with_runner(scenario, settings=settings)
    assert 'runstep_steps_total{code="DEADLINE_EXCEEDED",priority="normal"} 1.0' in text


@pytest.mark.parametrize(
    ("values", "size"),
    [
        ([np.zeros((2, 3), np.float32), np.float64(1)], 32),
        ([np.array([b"abc", b"de"], object)], 16 + 5),
        ([np.array(b"abc", object)], 8 + 3),
        ([object()], 0),
    ],
)
def test_the_size_of_an_answer_counts_the_bytes_of_strings(values: list[Any], size: int) -> None:
    async def scenario(runner: StepRunner) -> None:
        assert (await run(runner, FakeSession(values), StepRequest())).size == size

    with_runner(scenario, max_answer_bytes=size)

    async def refused(runner: StepRunner) -> None:
        text = f"The tensors of the answer have {size} bytes; rest.max_answer_bytes is {size - 1}"
        with pytest.raises(ResourceExhaustedError) as caught:
            await run(runner, FakeSession(values), StepRequest())
        assert caught.value.message == text

    with_runner(refused, max_answer_bytes=size - 1)


def test_the_deadline_counts_from_receipt() -> None:
    options = pb.RunOptions(timeout_in_ms=5000)
    account = Account()
    account.default_timeout_ms = 7000
    assert deadline_of(StepRequest(received_at=100, options=options), account) == 105
    assert deadline_of(StepRequest(received_at=100, timeout_ms=6000), account) == 106
    assert deadline_of(StepRequest(received_at=100), account) == 107
    assert deadline_of(StepRequest(received_at=100), None) is None


def test_little_is_done_here_and_much_on_another_thread() -> None:
    async def scenario() -> None:
        here = threading.get_ident()
        assert await off_loop(OFF_LOOP_BYTES - 1, threading.get_ident) == here
        assert await off_loop(OFF_LOOP_BYTES, threading.get_ident) != here

    asyncio.run(scenario())
