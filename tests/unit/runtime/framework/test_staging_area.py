"""Those who wait at a staging area: for room, for a tuple, for a key, or until cancelled."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from runtime.foundation.errors import CancelledError
from runtime.framework.cancellation import CancellationManager
from runtime.framework.op_kernel import Deferred
from runtime.framework.resources.staging_area import StagingBuffer, StagingMap


def test_getting_waits_for_a_tuple() -> None:
    area, cancellation = StagingBuffer(0, 0), CancellationManager()
    got = area.run(area.get, cancellation)
    assert isinstance(got, Deferred)
    area.run(functools.partial(area.put, (1, 2)), cancellation)
    assert got.wait() == (1, 2)


def test_putting_waits_for_room() -> None:
    area, cancellation = StagingBuffer(1, 0), CancellationManager()
    assert area.run(functools.partial(area.put, (1,)), cancellation) is None
    second = area.run(functools.partial(area.put, (2,)), cancellation)
    assert isinstance(second, Deferred) and area.size() == 1
    assert area.run(area.get, cancellation) == (1,)
    assert second.wait() is None
    assert area.run(area.get, cancellation) == (2,)


def test_putting_waits_for_memory() -> None:
    value = np.zeros(3, np.float32)  # 12 bytes
    area, cancellation = StagingMap(0, 20, 1, is_ordered=False), CancellationManager()
    assert area.run(functools.partial(area.put, np.array(1), [0], [value]), cancellation) is None
    second = area.run(functools.partial(area.put, np.array(2), [0], [value]), cancellation)
    assert isinstance(second, Deferred)
    wanted = area.run(functools.partial(area.get, 2, [0]), cancellation)
    assert isinstance(wanted, Deferred)
    area.run(functools.partial(area.get, 1, [0]), cancellation)
    assert second.wait() is None
    assert wanted.wait()[0] is value


def test_cancelled_waiter_leaves_the_line() -> None:
    area, cancellation = StagingBuffer(0, 0), CancellationManager()
    got = area.run(area.get, cancellation)
    cancellation.cancel(CancelledError("enough"))
    with pytest.raises(CancelledError, match="Staging operation was cancelled"):
        got.wait()
    with pytest.raises(CancelledError, match="Staging operation was cancelled"):
        area.run(area.get, cancellation).wait()
    area.run(functools.partial(area.put, (1,)), CancellationManager())
    assert area.size() == 1


def test_the_key_taken_is_the_tensor_put() -> None:
    """Of whatever rank; and it may go over the wire, which a number of Python's own can't."""
    area, cancellation = StagingMap(0, 0, 1, is_ordered=True), CancellationManager()
    area.run(functools.partial(area.put, np.array([7]), [0], ["value"]), cancellation)
    key, value = area.run(functools.partial(area.get_any, [0]), cancellation)
    assert (key.tolist(), key.dtype, value) == ([7], np.int64, "value")
