"""Those who wait for gradients: in their order, without a thread, and until they are cancelled."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import CancelledError
from runtime.framework.cancellation import CancellationManager
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import Deferred
from runtime.framework.resources.conditional_accumulator import DenseConditionalAccumulator


def accumulator() -> DenseConditionalAccumulator:
    return DenseConditionalAccumulator("a", DataType.FLOAT, (1,), is_mean=True)


def test_takers_wait_in_line() -> None:
    found = accumulator()
    first = found.take(2, CancellationManager())
    second = found.take(1, CancellationManager())
    assert isinstance(first, Deferred) and isinstance(second, Deferred)
    found.apply(0, np.float32([1]))
    assert first.value is None and second.value is None  # the second stands behind the first
    found.apply(0, np.float32([3]))
    np.testing.assert_array_equal(first.wait(), [2])
    assert found.count == 0
    found.apply(1, np.float32([5]))
    np.testing.assert_array_equal(second.wait(), [5])


def test_cancelled_taker_lets_the_next_one_go() -> None:
    found, cancellation = accumulator(), CancellationManager()
    first = found.take(3, cancellation)
    second = found.take(1, CancellationManager())
    found.apply(0, np.float32([4]))
    assert second.value is None
    cancellation.cancel(CancelledError("enough"))
    with pytest.raises(CancelledError, match="TakeGrad operation was cancelled"):
        first.wait()
    np.testing.assert_array_equal(second.wait(), [4])


def test_take_of_a_cancelled_step() -> None:
    found, cancellation = accumulator(), CancellationManager()
    cancellation.cancel(CancelledError("enough"))
    with pytest.raises(CancelledError, match="TakeGrad operation was cancelled"):
        found.take(1, cancellation).wait()
    found.apply(0, np.float32([1]))
    assert found.count == 1
