"""StepProcesses: the child processes of low-priority pools, and which steps run in them.

All threads of a process share one interpreter lock, so low-priority Python code delays normal
steps. A step that is portable (`portable_step.py`) and long enough runs in a child process instead
(`step_process.py`).

Guarantees: thread-safe. When a child is killed, its step, which only reads, runs again in this
process; it fails with UNAVAILABLE if the child crashed, because it would crash this process too.
Steps run in this process if no child is ready or if the child can't compile them. The children end
when their pool shuts down and when this process ends in any way.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

from runtime.executors.memory_checks import MOST_LARGE_BYTES
from runtime.executors.step import Executor, Step
from runtime.foundation.thread_pool import ThreadPool
from runtime.sessions.child_process.step_process import ChildEndedError, StepProcess

WORTH_SECONDS = 0.0002  # a step that takes less in this process is not worth sending to a child
# The first run compiles a step and the second generates its Python, so the times of these runs
# count only if they are at least _SURELY_SECONDS: such a step is long without this work too.
_WARM_UP_RUNS = 3
_SURELY_SECONDS = 0.05
# The pause between the end of a child and the start of another. It doubles with each start since a
# child was last ready, at most _MAX_DOUBLINGS times.
_RESTART_SECONDS = 10.0
_MAX_DOUBLINGS = 6

_log = logging.getLogger(__name__)


class StepProcesses:
    """The child processes of one pool, at most as many as the pool has threads."""

    def __init__(self, pool: ThreadPool) -> None:
        self._name = pool.name
        self._lock = threading.Lock()  # guards the attributes below
        self._idle: list[StepProcess] = []
        self._all: list[StepProcess] = []
        self._max_processes = pool.num_threads
        self._next_start = 0.0  # time.monotonic() before which no child is started
        self._failures = 0  # number of children started since a child was last ready
        self._owner = os.getpid()
        self._is_closed = False
        self._steps = 0  # number of steps that were sent to children that have ended

    @property
    def steps(self) -> int:
        """The number of steps that were sent to children, successful or not."""
        with self._lock:
            return self._steps + sum(process.steps for process in self._all)

    def take(self) -> StepProcess | None:
        """Return a ready child, reserved until `give_back`, or None if no child is ready.

        If no child is ready and the pool has more threads than children, start another child.
        """
        with self._lock:
            ended = [each for each in self._all if not each.is_alive]
            if ended:
                self._delay_next_start()
                self._steps += sum(each.steps for each in ended)
                self._all = [each for each in self._all if each.is_alive]
                self._idle = [each for each in self._idle if each.is_alive]
            ready = next((each for each in reversed(self._idle) if each.is_ready()), None)
            if ready is not None:
                self._idle.remove(ready)
                self._failures = 0
            elif not self._is_closed and len(self._all) < self._max_processes:
                self._start()
        for each in ended:
            code = each.end(1.0)
            _log.warning("A process of thread pool %s has ended with code %s", self._name, code)
        return ready

    def _start(self) -> None:
        if time.monotonic() < self._next_start:
            return
        self._failures += 1
        try:
            process = StepProcess(self._name)
        except OSError as error:
            _log.warning("Low-priority steps stay in this process: %s", error)
            self._delay_next_start()
            return
        self._all.append(process)
        self._idle.append(process)

    def _delay_next_start(self) -> None:
        doubled = min(self._failures, _MAX_DOUBLINGS)
        self._next_start = time.monotonic() + _RESTART_SECONDS * 2**doubled

    def give_back(self, process: StepProcess) -> None:
        """Make a child that `take` has reserved available again."""
        with self._lock:
            self._idle.append(process)

    @property
    def is_closed(self) -> bool:
        """Whether the pool has shut down."""
        return self._is_closed

    def close(self) -> None:
        """Kill the children.

        Do nothing in a forked copy of this process, because the children are not its own.
        """
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._is_closed = True
            ending, self._all, self._idle = self._all, [], []
        for process in ending:
            process.kill()
        for process in ending:
            process.end()


_by_pool: weakref.WeakKeyDictionary[ThreadPool, StepProcesses] = weakref.WeakKeyDictionary()
_by_pool_lock = threading.Lock()  # guards _by_pool


def step_processes(pool: ThreadPool) -> StepProcesses:
    """Return the child processes of a pool; they are killed when the pool shuts down."""
    with _by_pool_lock:
        found = _by_pool.get(pool)
        if found is None:
            found = _by_pool[pool] = StepProcesses(pool)
            pool.at_shutdown(found.close)
    return found


@atexit.register
def _close_all() -> None:
    with _by_pool_lock:
        found = list(_by_pool.values())
    for processes in found:
        processes.close()


def run_in_process(
    pool: ThreadPool, executor: Executor, step: Step, arguments: Sequence[Any]
) -> list[Any] | None:
    """Run a step in a child of the pool; return None if the step must run in this process.

    Raises the OpError of the step, also of its cancellation, and UnavailableError if the child
    crashes, or the pool shuts down, during the step.
    """
    if step.collector is not None or not _is_worth_sending(executor):
        return None
    portable = executor.portable
    if portable is None:
        return None
    processes = step_processes(pool)
    process = processes.take()
    if process is None:
        return None
    try:
        answer = process.run(portable, step, arguments)
    except ChildEndedError as error:
        step.cancellation.check()
        if processes.is_closed or not process.was_killed():
            raise
        _log.warning("%s. Step %d runs again in the server's process", error.message, step.step_id)
        return None
    finally:
        processes.give_back(process)
    if answer is None:
        return None
    if answer.is_refused:
        executor.mark_not_portable()
        return None
    executor.last_seconds = answer.seconds
    if step.memory is not None:
        for value in answer.values:
            if getattr(value, "nbytes", 0) > MOST_LARGE_BYTES:
                step.memory.hold(value)
    return answer.values


def _is_worth_sending(executor: Executor) -> bool:
    seconds = executor.last_seconds
    if executor.runs < _WARM_UP_RUNS and seconds < _SURELY_SECONDS:
        return False
    return WORTH_SECONDS <= seconds < math.inf
