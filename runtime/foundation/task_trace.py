"""Ids of tasks, from the moment they are scheduled to their end on a pool's thread.

A tracer sees both ends of each task under one id, so that what a thread does can be joined with
what asked for it. Without a tracer a task costs a count and nothing else.

Guarantees: ids are unique in the process; the tracer is called by the thread that schedules or
runs the task, and must not raise.

TF: tensorflow/core/platform/tracing.h (ScheduleClosure, RunClosure), EigenEnvironment::Task
"""

from __future__ import annotations

import enum
import itertools
import threading
from collections.abc import Callable


class TaskEvent(enum.Enum):
    """What happens to a task."""

    SCHEDULED = "scheduled"
    BEGUN = "begun"
    ENDED = "ended"


Tracer = Callable[[TaskEvent, int, str], None]  # event, the task's id, name of its pool
_ids = itertools.count(1)  # next() is atomic
_tracer: list[Tracer | None] = [None]


class _Running(threading.local):
    trace_id = 0


_running = _Running()


def set_task_tracer(tracer: Tracer | None) -> None:
    """Have every task of every pool told from now on; None ends it."""
    _tracer[0] = tracer


def current_trace_id() -> int:
    """The id of the task that the calling thread runs; 0 when it runs none."""
    return _running.trace_id


def schedule_task(pool: str) -> int:
    """The id of a new task."""
    trace_id = next(_ids)
    if _tracer[0] is not None:
        _tracer[0](TaskEvent.SCHEDULED, trace_id, pool)
    return trace_id


def begin_task(trace_id: int, pool: str) -> None:
    """Note that the calling thread runs the task now."""
    _running.trace_id = trace_id
    if _tracer[0] is not None:
        _tracer[0](TaskEvent.BEGUN, trace_id, pool)


def end_task(pool: str) -> None:
    """Note that the calling thread's task has ended."""
    if _tracer[0] is not None:
        _tracer[0](TaskEvent.ENDED, _running.trace_id, pool)
    _running.trace_id = 0
