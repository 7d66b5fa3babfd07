"""Tensor arrays under threads: a read or write of several items is not interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from runtime.framework.resources.tensor_array import TensorArray
from tests.unit.runtime.framework.resources.concurrent_calls import Concurrent, started_at


def written_array() -> TensorArray:
    array = TensorArray("array", DataType.INT64, 3)
    array.write_parts([(index, np.int64(index)) for index in range(3)])
    return array


def test_a_close_comes_between_no_items_of_one_read() -> None:
    array = written_array()
    close = Concurrent(array, array.close)
    started: list[str] = []
    items = array.read_many(started_at(lambda: started.append(close.start()), [0, 1, 2]))
    assert started == ["waits"]
    assert items == [0, 1, 2]


def test_a_read_comes_between_no_items_of_one_write() -> None:
    array = TensorArray("array", DataType.INT64, 3, (), clear_after_read=False)
    read = Concurrent(array, array.read_joined)
    started: list[str] = []

    class Parts(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            return started_at(lambda: started.append(read.start()), self[:])

    array.write_parts(Parts((index, np.int64(1)) for index in range(3)))
    assert started == ["waits"]
    assert read.result() == [1, 1, 1]
