"""The queue's state, with an instant that the test gives."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.errors import InvalidArgumentError, ResourceExhaustedError, UnavailableError
from server.steps.batching.batch_queue import BatchQueue, Task, Waiting
from server.steps.batching.parameters import BatchParameters

FULL = "The batch scheduling queue to which this task was submitted is full; "


def queue_of(**values: Any) -> BatchQueue:
    parameters = BatchParameters(**values)
    return BatchQueue(parameters, parameters.execution_size)


def added(queue: BatchQueue, rows: int, now: float = 0, key: str = "k") -> Task:
    (size,) = queue.parts_of(key, rows)
    task = Task(key, size)
    queue.add(task, now)
    return task


def test_a_batch_waits_for_its_timeout_from_its_first_task() -> None:
    queue = queue_of(max_batch_size=4, batch_timeout_micros=1_000_000)
    tasks = [added(queue, 1, now=10), added(queue, 1, now=10.5)]
    assert queue.due_at() == 11
    assert queue.take(10.9) == []
    assert queue.take(11) == tasks
    assert (queue.due_at(), queue.size, len(queue)) == (None, 0, 0)


def test_a_full_batch_is_due_at_once() -> None:
    queue = queue_of(max_batch_size=4, batch_timeout_micros=1_000_000)
    tasks = [added(queue, 3, now=10), added(queue, 1, now=10.5)]
    assert queue.take(10.5) == tasks


def test_a_task_that_does_not_fit_closes_the_batch() -> None:
    queue = queue_of(max_batch_size=4, batch_timeout_micros=1_000_000)
    first, second = added(queue, 3, now=10), added(queue, 2, now=10.5)
    assert queue.take(10.5) == [first]
    assert queue.take(10.5) == []
    assert queue.take(11.5) == [second]


def test_tasks_of_other_keys_are_other_batches() -> None:
    queue = queue_of(max_batch_size=4)
    first, other, third = added(queue, 1), added(queue, 1, 1, "other"), added(queue, 1, 2)
    assert queue.take(2) == [first, third]
    assert queue.take(2) == [other]


def test_the_batch_that_is_due_for_longest_comes_first() -> None:
    queue = queue_of(max_batch_size=2, batch_timeout_micros=1_000_000)
    added(queue, 1, 5, "a")
    full = [added(queue, 1, 5.2, "b"), added(queue, 1, 5.3, "b")]
    assert queue.take(7) == full


def test_a_task_that_leaves_frees_its_rows_and_its_time() -> None:
    queue = queue_of(max_batch_size=2, batch_timeout_micros=1_000_000)
    first, second = added(queue, 1, 1), added(queue, 1, 1.5)
    queue.remove(first)
    queue.remove(first)
    assert queue.due_at() == 2.5
    third = added(queue, 1, 1.6)
    assert queue.take(1.6) == [second, third]
    queue.remove(third)  # runs already
    last = added(queue, 1, 3)
    queue.remove(last)
    assert (queue.due_at(), queue.size) == (None, 0)


def test_a_task_of_more_rows_than_a_batch_is_refused() -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        queue_of(max_batch_size=4).parts_of("k", 5)
    assert raised.value.message == "Task size 5 is larger than maximum input batch size 4"


def test_a_full_queue_takes_what_fits_into_the_open_batch_only() -> None:
    queue = queue_of(max_batch_size=4, max_enqueued_batches=2)
    for _ in range(2):
        added(queue, 3)
    with pytest.raises(UnavailableError) as raised:
        queue.parts_of("k", 2)
    text = "currently 2 batches enqueued and max_enqueued_batches is 2"
    assert raised.value.message == FULL + text
    with pytest.raises(UnavailableError):
        queue.parts_of("another shape", 1)
    added(queue, 1)


def test_a_large_task_becomes_parts_that_fill_the_open_batch_first() -> None:
    queue = queue_of(
        max_batch_size=10,
        enable_large_batch_splitting=True,
        max_execution_batch_size=4,
        max_enqueued_batches=3,
    )
    assert queue.parts_of("k", 9) == [4, 4, 1]
    added(queue, 3)
    assert queue.parts_of("k", 7) == [1, 4, 2]
    assert queue.parts_of("k", 1) == [1]
    with pytest.raises(UnavailableError) as raised:
        queue.parts_of("k", 10)
    assert raised.value.message == (
        f"{FULL}task size is 10 but scheduling capacity is only 9 (num_enqueued_batches=1, "
        "max_enqueued_batches=3, open_batch_size=3, max_execution_batch_size=4)"
    )


def test_tasks_that_fit_are_taken_in_their_order() -> None:
    queue = queue_of(max_batch_size=4)
    first, large, last = added(queue, 1), added(queue, 3), added(queue, 1)
    added(queue, 1, key="other")
    assert queue.take_fitting("k", 2) == [first, last]
    assert queue.take_fitting("k", 2) == []
    assert queue.take(1) == [large]
    assert queue.size == 1


def test_an_adaptive_queue_takes_any_size_and_is_full_as_a_pool_is() -> None:
    queue = BatchQueue(None, 2, Waiting(3, "online"))
    large, small = added(queue, 5000), added(queue, 1)
    added(queue, 1)
    with pytest.raises(ResourceExhaustedError) as raised:
        queue.parts_of("k", 1)
    assert raised.value.message == (
        "The queue of thread pool online is full: 3 steps are waiting to be batched"
    )
    assert queue.take(0) == [large]
    assert small in queue.take(0)


def test_batches_that_wait_are_made_anew_when_the_limit_changes() -> None:
    queue = BatchQueue(None, 2)
    first, second = (added(queue, 1, now) for now in (3, 4))
    third, other = added(queue, 1, now=5), added(queue, 1, now=6, key="l")
    queue.change_limit(1)
    assert [queue.take(9) for _ in range(2)] == [[first], [second]]
    queue.remove(third)
    queue.change_limit(4)
    fourth, fifth = added(queue, 3, now=7, key="l"), added(queue, 1, now=8)
    assert queue.size == 3
    assert queue.due_at() == 6
    assert [queue.take(9) for _ in range(2)] == [[other, fourth], [fifth]]
    assert (queue.size, len(queue)) == (0, 0)
