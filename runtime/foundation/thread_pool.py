"""Thread pools with a bounded queue and statistics.

The threads of a pool block on one queue, in which the owners of tasks (sessions) take turns. Unlike
the threads of TensorFlow's Eigen pool, they neither steal work nor spin, because they would take
the one interpreter lock from threads that have work. A step is one execution of Session.run.

A kernel in native code can't be interrupted. If a task waits although every thread is busy, and
some threads are stuck, which means that they run kernels of steps that have ended, the pool
replaces them by additional threads, as many as it was made with. If one owner has all threads for
BUSY_SECONDS, the others get one additional thread. A thread ends after its task if the pool has too
many. Tasks without an owner (None) are limited by nothing but the number of threads.

Guarantees: thread-safe; tasks of one owner start in the order in which they were scheduled; a task
waits behind at most one task of each other owner for each task of its own owner; no owner occupies
more threads than the pool was made with; if a task raises, the exception is logged and the thread
continues; the tasks that are queued at `shutdown` still run.

TF: tensorflow/core/lib/core/threadpool.h, direct_session.cc (NewThreadPoolFromThreadPoolOptions)
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Hashable, Sequence

from runtime.foundation.deadline_timer import Timeout, deadline_timer
from runtime.foundation.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from runtime.foundation.fair_queue import FairQueue
from runtime.foundation.idle_threads import IdleThreads
from runtime.foundation.intra_op_pool import set_thread_width
from runtime.foundation.native_calls import become_low_priority, hand_over_native_calls
from runtime.foundation.pool_tasks import PoolTask, RunningTasks, call_all, call_and_log
from runtime.foundation.priority_gate import gate, reduce_timer_slack
from runtime.foundation.processor_share import HIGHEST_NICE, nice_value
from runtime.foundation.running_task import set_running_task
from runtime.foundation.task_trace import begin_task, end_task, schedule_task
from runtime.foundation.thread_pool_stats import ThreadPoolStats

_log = logging.getLogger(__name__)

DEFAULT_QUEUE_SIZE = 65536  # tasks; the server configures another value
LOW_PRIORITY_NICE = HIGHEST_NICE
# The nice value of threads whose steps run in a child process of nice 19; it is lower than 19 so
# that these threads do not wait behind the child process.
NICE_BESIDE_PROCESS = 10
# How long a task waits, while all threads are busy, before the pool looks for threads to replace.
# Most kernels that look at the cancellation of their step end within this time.
RELIEF_SECONDS = 0.1
BUSY_SECONDS = 1.0  # how long one owner may have all threads of a pool before others get one more
_SET_THREAD_NAME = 15  # prctl(PR_SET_NAME)
_NO_TURN = contextlib.nullcontext()
_local = threading.local()


class ThreadPool:
    """Threads that run tasks, for whose owners they take turns.

    A task runs with the context variables of the thread that scheduled it. `num_threads` ≥ 1
    threads start at once. The threads of a low-priority pool have a raised nice value, and their
    steps wait at the priority gate between nodes. `intra_op_threads` is the number of threads that
    may work on one kernel of a task; 0 means the number set for the process. In a low-priority pool
    it is always 1, because the helper threads of the intra-op pool have the normal nice value. If
    `own_process`, the steps of a low-priority pool run in a child process where that is possible.
    If it `hands_over`, only the native calls of its tasks have a raised nice value.
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
        hands_over: bool = False,
    ) -> None:
        if num_threads < 1:
            raise InvalidArgumentError(f"Pool {name} needs at least one thread, got {num_threads}")
        self.name = name
        self.num_threads = num_threads
        self.low_priority = low_priority
        self.queue_size = queue_size
        self.intra_op_threads = 1 if low_priority else intra_op_threads
        self.own_process = low_priority and own_process
        self._hands_over = hands_over
        self._process = os.getpid()
        self._nice = nice_value()  # which the threads inherit from the one that makes the pool
        # One True for each task that may be taken from `_queue`, and one False for each thread that
        # is to end. The threads block here.
        self._tokens = IdleThreads()
        self._lock = threading.Lock()  # guards all fields below
        self._queue: FairQueue[PoolTask] = FairQueue()
        self._held = 0  # number of waiting tasks without a token, because their owner has n threads
        self._running = RunningTasks()
        self._completed = 0
        self._wait_seconds = 0.0
        self._run_seconds = 0.0
        self._is_shut_down = False
        self._threads: list[threading.Thread] = []  # without those that were superfluous
        self._live_threads = 0  # number of threads that have not ended, without `_retired`
        self._retired = 0  # number of threads that will end because they are superfluous
        self._relief: Timeout | None = None
        self._at_shutdown: list[Callable[[], object]] = []
        if low_priority:
            reduce_timer_slack()
        with self._lock:
            self._start_threads(num_threads)
        if low_priority:
            short_turns = contextlib.ExitStack()
            short_turns.enter_context(gate.short_turns())
            self.at_shutdown(short_turns.close)

    def schedule(
        self,
        task: Callable[[], object],
        *,
        owner: Hashable = None,
        ended: Sequence[object] = (),
    ) -> None:
        """Add a task of `owner` to the queue.

        `ended` must become non-empty when nobody waits for the task any more; its thread is then
        replaced if other tasks wait. Raises ResourceExhaustedError if `queue_size` tasks are
        waiting or after `shutdown`, FailedPreconditionError in a fork of the pool's process.
        """
        if os.getpid() != self._process:  # before a lock that a thread may have held at the fork
            raise FailedPreconditionError(
                f"The threads of pool {self.name} are in process {self._process}, from which this "
                "one was forked; open sessions after the fork"
            )
        if len(self._queue) >= self.queue_size:
            raise ResourceExhaustedError(
                f"The queue of thread pool {self.name} is full: "
                f"{self.queue_size} steps are waiting for {self.num_threads} threads"
            )
        with self._lock:  # a task put after the end markers of `shutdown` would never run
            if self._is_shut_down:
                raise ResourceExhaustedError(f"Thread pool {self.name} has been shut down")
            if not self.low_priority:
                gate.enter()
            trace_id = schedule_task(self.name)
            context = contextvars.copy_context()
            entry = PoolTask(task, time.monotonic(), trace_id, context, owner, ended)
            self._queue.put(owner, entry)
            wake = self._tokens.give(True)
            if self._relief is None and len(self._queue) + len(self._running) > self._live_threads:
                self._relief = deadline_timer.call_at(
                    time.monotonic() + RELIEF_SECONDS, self._relieve
                )
        if wake is not None:
            wake()

    def run_here(
        self,
        task: Callable[[], object],
        *,
        owner: Hashable = None,
        ended: Sequence[object] = (),
    ) -> bool:
        """Run a task in the calling thread if a thread of the pool is idle; return whether it ran.

        It counts and is limited like one that `schedule` adds, and raises nothing but what is no
        `Exception`, such as KeyboardInterrupt. A pool's threads, those of another nice value, and
        the thread of an event loop run none; a low-priority pool lets no thread do so.
        """
        if self.low_priority or not self._may_run_in_caller():
            return False
        entry = self._begin_here(task, owner, ended)
        if entry is None:
            return False
        after_task: list[Callable[[], object]] = []
        _local.pool, _local.after_task = self, after_task
        width_before = set_thread_width(self.intra_op_threads)
        try:
            self._run(entry)
        finally:
            set_thread_width(width_before)
            _local.pool = None
            self._end_here(time.monotonic() - entry.started)
            call_all(after_task, self.name)
        return True

    def stats(self) -> ThreadPoolStats:
        """Return the pool's current statistics."""
        with self._lock:
            return ThreadPoolStats(
                self.name,
                self.num_threads,
                self.low_priority,
                len(self._queue),
                len(self._running),
                self._completed,
                self._wait_seconds,
                self._run_seconds,
                self._running.stuck,
            )

    @property
    def queued(self) -> int:
        """The number of tasks that wait."""
        return len(self._queue)

    @property
    def is_exhausted(self) -> bool:
        """Whether all threads, the additional ones too, are stuck, so that no task can run."""
        with self._lock:
            return self._running.stuck >= self._most_threads

    @property
    def _most_threads(self) -> int:
        return 2 * self.num_threads

    def _missing_threads(self) -> int:
        """Return how many threads the pool lacks; negative if it has too many."""
        has_busy_owner = self._running.has_busy_owner(self.num_threads, BUSY_SECONDS)
        wanted = self.num_threads + self._running.stuck + has_busy_owner
        return min(wanted, self._most_threads) - self._live_threads

    def _may_run_in_caller(self) -> bool:
        return (
            getattr(_local, "pool", None) is None
            and nice_value() == self._nice
            and not _runs_event_loop()
        )

    def _begin_here(
        self, work: Callable[[], object], owner: Hashable, ended: Sequence[object]
    ) -> PoolTask | None:
        """Count a task that the calling thread begins; None if no thread of the pool is idle."""
        with self._lock:
            if self._is_shut_down or len(self._queue) or len(self._running) >= self.num_threads:
                return None
            gate.enter()
            now, context = time.monotonic(), contextvars.copy_context()
            entry = PoolTask(work, now, schedule_task(self.name), context, owner, ended, now)
            self._running.begin(entry)
            return entry

    def _may_begin(self, owner: Hashable) -> bool:
        """Return whether an additional thread could begin a task of `owner`."""
        return owner is None or self._running.of_owner(owner) < self.num_threads

    def _may_take(self, owner: Hashable) -> bool:
        """Return whether a thread may begin a task of `owner`."""
        is_usual = self._live_threads <= self.num_threads or self._is_shut_down
        return is_usual or self._may_begin(owner)

    def _relieve(self) -> None:
        """Start threads if tasks wait because the others are stuck or have one owner."""
        with self._lock:
            self._relief = None
            if self._is_shut_down or not self._queue:
                return
            missing = self._missing_threads() if self._queue.has(self._may_begin) else 0
            if missing > 0:
                _log.warning(
                    "Thread pool %s starts %d threads, because %d of its %d are stuck in kernels "
                    "of ended steps, or one session has all others",
                    *(self.name, missing, self._running.stuck, self._live_threads),
                )
                with contextlib.suppress(RuntimeError):  # the system can't start a thread now
                    self._start_threads(missing)
                self._let_go(missing)
            self._relief = deadline_timer.call_at(time.monotonic() + RELIEF_SECONDS, self._relieve)

    def _start_threads(self, count: int) -> None:
        for _ in range(count):
            thread = threading.Thread(target=self._work, name=f"tf_{self.name}", daemon=True)
            thread.start()
            self._threads.append(thread)
            self._live_threads += 1

    def shutdown(self) -> None:
        """Refuse new tasks, and end the threads after they have run the queued tasks."""
        with self._lock:
            if self._is_shut_down:
                return
            self._is_shut_down = True
            if self._relief is not None:
                self._relief.cancel()
            for is_task in [True] * self._held + [False] * self._live_threads:
                self._tokens.put(is_task)
            self._held = 0

    def at_shutdown(self, callback: Callable[[], object]) -> None:
        """Call `callback` when the last thread ends; if all threads have ended, call it now."""
        with self._lock:
            has_ended = self._has_ended()
            if not has_ended:
                self._at_shutdown.append(callback)
        if has_ended:
            call_and_log(callback, self.name)

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
        if self._hands_over:
            hand_over_native_calls()
        elif self.low_priority:
            nice = NICE_BESIDE_PROCESS if self.own_process else LOW_PRIORITY_NICE
            become_low_priority(max(nice, nice_value()))  # root could lower it
        while self._tokens.get():
            # Tasks stay in the queue until this thread has a turn, for whichever is the next then.
            with gate.turn_of(self.name) if self.low_priority else _NO_TURN:
                entry = self._begin()
                if entry is None:
                    continue
                try:
                    self._run(entry)
                except BaseException:  # SystemExit, for example, would end the pool's thread
                    _log.exception("A task of thread pool %s failed", self.name)
                finally:
                    is_superfluous = self._end(time.monotonic() - entry.started)
            if self.low_priority:
                gate.give_way()  # the callbacks wake threads, which then want the interpreter lock
            call_all(after_task, self.name)
            if self.low_priority:
                gate.pause_between_tasks()
            del entry  # an idle thread must not keep a step's tensors alive
            if is_superfluous:
                return
        with self._lock:
            if self._retired:
                self._retired -= 1
                self._threads.remove(threading.current_thread())
            else:
                self._live_threads -= 1
            is_last = self._has_ended()
        for callback in self._at_shutdown if is_last else ():
            call_and_log(callback, self.name)

    def _run(self, entry: PoolTask) -> None:
        """Run a task and log its error; raise what is no `Exception`."""
        set_running_task(entry.ended)
        begin_task(entry.trace_id, self.name)
        try:
            if self.low_priority:
                gate.pass_through()
            entry.context.run(entry.work)
        except Exception:
            _log.exception("A task of thread pool %s failed", self.name)
        finally:
            end_task(self.name)
            set_running_task(())
            if not self.low_priority:
                gate.leave()

    def _begin(self) -> PoolTask | None:
        """Take the next task; None if all threads are taken, or no waiting owner may have one."""
        with self._lock:
            # More than the threads that take tasks run some only if other threads do (`run_here`).
            is_free = len(self._running) < self._live_threads or self._is_shut_down
            entry = self._queue.take(self._may_take) if is_free else None
            if entry is None:
                self._held += 1
                return None
            self._running.begin(entry)
            entry.started = time.monotonic()
            self._wait_seconds += entry.started - entry.scheduled
            return entry

    def _end(self, seconds: float) -> bool:
        """Count the task of this thread as completed; return whether the thread must end."""
        with self._lock:
            superfluous = self._count_ended(seconds)
            if not superfluous:
                return False
            self._threads.remove(threading.current_thread())
            self._live_threads -= 1
            if not self._running:  # no other task's end will end the idle threads
                self._retire(superfluous - 1)
            return True

    def _end_here(self, seconds: float) -> None:
        """Count the task that the calling thread, which is not the pool's, has run."""
        with self._lock:
            self._retire(self._count_ended(seconds))
            is_last = self._is_shut_down and self._has_ended()
        for callback in self._at_shutdown if is_last else ():
            call_and_log(callback, self.name)

    def _count_ended(self, seconds: float) -> int:
        """Count the calling thread's task as completed; return how many threads are superfluous."""
        self._running.end()
        self._completed += 1
        self._run_seconds += seconds
        self._let_go(1)
        if self._live_threads <= self.num_threads or self._is_shut_down:
            return 0
        return max(0, -self._missing_threads())

    def _let_go(self, count: int) -> None:
        """Let threads try to take up to `count` of the tasks that are held."""
        for _ in range(min(count, self._held)):
            self._held -= 1
            self._tokens.put(True)

    def _retire(self, count: int) -> None:
        """Let `count` idle threads end; the caller must hold the lock."""
        for _ in range(count):
            self._tokens.put(False)
        self._retired += count
        self._live_threads -= count

    def _has_ended(self) -> bool:
        return self._live_threads == 0 and not self._retired and not self._running


def _runs_event_loop() -> bool:
    events = sys.modules.get("asyncio.events")  # to import it takes 30 ms
    return events is not None and events._get_running_loop() is not None


def name_thread(name: str) -> None:
    """Set the name of the calling thread, as `top -H` shows it. Linux keeps its first 15 bytes."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_THREAD_NAME, name.encode()[:15], 0, 0, 0)
