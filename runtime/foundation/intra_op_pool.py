"""Parallel work inside one kernel: blocks run in the step's thread and in helper threads.

A kernel with enough work passes the work to `shard`, which runs it in blocks. The width of the
calling thread is the maximum number of threads that may work on one kernel: a thread of a pool has
the pool's width, any other thread the width of the process, which the first session sets. A call
gets helpers only while fewer threads of the process work on blocks than the width allows, so that
kernels that already run in parallel get none.

Guarantees: thread-safe; the caller works on blocks too and waits only for blocks that a helper has
begun, so busy helpers cause neither a delay nor a deadlock; `shard` returns when all blocks have
ended; if a block raises, no further block is begun and `shard` raises the error; helpers run with
the caller's context variables (numpy's `errstate` is one).

TF: tensorflow/core/util/work_sharder.h (Shard), process_state and local_device.cc (the process's
Eigen thread pool)
"""

from __future__ import annotations

import contextvars
import itertools
import queue
import threading
from collections.abc import Callable

# A second thread does not pay for a smaller block: it needs 5 to 15 µs to wake, with a cold cache.
MIN_BLOCK_NANOSECONDS = 100_000
Work = Callable[[int, int], object]


class _Width(threading.local):
    threads = 0  # the width of the current thread; 0 means the width of the process


class _Shards:
    """The blocks of one call of `run`, which the caller and the helpers take one at a time."""

    __slots__ = ("_bounds", "_ended", "_next", "_work", "error")

    def __init__(self, work: Work, bounds: list[int]) -> None:
        self._work = work
        self._bounds = bounds  # block i covers bounds[i] to bounds[i + 1], exclusive
        self._next = itertools.count()  # next block to take; needs no lock, next() is atomic
        self._ended: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.error: BaseException | None = None

    def take(self) -> int:
        """Run blocks until none is left; return the number of blocks that this thread took."""
        for taken in itertools.count():
            number = next(self._next)
            if number >= len(self._bounds) - 1:
                return taken
            try:
                if self.error is None:
                    self._work(self._bounds[number], self._bounds[number + 1])
            except BaseException as error:
                self.error = error
        raise AssertionError  # itertools.count() has no end

    def report_ended(self, blocks: int) -> None:
        """Notify the caller that a helper has ended `blocks` blocks."""
        for _ in range(blocks):
            self._ended.put(None)

    def wait_for(self, blocks: int) -> None:
        """Block the calling thread until helpers have ended `blocks` blocks."""
        for _ in range(blocks):
            self._ended.get()


class IntraOpPool:
    """Helper threads that run blocks; each thread is started when it is first required."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[tuple[contextvars.Context, _Shards]] = queue.SimpleQueue()
        self._lock = threading.Lock()  # guards `_at_work` and `_threads`
        self._at_work = 0  # number of callers and helpers that work on blocks
        self._threads = 0

    @property
    def num_threads(self) -> int:
        """The number of helper threads that have been started."""
        return self._threads

    def run(self, work: Work, bounds: list[int], width: int) -> None:
        """Run `work` for the blocks between `bounds`, on at most `width` threads.

        The caller is one of the threads. If a block raises, the error is raised here.
        """
        shards = _Shards(work, bounds)
        blocks = len(bounds) - 1
        helpers = self._enter(min(width, blocks))
        try:
            for _ in range(helpers):
                self._tasks.put((contextvars.copy_context(), shards))
            taken = shards.take()
        finally:
            with self._lock:
                self._at_work -= 1
        shards.wait_for(blocks - taken)
        if shards.error is not None:
            raise shards.error

    def _enter(self, width: int) -> int:
        """Add the caller and the helpers it gets to `_at_work`; return the number of helpers."""
        with self._lock:
            self._at_work += 1
            helpers = max(0, width - self._at_work)
            self._at_work += helpers
            missing = max(0, helpers - self._threads)
            self._threads += missing
        for started in range(missing):
            try:
                threading.Thread(target=self._run_helper, name="tf_intra_op", daemon=True).start()
            except RuntimeError:  # the system can't start a thread; the caller runs more blocks
                return helpers - self._uncount_unstarted(missing - started)
        return helpers

    def _uncount_unstarted(self, helpers: int) -> int:
        """Subtract `helpers`, the number that were not started, from the counts; return it."""
        with self._lock:
            self._threads -= helpers
            self._at_work -= helpers
        return helpers

    def _run_helper(self) -> None:
        set_thread_width(1)  # work inside a block is not divided again
        while True:
            context, shards = self._tasks.get()
            blocks = context.run(shards.take)
            with self._lock:  # before `report_ended`, after which the caller may start a kernel
                self._at_work -= 1
            shards.report_ended(blocks)
            del context, shards  # an idle thread must not keep a step's tensors alive


_width = _Width()
_process_width = [1]  # 1 until the first session sets the width
_is_process_width_set = [False]
_process_lock = threading.Lock()  # guards writes of the two lists above
intra_op_pool = IntraOpPool()


def set_process_width(num_threads: int) -> int:
    """Set the width of the process unless it is already set; return the width in effect."""
    with _process_lock:
        if not _is_process_width_set[0]:
            _process_width[0] = num_threads
            _is_process_width_set[0] = True
        return _process_width[0]


def set_thread_width(num_threads: int) -> int:
    """Set the width of the calling thread, and return the one before; 0: that of the process."""
    before = _width.threads
    _width.threads = num_threads
    return before


def thread_width() -> int:
    """Return how many threads, the calling thread included, may work on one kernel."""
    return _width.threads or _process_width[0]


def shard(total: int, cost_per_unit: float, work: Work, multiple: int = 1) -> None:
    """Call `work(start, limit)` for blocks that cover `range(total)`, in parallel if worthwhile.

    `cost_per_unit` is the approximate time in nanoseconds that one thread needs for one unit of
    `total`; it determines the number of blocks. Each block begins at a multiple of `multiple`.
    `work` must not depend on the order of blocks, and no block may read or write memory that
    another block writes. If a block raises, the error is raised here.
    """
    width = thread_width()
    if width > 1:
        units = -(-total // multiple)
        blocks = min(width, units, int(total * cost_per_unit / MIN_BLOCK_NANOSECONDS))
        if blocks > 1:
            bounds = [units * i // blocks * multiple for i in range(blocks)]
            intra_op_pool.run(work, [*bounds, total], width)
            return
    work(0, total)
