"""Batches of several steps: which step gets the rows, and which steps wait."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import (
    AlreadyExistsError,
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from runtime.framework.cancellation import CancellationManager
from runtime.framework.op_kernel import Deferred
from runtime.framework.resources.step_batches import (
    StepBatcher,
    StepGradientBatcher,
    StepUnbatcher,
    parts_of,
)

HOUR = 3_600_000_000  # microseconds
STEP = CancellationManager()


def rows(*values: float) -> np.ndarray:
    return np.array(values, np.float32)[:, None]


def deferred(result: object) -> Deferred:
    assert isinstance(result, Deferred)
    return result


def test_the_last_step_gets_all_rows() -> None:
    batcher = StepBatcher(3, HOUR, ())
    first, second = batcher.add([rows(1)], STEP), batcher.add([rows(2, 3)], STEP)
    batched, index, key = second.wait()
    empty, no_index, first_key = first.wait()
    np.testing.assert_array_equal(batched, rows(1, 2, 3))
    assert index.tolist() == [[first_key, 0, 1], [key, 1, 3]]
    assert (empty.shape, no_index.shape) == ((0, 1), (0, 3))


def test_rows_that_do_not_fit_complete_the_batch_before_them() -> None:
    batcher = StepBatcher(3, HOUR, (2, 3))
    first, second = batcher.add([rows(1)], STEP), batcher.add([rows(2, 3, 4)], STEP)
    np.testing.assert_array_equal(first.wait()[0], rows(1, 1))  # padded to an allowed size
    np.testing.assert_array_equal(second.wait()[0], rows(2, 3, 4))


def test_a_batch_is_complete_at_its_timeout() -> None:
    batched, index, key = StepBatcher(3, 1000, ()).add([rows(1)], STEP).wait()
    np.testing.assert_array_equal(batched, rows(1))
    assert index.tolist() == [[key, 0, 1]]


def test_tensors_that_do_not_fit_each_other_fail_all_steps() -> None:
    batcher = StepBatcher(2, HOUR, ())
    waiting = [batcher.add([each], STEP) for each in (rows(1), np.ones((1, 2), np.float32))]
    for each in waiting:
        with pytest.raises(InvalidArgumentError, match="Shapes of a batch must agree"):
            each.wait()


def test_a_cancelled_step_stops_waiting() -> None:
    step = CancellationManager()
    waiting = StepBatcher(2, HOUR, ()).add([rows(1)], step)
    step.cancel(CancelledError("over"))
    with pytest.raises(CancelledError, match="Waiting for a batch was cancelled"):
        waiting.wait()


def test_rows_come_back_before_and_after_they_are_asked_for() -> None:
    unbatcher = StepUnbatcher(HOUR)
    early = deferred(unbatcher.exchange((), 1, STEP))
    parts = parts_of(rows(5, 6, 7), np.array([[1, 0, 1], [2, 1, 2], [3, 2, 3]]))
    own = deferred(unbatcher.exchange(parts, 2, STEP))
    late = unbatcher.exchange((), 3, STEP)
    np.testing.assert_array_equal(early.wait(), rows(5))
    np.testing.assert_array_equal(own.wait(), rows(6))
    np.testing.assert_array_equal(late, rows(7))


def test_rows_that_never_come() -> None:
    with pytest.raises(DeadlineExceededError, match="did not arrive within timeout window"):
        deferred(StepUnbatcher(1000).exchange((), 1, STEP)).wait()


def test_rows_of_one_id_twice() -> None:
    unbatcher = StepUnbatcher(HOUR)
    parts = parts_of(rows(5, 6), np.array([[9, 0, 1], [9, 1, 2]]))
    with pytest.raises(AlreadyExistsError, match="Multiple tensors returned for same batch key"):
        unbatcher.exchange(parts, 7, STEP)
    np.testing.assert_array_equal(unbatcher.exchange((), 9, STEP), rows(5))


def test_two_steps_of_one_id() -> None:
    unbatcher = StepUnbatcher(HOUR)
    unbatcher.exchange((), 1, STEP)
    with pytest.raises(AlreadyExistsError, match="Multiple session runs with the same batch key"):
        unbatcher.exchange((), 1, STEP)
    gradients = StepGradientBatcher()
    gradients.add(rows(1), 1, None, STEP)
    with pytest.raises(InvalidArgumentError, match="Two runs with the same batch key"):
        gradients.add(rows(1), 1, None, STEP)


@pytest.mark.parametrize("is_batch_first", [True, False])
def test_gradients_are_joined_where_the_batch_was(is_batch_first: bool) -> None:
    gradients = StepGradientBatcher()
    if is_batch_first:
        waiting = deferred(gradients.add(rows(2), 8, [9, 8], STEP))
        other = gradients.add(rows(1), 9, None, STEP)
    else:
        other = gradients.add(rows(1), 9, None, STEP)
        waiting = deferred(gradients.add(rows(2), 8, [9, 8], STEP))
    np.testing.assert_array_equal(waiting.wait(), rows(1, 2))
    assert np.shape(other) == (0, 1)


def test_a_batch_without_memory_fails_all_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(_: object) -> None:
        raise MemoryError("no memory")

    monkeypatch.setattr(np, "concatenate", no_memory)
    batcher, gradients = StepBatcher(2, HOUR, ()), StepGradientBatcher()
    steps = [batcher.add([rows(number)], STEP) for number in range(2)]
    steps.append(deferred(gradients.add(rows(1), 1, [1], STEP)))
    for step in steps:
        with pytest.raises(ResourceExhaustedError, match=r"OOM .*: no memory"):
            step.wait()
