"""Trace ids, which identify tasks from the time they are scheduled to their end in a thread pool.

If a tracer is set, it is called with a task's id when the task is scheduled, when it begins and
when it ends, so that the work of a thread can be related to the code that scheduled the task.

Guarantees: ids are unique in the process; the tracer is called in the thread that schedules or
runs the task, and must not raise.

TF: tensorflow/core/platform/tracing.h (ScheduleClosure, RunClosure), EigenEnvironment::Task
"""

from __future__ import annotations

import enum
import itertools
import threading
from collections.abc import Callable


class TaskEvent(enum.Enum):
    """A change of a task's state."""

    SCHEDULED = "scheduled"
    BEGUN = "begun"
    ENDED = "ended"


Tracer = Callable[[TaskEvent, int, str], None]  # takes event, id of the task, name of the pool
_ids = itertools.count(1)  # needs no lock, because next() is atomic
_tracer: list[Tracer | None] = [None]


class _Running(threading.local):
    trace_id = 0


_running = _Running()


def set_task_tracer(tracer: Tracer | None) -> None:
    """Set the function to call at each event of each task of every pool; None removes it."""
    _tracer[0] = tracer


def current_trace_id() -> int:
    """Return the id of the task that the calling thread runs, or 0 if it runs none."""
    return _running.trace_id


def schedule_task(pool: str) -> int:
    """Notify the tracer of a new task in the pool named `pool`; return the id of the task."""
    trace_id = next(_ids)
    if _tracer[0] is not None:
        _tracer[0](TaskEvent.SCHEDULED, trace_id, pool)
    return trace_id


def begin_task(trace_id: int, pool: str) -> None:
    """Record that the calling thread begins the task, and notify the tracer."""
    _running.trace_id = trace_id
    if _tracer[0] is not None:
        _tracer[0](TaskEvent.BEGUN, trace_id, pool)


def end_task(pool: str) -> None:
    """Record that the calling thread's task has ended, and notify the tracer."""
    if _tracer[0] is not None:
        _tracer[0](TaskEvent.ENDED, _running.trace_id, pool)
    _running.trace_id = 0
