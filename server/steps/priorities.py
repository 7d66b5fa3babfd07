"""The priorities: names that requests may give, each with a thread pool."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator

from runtime.api import RunRequest, ThreadPool, global_thread_pools
from runtime.errors import InvalidArgumentError, ResourceExhaustedError
from server.access.access_errors import DeniedError
from server.access.limits import Limits
from server.settings import Settings


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Priority:
    """One entry of the setting `priorities`, with its pool.

    `timeout_ms` and `queue_size` are as in `PrioritySettings`. Used from one event loop.
    """

    name: str
    pool: ThreadPool
    timeout_ms: int = 0
    queue_size: int | None = None
    _admitted: dict[int, RunRequest] = dataclasses.field(default_factory=dict)

    @contextlib.contextmanager
    def admitted(self, run: RunRequest) -> Iterator[None]:
        """Count a step, which `with` starts and waits for, while it has not begun.

        Raises ResourceExhaustedError if `queue_size` steps of this priority wait already.
        """
        if self.queue_size is None:
            yield
            return
        # As long as fewer steps are in progress, so many can't wait, and none is looked at.
        if len(self._admitted) >= self.queue_size and self._waiting() >= self.queue_size:
            raise ResourceExhaustedError(
                f"The queue of priority {self.name} is full: {self.queue_size} steps are waiting "
                f"for thread pool {self.pool.name}"
            )
        self._admitted[id(run)] = run
        try:
            yield
        finally:
            del self._admitted[id(run)]

    def _waiting(self) -> int:
        return sum(run.began_at is None for run in self._admitted.values())


class Priorities:
    """The priorities of one server, and its thread pools, which are global named pools.

    Raises InvalidArgumentError if a global pool of the same name exists with another configured
    number of threads.
    """

    def __init__(self, settings: Settings) -> None:
        self.pools: list[ThreadPool] = [
            global_thread_pools.get_or_create(
                pool.name,
                pool.num_threads,
                low_priority=pool.low_priority,
                queue_size=pool.queue_size,
                intra_op_threads=pool.intra_op_threads,
                own_process=pool.own_process,
            )
            for pool in settings.thread_pools
        ]
        by_name = {pool.name: pool for pool in self.pools}
        self._table = {
            name: Priority(name, by_name[entry.pool], entry.timeout_ms, entry.queue_size)
            for name, entry in settings.priorities.items()
        }
        self._in_order = list(self._table.values())
        self.default = self._table[settings.default_priority]
        self._load_pool = by_name.get(settings.load_thread_pool or "")
        self._load_threads = settings.model_loading.num_threads
        # Called when a request that was admitted names a priority whose pool has child processes.
        self.on_own_process: Callable[[], object] = int

    @functools.cached_property
    def load_pool(self) -> ThreadPool:
        """The pool on which models are loaded; a pool of its own unless the settings name one.

        A pool of its own is not a global pool, so that no session can run steps on it. Most of a
        load is Python code and reading, so that only its native calls are niced.
        """
        return self._load_pool or ThreadPool(
            "loading", self._load_threads, low_priority=True, hands_over=True
        )

    def shutdown(self) -> None:
        """End the threads of the pool that only loading uses."""
        if self._load_pool is None:
            self.load_pool.shutdown()

    def pools_of(self, limits: Limits) -> frozenset[str] | None:
        """Return the names of the pools that an owner may use, or None if it may use all."""
        if limits.pools is not None:
            return frozenset(limits.pools)
        if limits.priorities is None:
            return None
        return frozenset(self._table[name].pool.name for name in limits.priorities)

    def default_of(self, limits: Limits) -> Priority:
        """Return the default of an owner: the server's if the owner may use it, or its first.

        Raises DeniedError if the owner may not use the pool of any of its priorities.
        """
        pools = self.pools_of(limits)
        if pools is None:
            return self.default
        names = self._table if limits.priorities is None else limits.priorities
        own = [self._table[name] for name in names if self._table[name].pool.name in pools]
        if not own:
            may_use = ", ".join(sorted(pools)) or "none"
            raise DeniedError(f"No priority has a pool that the caller may use: {may_use}", "pool")
        return self.default if self.default in own else own[0]

    def has_child(self, priority: str | int | None) -> bool:
        """Return whether the steps of an entry of low priority may run in a child process."""
        with contextlib.suppress(InvalidArgumentError):
            return self.resolve(priority).pool.own_process
        return False

    def resolve(self, priority: str | int | None) -> Priority:
        """Return the entry for a name or an integer.

        The integer n stands for the nth entry; 0 and None stand for the default. Raises
        InvalidArgumentError that lists the known names if there is no such entry.
        """
        if priority is None or priority == 0:
            return self.default
        if isinstance(priority, str):
            found = self._table.get(priority)
        else:
            found = self._in_order[priority - 1] if 0 < priority <= len(self._in_order) else None
        if found is None:
            raise InvalidArgumentError(
                f"Unknown priority {priority!r:.80}; known are {', '.join(self._table)}"
            )
        if found.pool.own_process:
            self.on_own_process()
        return found
