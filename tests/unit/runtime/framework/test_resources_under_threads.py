"""Tables, tensor arrays and readers: nothing is seen, or forked, half way through a change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from runtime.foundation.errors import FailedPreconditionError
from runtime.framework.cancellation import CancellationManager
from runtime.framework.dtypes import DataType
from runtime.framework.io.file_gate import DenyAll
from runtime.framework.resources import lookup_table
from runtime.framework.resources.lookup_table import HashTable
from runtime.framework.resources.mutable_hash_table import MutableHashTable
from runtime.framework.resources.queues import Queue
from runtime.framework.resources.record_reader import Reader
from runtime.framework.resources.tensor_array import TensorArray
from tests.unit.runtime.framework.concurrent_calls import Concurrent

KEYS = np.array([1, 2, 3], np.int64)


def started_at(second: Callable[[], object], values: list[Any]) -> Iterator[Any]:
    """The values; `second` is called before the second one."""
    for index, value in enumerate(values):
        if index == 1:
            second()
        yield value


# Tables


def test_the_size_of_a_table_is_that_before_or_after_a_removal() -> None:
    table = MutableHashTable(DataType.INT64, DataType.INT64)
    size = Concurrent(table, lambda: table.size)
    started: list[str] = []

    class Watched(dict[Any, Any]):
        def pop(self, *arguments: Any) -> Any:
            value = super().pop(*arguments)
            if not started:
                started.append(size.start())
            return value

    table._values = Watched({1: 1, 2: 2, 3: 3})
    table.remove(KEYS)
    assert started == ["waits"]
    assert size.result() == 0


def while_filling(monkeypatch: pytest.MonkeyPatch, call: Concurrent) -> list[str]:
    """Let `call` begin while a HashTable is filled; how it began stands in the list then."""
    original, started = lookup_table._Contents.of_rows, list[str]()

    def of_rows(*arguments: Any) -> Any:
        if not started:
            started.append("begins")
            started[0] = call.start()
        return original(*arguments)

    monkeypatch.setattr(lookup_table._Contents, "of_rows", of_rows)
    return started


def test_two_initialisations_with_other_contents_do_not_both_succeed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = HashTable(DataType.INT64, DataType.INT64)
    other = Concurrent(table, lambda: table.initialize(KEYS[:2], KEYS[:2]))
    started = while_filling(monkeypatch, other)
    table.initialize(KEYS, KEYS)
    assert started == ["waits"]
    with pytest.raises(FailedPreconditionError) as caught:
        other.result()
    assert caught.value.message == "Table was already initialized with different data."
    assert table.size == 3


def test_a_fork_during_an_initialisation_shares_the_contents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = HashTable(DataType.INT64, DataType.INT64)
    fork = Concurrent(table, table.fork)
    started = while_filling(monkeypatch, fork)
    table.initialize(KEYS, KEYS)
    assert started == ["waits"]
    assert fork.result().size == 3
    assert table.bytes_held == fork.result().bytes_held == 0


# Tensor arrays


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


# Readers


def reader_and_call(call: Callable[[Reader], Any]) -> tuple[Reader, Concurrent, list[str]]:
    """A reader of three records that begins `call` while it reads the second one."""
    started: list[str] = []

    def open_work(path: str) -> Iterator[tuple[str, bytes]]:
        records = [(str(number), b"value") for number in range(3)]
        return started_at(lambda: started.append(concurrent.start()), records)

    reader = Reader("TestReader", open_work, reads_files=False)
    concurrent = Concurrent(reader, lambda: call(reader), lock="_state_lock")
    return reader, concurrent, started


def read(reader: Reader, count: int) -> list[bytes]:
    cancellation = CancellationManager()
    names = Queue("names", (DataType.STRING,), ((),), -1)
    names.enqueue([(b"work",)], cancellation)
    deferred = reader.read_up_to(count, names, DenyAll(), cancellation)
    assert deferred.error is None
    return [key for key, _ in deferred.value]


def test_a_reset_comes_between_two_records() -> None:
    reader, reset, started = reader_and_call(Reader.reset)
    assert read(reader, 2) == [b"work:0", b"work:1"]
    assert started == ["waits"]
    reset.result()
    assert reader.num_records_produced == 0
    assert reader.serialize_state() == b""


def test_the_state_of_a_reader_is_saved_between_two_records() -> None:
    reader, save, started = reader_and_call(Reader.serialize_state)
    assert read(reader, 2) == [b"work:0", b"work:1"]
    assert started == ["waits"]
    assert save.result() == reader.serialize_state()
