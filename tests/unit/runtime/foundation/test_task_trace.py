"""Tasks have an id, and the context variables of the code that scheduled them."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterator

import pytest

from runtime.foundation.task_trace import TaskEvent, current_trace_id, set_task_tracer
from runtime.foundation.thread_pool import ThreadPool

request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="")


@pytest.fixture
def pool() -> Iterator[ThreadPool]:
    pool = ThreadPool("traced", 1)
    yield pool
    pool.shutdown()


def test_both_ends_of_a_task_are_told_under_one_id(pool: ThreadPool) -> None:
    events: list[tuple[TaskEvent, int, str]] = []
    seen: list[int] = []
    ended = threading.Event()

    def tracer(event: TaskEvent, trace_id: int, name: str) -> None:
        events.append((event, trace_id, name))
        if [each for each, _, _ in events].count(TaskEvent.ENDED) == 2:
            ended.set()

    set_task_tracer(tracer)
    try:
        for _ in range(2):
            pool.schedule(lambda: seen.append(current_trace_id()))
        assert ended.wait(30)
    finally:
        set_task_tracer(None)
    first, second = seen
    assert first != second
    for trace_id in seen:
        assert [event for event, each, _ in events if each == trace_id] == [*TaskEvent]
    assert {name for _, _, name in events} == {"traced"}
    assert current_trace_id() == 0


def test_a_task_sees_the_context_variables_of_its_scheduler(pool: ThreadPool) -> None:
    seen: list[str] = []
    ended = threading.Event()
    request_id.set("r-1")
    pool.schedule(lambda: (seen.append(request_id.get()), request_id.set("changed")))
    request_id.set("r-2")
    pool.schedule(lambda: (seen.append(request_id.get()), ended.set()))
    assert ended.wait(30)
    assert seen == ["r-1", "r-2"]
    assert request_id.get() == "r-2"
