"""BatchQueue: the tasks of one signature and priority that wait, gathered into batches.

Pure state: time is passed in, in seconds. A batch has tasks of one key, which tells which tensors
can be concatenated. A task joins the newest batch of its key if it fits, otherwise that batch is
closed and a new one opened. A batch can be taken once it is closed or full, or once its first task
has waited for the timeout.

TF: tensorflow/core/kernels/batching_util/shared_batch_scheduler.h (Queue)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator

from runtime.errors import InvalidArgumentError, ResourceExhaustedError, UnavailableError
from server.steps.batching.parameters import BatchParameters

_FULL = "The batch scheduling queue to which this task was submitted is full; "


@dataclasses.dataclass(slots=True, eq=False)
class Task:
    """A request's step, or a part of one; `rows` is the size of the first dimension, at least 1."""

    key: Hashable
    rows: int
    batch: Batch | None = None  # while it waits
    since: float = 0.0  # when it was added


@dataclasses.dataclass(slots=True, eq=False)
class Batch:
    """Tasks of one key, in the order of their arrival."""

    key: Hashable
    opened_at: float
    tasks: list[Task] = dataclasses.field(default_factory=list)
    rows: int = 0
    is_open: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Waiting:
    """The limits of an adaptive queue: tasks that may wait, as in a pool; above it they get 429."""

    max_tasks: int
    pool: str


class BatchQueue:
    """The batches that wait; `limit` is the largest number of rows of a batch.

    With `parameters` the queue has TensorFlow Serving's limits and timeout. Without, nothing waits
    for more tasks, a task of any size is taken, and `waiting` bounds the number of tasks.
    """

    def __init__(
        self, parameters: BatchParameters | None, limit: int, waiting: Waiting | None = None
    ) -> None:
        self._parameters = parameters
        self._waiting = waiting
        self.limit = limit
        self._timeout = 0.0 if parameters is None else parameters.batch_timeout_micros / 1e6
        self._batches: list[Batch] = []
        self._open: dict[Hashable, Batch] = {}
        self.size = 0  # the number of tasks

    def __len__(self) -> int:
        return len(self._batches)

    def parts_of(self, key: Hashable, rows: int) -> list[int]:
        """Return the numbers of rows of the tasks that a request of `rows` rows must become.

        Raises InvalidArgumentError if the request is larger than any batch may be, and
        UnavailableError or ResourceExhaustedError if the queue is full.
        """
        parameters = self._parameters
        if parameters is None:
            if self._waiting is not None and self.size >= self._waiting.max_tasks:
                raise ResourceExhaustedError(
                    f"The queue of thread pool {self._waiting.pool} is full: "
                    f"{self.size} steps are waiting to be batched"
                )
            return [rows]
        if rows > parameters.max_batch_size:
            raise InvalidArgumentError(
                f"Task size {rows} is larger than maximum input batch size "
                f"{parameters.max_batch_size}"
            )
        newest = self._open.get(key)
        taken = 0 if newest is None else newest.rows
        room = self.limit - taken if newest is not None else 0
        count, most = len(self._batches), parameters.max_enqueued_batches
        if not parameters.enable_large_batch_splitting:
            if rows > room and count >= most:
                raise UnavailableError(
                    f"{_FULL}currently {count} batches enqueued and max_enqueued_batches is {most}"
                )
            return [rows]
        capacity = max(0, most - count) * self.limit + room
        if rows > capacity:
            raise UnavailableError(
                f"{_FULL}task size is {rows} but scheduling capacity is only {capacity} "
                f"(num_enqueued_batches={count}, max_enqueued_batches={most}, "
                f"open_batch_size={taken}, max_execution_batch_size={self.limit})"
            )
        return list(_split(rows, room, self.limit))

    def add(self, task: Task, now: float) -> None:
        """Add a task of a size that `parts_of` gave."""
        batch = self._open.get(task.key)
        if batch is not None and batch.rows + task.rows > self.limit:
            batch.is_open = False
            batch = None
        if batch is None:
            batch = self._open[task.key] = Batch(task.key, now)
            self._batches.append(batch)
        batch.tasks.append(task)
        batch.rows += task.rows
        task.batch, task.since = batch, now
        self.size += 1

    def change_limit(self, limit: int) -> None:
        """Set the largest number of rows of a batch, also of those that wait."""
        if limit == self.limit:
            return
        self.limit = limit
        tasks = [task for batch in self._batches for task in batch.tasks]
        self._batches.clear()
        self._open.clear()
        self.size = 0
        for task in tasks:
            self.add(task, task.since)

    def remove(self, task: Task) -> None:
        """Drop a task that waits; one that does not wait is left alone."""
        batch = task.batch
        if batch is None:
            return
        task.batch = None
        batch.tasks.remove(task)
        batch.rows -= task.rows
        self.size -= 1
        if batch.tasks:
            batch.opened_at = batch.tasks[0].since
        else:
            self._drop(batch)

    def due_at(self) -> float | None:
        """Return the first instant at which a batch can be taken; None if there is none."""
        return min(map(self._due_at, self._batches), default=None)

    def take(self, now: float) -> list[Task]:
        """Return the tasks of the batch that has been due for longest; none if none is due."""
        due = min(self._batches, key=self._due_at, default=None)
        if due is None or self._due_at(due) > now:
            return []
        self._drop(due)
        return self._taken(due.tasks)

    def take_fitting(self, key: Hashable, rows: int) -> list[Task]:
        """Return the first tasks of a key that fit in `rows` rows together, in their order."""
        found: list[Task] = []
        for batch in [each for each in self._batches if each.key == key]:
            for task in list(batch.tasks):
                if task.rows <= rows:
                    rows -= task.rows
                    self.remove(task)
                    found.append(task)
        return found

    def _taken(self, tasks: list[Task]) -> list[Task]:
        for task in tasks:
            task.batch = None
        self.size -= len(tasks)
        return tasks

    def _due_at(self, batch: Batch) -> float:
        if not batch.is_open or batch.rows >= self.limit:
            return batch.tasks[0].since
        return batch.opened_at + self._timeout

    def _drop(self, batch: Batch) -> None:
        self._batches.remove(batch)
        if self._open.get(batch.key) is batch:
            del self._open[batch.key]


def _split(rows: int, room: int, limit: int) -> Iterator[int]:
    """Yield the sizes of the parts: what fits beside others first, then full batches."""
    if rows <= room:
        yield rows
        return
    if room:
        yield room
        rows -= room
    while rows > 0:
        yield min(rows, limit)
        rows -= limit
