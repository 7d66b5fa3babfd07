"""The compile queue: one thread at a time, which prepares and compiles clusters, a job at a time.

Guarantees: thread-safe; `submit` never waits; jobs run in their order. A job knows its owner only
weakly, so that a closed session or an unloaded model is freed at once: its waiting jobs are
dropped, and the native part of its running job is stopped (`Interrupt`). The interpreter's exit
stops the running job and waits for it at most `_EXIT_SECONDS`.

Compiling, and the numpy kernels that ran meanwhile, leave tens of megabytes of holes in the heap.
They are returned to the system once no job waits and no step has run for a moment: the next step
then gets new pages, which takes about 1 ms. The thread then ends: the C library keeps some freed
blocks of each living thread for it, and each of them may keep a page when the model is gone.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import logging
import queue
import threading
import time
from collections.abc import Callable

from runtime.clusters.running.engine import return_engine_memory
from runtime.clusters.running.interrupt import Interrupt
from runtime.foundation.model_objects import model_objects
from runtime.foundation.priority_gate import PriorityGate, gate

QUIET_SECONDS = 0.05  # without a step, after which the memory of compilations is returned
_BUSY_SECONDS = 10.0  # after which it is returned though steps run all the time
_EXIT_SECONDS = 1.0  # an engine stops compiling within about 0.15 s
_log = logging.getLogger(__name__)

Job = Callable[[], object]


def give_back_memory() -> None:
    """Return freed memory to the system, if the C library can; compiling frees much at once."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def give_back_idle_memory() -> None:
    """Return what runs and compilations have freed to the system."""
    return_engine_memory()
    give_back_memory()


class CompileQueue:
    """Jobs in order, and the thread that runs them, which a job starts if there is none.

    `clear_up` is called after jobs, when no job waits and none of `steps` runs; the thread then
    ends.
    """

    def __init__(
        self,
        clear_up: Callable[[], object] = give_back_idle_memory,
        steps: PriorityGate = gate,
    ) -> None:
        self._clear_up = clear_up
        self._steps = steps
        self._jobs: queue.SimpleQueue[tuple[Job, Interrupt]] = queue.SimpleQueue()
        self._lock = threading.Lock()  # guards `_thread` and `_is_registered`
        self._thread: threading.Thread | None = None
        self._running: Interrupt | None = None
        self._is_ending = False
        self._is_registered = False  # at the interpreter's exit

    def submit(self, job: Job, interrupt: Interrupt) -> None:
        """Run `job` later in the queue's thread, unless `interrupt` is set by then."""
        self._jobs.put((job, interrupt))
        with self._lock:
            if self._thread is None and not self._is_ending:
                thread = threading.Thread(target=self._run, name="cluster_compiler", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the system can't start a thread; the next job tries again
                    return
                self._thread = thread
                if not self._is_registered:
                    self._is_registered = True
                    atexit.register(self._end)

    def wait_until_idle(self, timeout_seconds: float) -> bool:
        """Wait until all jobs that were submitted before have ended; return whether they have."""
        ended = threading.Event()
        self.submit(ended.set, Interrupt())
        return ended.wait(timeout_seconds)

    def _run(self) -> None:
        while not self._is_ending:
            found = self._next()
            if found is None:
                if self._has_left():
                    return
                continue
            job, self._running = found
            if not self._running.is_set:
                try:
                    with model_objects:  # what a job makes stays as long as its model
                        job()
                except BaseException:  # also SystemExit: the jobs that wait need the thread
                    _log.exception("A job of the cluster compiler failed")
            self._running = None
            del found, job

    def _next(self) -> tuple[Job, Interrupt] | None:
        """Return the next job; without any, clear up once no step runs, and return None."""
        end = time.monotonic() + _BUSY_SECONDS
        while True:
            ended = self._steps.ended
            with contextlib.suppress(queue.Empty):
                return self._jobs.get(timeout=QUIET_SECONDS)
            is_quiet = self._steps.ended == ended and not self._steps.pending
            if is_quiet or time.monotonic() > end:
                self._clear_up()
                return None

    def _has_left(self) -> bool:
        """Let the next job start another thread, unless one waits already."""
        with self._lock:
            if not self._jobs.empty():
                return False
            self._thread = None
            return True

    def _end(self) -> None:
        """Stop the running job at the interpreter's exit."""
        self._is_ending = True
        running, thread = self._running, self._thread
        if running is not None and thread is not None:
            running.set()
            thread.join(_EXIT_SECONDS)


compile_queue = CompileQueue()
