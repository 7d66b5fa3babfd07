"""Thread pools with a bounded queue and statistics; global pools are found by name.

The threads of a pool block on one FIFO queue. Unlike the threads of TensorFlow's Eigen pool, they
neither steal work nor spin, because they would take the one interpreter lock from threads that have
work. A step is one execution of Session.run.

Guarantees: thread-safe; tasks start in the order in which they were scheduled; if a task raises,
the exception is logged and the thread continues; named pools live as long as the process; the tasks
that are queued at `shutdown` still run.

TF: tensorflow/core/lib/core/threadpool.h, direct_session.cc (NewThreadPoolFromThreadPoolOptions)
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import dataclasses
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Callable

from runtime.foundation.errors import InvalidArgumentError, ResourceExhaustedError
from runtime.foundation.intra_op_pool import set_thread_width
from runtime.foundation.priority_gate import gate, reduce_timer_slack
from runtime.foundation.processor_share import SHORTEST_SLICE_SECONDS, share_processors
from runtime.foundation.task_trace import begin_task, end_task, schedule_task

_log = logging.getLogger(__name__)

DEFAULT_QUEUE_SIZE = 65536  # tasks; the server configures another value
LOW_PRIORITY_NICE = 19
# The nice value of threads whose steps run in a child process of nice 19; it is lower than 19 so
# that these threads do not wait behind the child process.
NICE_BESIDE_PROCESS = 10
_SET_THREAD_NAME = 15  # prctl(PR_SET_NAME)
_NO_CONTEXT = contextlib.nullcontext()
_local = threading.local()


@dataclasses.dataclass(frozen=True, slots=True)
class ThreadPoolStats:
    """Statistics of one pool; times are in seconds and are summed since the pool was created."""

    name: str
    num_threads: int
    low_priority: bool
    queued: int
    running: int
    completed: int
    wait_seconds_total: float
    run_seconds_total: float

    @property
    def tasks(self) -> int:
        """The number of tasks that wait or run."""
        return self.queued + self.running

    @property
    def run_ratio(self) -> float:
        """The fraction, from 0 to 1, of the pool's threads that run a task."""
        return self.running / self.num_threads


@dataclasses.dataclass(frozen=True, slots=True)
class _Task:
    work: Callable[[], object]
    scheduled: float  # time.monotonic() when the task was scheduled
    trace_id: int
    context: contextvars.Context  # the context variables of the thread that scheduled the task


