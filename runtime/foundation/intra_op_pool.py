"""Work inside one kernel: blocks of it run in the step's thread and in a few threads that help.

A kernel that is worth it hands its rows to `shard`, which runs them in blocks. How many threads
work on them is the width of the calling thread: a pool's threads have the pool's, all others the
process's, which its first session sets. A helper is asked only while fewer threads than that are
at work on blocks, so branches that already run side by side do not get helpers on top.

Guarantees: thread-safe; the caller works too and never waits for a block that nobody has begun, so
helpers that are busy cost nothing and nothing can deadlock; `shard` returns when all blocks have
ended, and raises the first error of any; helpers see the caller's context variables (numpy's
`errstate` is one).

TF: tensorflow/core/util/work_sharder.h (Shard), process_state and local_device.cc (the process's
Eigen thread pool)
"""

from __future__ import annotations

import contextvars
import itertools
import queue
import threading
from collections.abc import Callable

# Less is not worth a second thread: waking one takes 5 to 15 µs, and it starts with a cold cache.
MIN_BLOCK_NANOSECONDS = 100_000
Work = Callable[[int, int], object]


class _Width(threading.local):
    threads = 0  # of the thread at hand; 0 is the process's


class _Shards:
    """The blocks of one call, which the caller and its helpers take one by one."""

    __slots__ = ("_bounds", "_ended", "_next", "_work", "error")

    def __init__(self, work: Work, bounds: list[int]) -> None:
        self._work = work
        self._bounds = bounds  # block i is bounds[i] … bounds[i + 1]
        self._next = itertools.count()  # next() is atomic
        self._ended: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.error: BaseException | None = None

    def take(self) -> int:
        """Run blocks until none is left; how many."""
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

    def tell(self, blocks: int) -> None:
        """Tell the caller that a helper has ended so many blocks."""
        for _ in range(blocks):
            self._ended.put(None)

    def wait_for(self, blocks: int) -> None:
        """Until helpers have ended that many blocks."""
        for _ in range(blocks):
            self._ended.get()


class IntraOpPool:
    """Threads that help others with blocks; they start when first asked for."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[tuple[contextvars.Context, _Shards]] = queue.SimpleQueue()
        self._lock = threading.Lock()  # guards the counts below
        self._at_work = 0  # threads on blocks: callers, and helpers that were asked
        self._threads = 0

    @property
    def num_threads(self) -> int:
        """Helpers that have been started."""
        return self._threads

    def run(self, work: Work, bounds: list[int], width: int) -> None:
        """Run the blocks between `bounds` on at most `width` threads, this one included."""
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
        """Count the caller and the helpers that it may ask."""
        with self._lock:
            self._at_work += 1
            helpers = max(0, width - self._at_work)
            self._at_work += helpers
            missing = max(0, helpers - self._threads)
            self._threads += missing
        for started in range(missing):
            try:
                threading.Thread(target=self._help, name="tf_intra_op", daemon=True).start()
            except RuntimeError:  # no thread more: the caller does what is left
                return helpers - self._give_up(missing - started)
        return helpers

    def _give_up(self, helpers: int) -> int:
        """Take back helpers that could not be started; how many."""
        with self._lock:
            self._threads -= helpers
            self._at_work -= helpers
        return helpers

    def _help(self) -> None:
        set_thread_width(1)  # a block never asks for help itself
        while True:
            context, shards = self._tasks.get()
            blocks = context.run(shards.take)
            with self._lock:  # before the caller knows: it may have more work at once
                self._at_work -= 1
            shards.tell(blocks)
            del context, shards  # an idle thread must not keep a step's tensors alive


_width = _Width()
_process_width = [1]  # until the first session sets it
_is_process_width_set = [False]
_process_lock = threading.Lock()  # guards the two above while they change
intra_op_pool = IntraOpPool()


def set_process_width(num_threads: int) -> int:
    """Set the width of threads that have none of their own; the first caller decides. The width."""
    with _process_lock:
        if not _is_process_width_set[0]:
            _process_width[0] = num_threads
            _is_process_width_set[0] = True
        return _process_width[0]


def set_thread_width(num_threads: int) -> None:
    """Set the width of the calling thread; 0 is the process's."""
    _width.threads = num_threads


def thread_width() -> int:
    """How many threads may work on one kernel of the calling thread, itself included."""
    return _width.threads or _process_width[0]


def shard(total: int, cost_per_unit: float, work: Work, multiple: int = 1) -> None:
    """Call `work(start, limit)` for blocks that cover 0 … `total`, several at the same time.

    `cost_per_unit` is the time of one unit in one thread, in nanoseconds, roughly: it decides
    whether, and into how many blocks, the work is split. Blocks begin at multiples of `multiple`.
    `work` must not depend on the order of blocks, and each writes where no other reads or writes.
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
