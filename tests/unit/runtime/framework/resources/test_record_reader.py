"""Readers under threads: other calls run between two records, not within one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runtime.foundation.errors import DataLossError, InternalError, OpError
from runtime.framework.cancellation import CancellationManager
from runtime.framework.dtypes import DataType
from runtime.framework.io.file_gate import DenyAll
from runtime.framework.resources.queues import Queue
from runtime.framework.resources.record_reader import Reader
from tests.unit.runtime.framework.resources.concurrent_calls import Concurrent, started_at


def reader_and_call(call: Callable[[Reader], Any]) -> tuple[Reader, Concurrent, list[str]]:
    """A reader of three records, and `call`, which starts while the second one is read."""
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


@pytest.mark.parametrize("error", [OSError("damaged"), DataLossError("damaged")])
@pytest.mark.parametrize("where", ["open", "read"])
@pytest.mark.parametrize("waits", [False, True])
def test_a_read_after_one_that_failed_begins(error: Exception, where: str, waits: bool) -> None:
    failures = [error]

    def open_work(path: str) -> Iterator[tuple[str, bytes]]:
        if where == "open" and failures:
            raise failures.pop()
        return records()

    def records() -> Iterator[tuple[str, bytes]]:
        if failures:
            raise failures.pop()
        yield "key", b"value"

    reader = Reader("TestReader", open_work, reads_files=False)
    cancellation = CancellationManager()
    names = Queue("names", (DataType.STRING,), ((),), -1)
    if not waits:
        names.enqueue([(b"work",)], cancellation)
    failed = reader.read_up_to(1, names, DenyAll(), cancellation)
    names.enqueue([(b"work",)] * 2, cancellation)
    text = "damaged" if isinstance(error, OpError) else "OSError: damaged"
    kind = type(error) if isinstance(error, OpError) else InternalError
    assert type(failed.error) is kind
    assert failed.error.message == text
    reader.reset()
    later = reader.read_up_to(1, names, DenyAll(), cancellation)
    assert later.error is None
    assert later.value == [(b"work:key", b"value")]