class ThreadPool:
    """Threads that run tasks in the order in which the tasks were scheduled.

    A task runs with the context variables of the thread that scheduled it. `num_threads` ≥ 1
    threads start at once. The threads of a low-priority pool have a raised nice value, and their
    steps wait at the priority gate between nodes. `intra_op_threads` is the number of threads that
    may work on one kernel of a task; 0 means the number set for the process. In a low-priority pool
    it is always 1, because the helper threads of the intra-op pool have the normal nice value. If
    `own_process`, the steps of a low-priority pool run in a child process where that is possible.
    """

    def __init__(
        self,
        name: str,
        num_threads: int,
        *,
        low_priority: bool = False,
        queue_size: int = DEFAULT_QUEUE_SIZE,
        intra_op_threads: int = 0,
        own_process: bool = False,
    ) -> None:
        if num_threads < 1:
            raise InvalidArgumentError(f"Pool {name} needs at least one thread, got {num_threads}")
        self.name = name
        self.num_threads = num_threads
        self.low_priority = low_priority
        self.queue_size = queue_size
        self.intra_op_threads = 1 if low_priority else intra_op_threads
        self.own_process = low_priority and own_process
        self._tasks: queue.SimpleQueue[_Task | None]
        self._tasks = queue.SimpleQueue()
        self._lock = threading.Lock()  # guards all fields below except `_threads`
        self._running = 0
        self._completed = 0
        self._wait_seconds = 0.0
        self._run_seconds = 0.0
        self._is_shut_down = False
        self._live_threads = num_threads  # number of threads that have not ended
        self._at_shutdown: list[Callable[[], object]] = []
        if low_priority:
            reduce_timer_slack()
        self._threads = [
            threading.Thread(target=self._work, name=f"tf_{name}", daemon=True)
            for _ in range(num_threads)
        ]
        for thread in self._threads:
            thread.start()

    def schedule(self, task: Callable[[], object]) -> None:
        """Add a task to the queue.

        Raises ResourceExhaustedError if `queue_size` tasks are waiting or after `shutdown`.
        """
        if self._tasks.qsize() >= self.queue_size:
            raise ResourceExhaustedError(
                f"The queue of thread pool {self.name} is full: "
                f"{self.queue_size} steps are waiting for {self.num_threads} threads"
            )
        with self._lock:  # a task put after the end markers of `shutdown` would never run
            if self._is_shut_down:
                raise ResourceExhaustedError(f"Thread pool {self.name} has been shut down")
            if not self.low_priority:
                gate.enter()
            self._tasks.put(
                _Task(task, time.monotonic(), schedule_task(self.name), contextvars.copy_context())
            )

    def stats(self) -> ThreadPoolStats:
        """Return the pool's current statistics."""
        with self._lock:
            return ThreadPoolStats(
                self.name,
                self.num_threads,
                self.low_priority,
                self._tasks.qsize(),
                self._running,
                self._completed,
                self._wait_seconds,
                self._run_seconds,
            )

    def shutdown(self) -> None:
        """Refuse new tasks, and end the threads after they have run the queued tasks."""
        with self._lock:
            if self._is_shut_down:
                return
            self._is_shut_down = True
            for _ in self._threads:
                self._tasks.put(None)

    def at_shutdown(self, callback: Callable[[], object]) -> None:
        """Call `callback` when the last thread ends; if all threads have ended, call it now."""
        with self._lock:
            has_ended = self._live_threads == 0
            if not has_ended:
                self._at_shutdown.append(callback)
        if has_ended:
            _call_and_log(callback, self.name)

    @property
    def is_current(self) -> bool:
        """Whether the calling thread belongs to this pool."""
        return getattr(_local, "pool", None) is self

    def after_task(self, callback: Callable[[], object]) -> None:
        """Call `callback` after the calling thread's task has been counted as completed.

        A thread that the callback notifies therefore finds the task counted in `stats`. The caller
        must be a thread of this pool (`is_current`).
        """
        _local.after_task.append(callback)

    def _work(self) -> None:
        _local.pool = self
        set_thread_width(self.intra_op_threads)
        after_task: list[Callable[[], object]] = []
        _local.after_task = after_task
        name_thread(f"tf_{self.name}")
        reduce_timer_slack()
        if self.low_priority:
            nice = NICE_BESIDE_PROCESS if self.own_process else LOW_PRIORITY_NICE
            share_processors(nice, SHORTEST_SLICE_SECONDS)
        while (entry := self._tasks.get()) is not None:
            started = time.monotonic()
            with self._lock:
                self._running += 1
                self._wait_seconds += started - entry.scheduled
            begin_task(entry.trace_id, self.name)
            try:
                if self.low_priority:
                    gate.pass_through()
                with gate.low_priority_task() if self.low_priority else _NO_CONTEXT:
                    entry.context.run(entry.work)
            except BaseException:  # SystemExit, for example, would end the pool's thread
                _log.exception("A task of thread pool %s failed", self.name)
            finally:
                end_task(self.name)
                if not self.low_priority:
                    gate.leave()
                with self._lock:
                    self._running -= 1
                    self._completed += 1
                    self._run_seconds += time.monotonic() - started
            while after_task:
                _call_and_log(after_task.pop(0), self.name)
            del entry  # an idle thread must not keep a step's tensors alive
        with self._lock:
            self._live_threads -= 1
            is_last = self._live_threads == 0
        for callback in self._at_shutdown if is_last else ():
            _call_and_log(callback, self.name)


def _call_and_log(callback: Callable[[], object], pool: str) -> None:
    try:
        callback()
    except Exception:
        _log.exception("What follows a task of thread pool %s failed", pool)


def name_thread(name: str) -> None:
    """Set the name of the calling thread, as `top -H` shows it. Linux keeps its first 15 bytes."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_THREAD_NAME, name.encode()[:15], 0, 0, 0)


def schedulable_cores() -> int:
    """Return the number of processor cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # only some systems have sched_getaffinity
        return os.cpu_count() or 1


class GlobalThreadPools:
    """The named pools of the process, each with the configured number of threads (possibly 0)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards `_pools`
        self._pools: dict[str, tuple[int, ThreadPool]] = {}

    def get_or_create(
        self,
        name: str,
        num_threads: int,
        *,
        low_priority: bool = False,
        queue_size: int = DEFAULT_QUEUE_SIZE,
        default_num_threads: int | None = None,
        intra_op_threads: int = 0,
        own_process: bool = False,
    ) -> ThreadPool:
        """Return the pool named `name`; if there is none, create it with the given options.

        If `num_threads` is 0, the pool has `default_num_threads` threads or, if that is not given,
        one thread for each core. Raises InvalidArgumentError if the pool exists and was created
        with another `num_threads`; the other options of an existing pool are not compared.
        """
        with self._lock:
            known = self._pools.get(name)
            if known is None:
                count = num_threads or default_num_threads or schedulable_cores()
                pool = ThreadPool(
                    name,
                    count,
                    low_priority=low_priority,
                    queue_size=queue_size,
                    intra_op_threads=intra_op_threads,
                    own_process=own_process,
                )
                self._pools[name] = (num_threads, pool)
                return pool
        configured, pool = known
        if configured != num_threads:
            raise InvalidArgumentError(
                f"Pool {name} configured previously with num_threads={configured}; "
                f"cannot re-configure with num_threads={num_threads}"
            )
        return pool

    def find(self, name: str) -> ThreadPool | None:
        """Return the pool named `name`, or None if there is none."""
        known = self._pools.get(name)
        return None if known is None else known[1]

    def all(self) -> list[ThreadPool]:
        """Return all named pools in the order of creation."""
        with self._lock:
            return [pool for _, pool in self._pools.values()]


global_thread_pools = GlobalThreadPools()
