"""Readers, which produce the records of files whose names they take from a queue.

A file, or whatever else a name stands for, is called a work unit, as in TensorFlow. Each work unit
is read to the end before the next name is taken. The reads of one reader run one after the other. A
read that has to wait for the next name blocks no thread; the thread that adds the name to the queue
continues the read and completes the read's `Deferred`.

Guarantees: thread-safe; each record is returned by only one read; a read that fails with any
exception ends with an OpError, and the next read begins; the state is reset or saved only between
two records, never while a record is read.

TF: tensorflow/core/framework/reader_base.cc
"""

from __future__ import annotations

import collections
import functools
import io
import os
import threading
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, OpError, as_op_error
from runtime.framework.cancellation import CancellationManager
from runtime.framework.io.record_files import Records
from runtime.framework.io.varint import decode_varint, encode_varint
from runtime.framework.op_kernel import Deferred, FileGate
from runtime.framework.resource_manager import Resource
from runtime.framework.resources.queues import Element, Queue
from runtime.framework.tensor_text import escape_bytes
from runtime.framework.tensor_value import TensorValue

Record = tuple[bytes, bytes]  # (key, value)
OpenWork = Callable[[str], Records]  # opens the work unit that has the given name

_CURRENT_WORK = 4  # field number in ReaderBaseState; fields 1 to 3 are the three counts
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5  # protobuf's wire types


class _Read:
    """A pending read and the records that it has read so far."""

    __slots__ = ("cancellation", "count", "deferred", "files", "queue", "records")

    def __init__(
        self, count: int, queue: Queue, files: FileGate, cancellation: CancellationManager
    ) -> None:
        self.count = count
        self.queue = queue
        self.files = files
        self.cancellation = cancellation
        self.records: list[Record] = []
        self.deferred = Deferred()


class Reader(Resource):
    """A reader of the work units that `open_work` opens; error messages contain `title`.

    If `reads_files`, work units are files, and a read raises unless the step's FileGate allows the
    file. If `is_restorable`, each work unit has one record, so that the state can be saved.
    """

    type_name = "N10tensorflow15ReaderInterfaceE"

    def __init__(
        self,
        title: str,
        open_work: OpenWork,
        *,
        reads_files: bool = True,
        is_restorable: bool = False,
    ) -> None:
        self.title = title
        self.is_restorable = is_restorable
        self._open_work = open_work
        self._reads_files = reads_files
        self._lock = threading.Lock()  # guards `_pending_reads` and `_is_busy`
        self._pending_reads: collections.deque[_Read] = collections.deque()
        self._is_busy = False  # whether a thread is running reads or a read waits for a name
        # Guards the fields below; held while a record is read, but not during a wait for a name.
        self._state_lock = threading.RLock()
        self._records: Iterator[tuple[str, bytes]] | None = None
        self._work = b""
        self._work_started = 0
        self._work_finished = 0
        self._records_produced = 0

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the name of the work unit, the buffer of its file, and what pending reads have."""
        reads = [read.records for read in list(self._pending_reads)]
        is_open = self._records is not None
        return io.DEFAULT_BUFFER_SIZE if is_open else 0, [self._work, *reads]

    @property
    def num_records_produced(self) -> int:
        """The number of records that were produced since the last reset."""
        return self._records_produced

    @property
    def num_work_units_completed(self) -> int:
        """The number of work units that were read to the end."""
        return self._work_finished

    def read_up_to(
        self, count: int, queue: Queue, files: FileGate, cancellation: CancellationManager
    ) -> Deferred:
        """Return a Deferred of a list of 1 to `count` records, all of the same work unit."""
        read = _Read(count, queue, files, cancellation)
        with self._lock:
            self._pending_reads.append(read)
            if self._is_busy:
                return read.deferred
            self._is_busy = True
        self._advance()
        return read.deferred

    def _advance(self) -> None:
        """Run pending reads until none is left or one has to wait for a name."""
        while True:
            with self._lock:
                if not self._pending_reads:
                    self._is_busy = False
                    return
                read = self._pending_reads[0]
            error: OpError | None = None
            try:
                if not self._continue_read(read):
                    return  # `_resume` continues when the name has been dequeued
            except Exception as caught:  # if it were not caught, `_is_busy` would stay true
                error = as_op_error(caught)
            self._finish(read, error)

    def _finish(self, read: _Read, error: OpError | None) -> None:
        with self._lock:
            self._pending_reads.popleft()
        if error is not None:
            read.deferred.set_error(error)
        else:
            read.deferred.set_value(read.records)

    def _continue_read(self, read: _Read) -> bool:
        """Continue a read; return whether it is complete. If not, it waits for a name."""
        while len(read.records) < read.count:
            read.cancellation.check()
            if self._records is None:
                if read.records:
                    return True
                got = read.queue.dequeue(1, _first, read.cancellation)
                if isinstance(got, Deferred):
                    got.when_done(lambda deferred: self._resume(read, deferred))
                    return False
                self._start_work(read, got)
                continue
            with self._state_lock:
                self._take_record(read)
        return True

    def _resume(self, read: _Read, deferred: Deferred) -> None:
        error = deferred.error
        if error is None:
            try:
                self._start_work(read, deferred.value)
            except Exception as caught:
                error = as_op_error(caught)
        if error is not None:
            self._finish(read, error)
        self._advance()

    def _start_work(self, read: _Read, element: Element) -> None:
        work = _work_name(element[0])
        path = os.fsdecode(work)
        if self._reads_files:
            read.files.check_read(path)
        with self._state_lock:
            self._records = self._open_work(path)
            self._work = work
            self._work_started += 1

    def _take_record(self, read: _Read) -> None:
        records = self._records
        if records is None:  # another thread has called `reset`
            return
        try:
            key, value = next(records)
        except StopIteration:
            self._end_work()
            return
        except Exception as caught:
            # The work unit stays current, so that every later read raises the error until a reset.
            error = as_op_error(caught)
            self._records = iter(functools.partial(_raise_copy, error), None)
            raise error from None
        read.records.append((self._work + b":" + key.encode() if key else self._work, value))
        self._records_produced += 1
        if self.is_restorable:
            self._end_work()  # the only record of the work unit has been read

    def _end_work(self) -> None:
        self._records = None
        self._work_finished = self._work_started

    def reset(self) -> None:
        """Drop the current work unit and set all counts to 0."""
        with self._state_lock:
            self._records = None
            self._work = b""
            self._work_started = self._work_finished = self._records_produced = 0

    def serialize_state(self) -> bytes:
        """Return the counts and the name of the last work unit, as a serialized ReaderBaseState."""
        with self._state_lock:
            numbers = (self._work_started, self._work_finished, self._records_produced)
            work = self._work
        state = b"".join(
            encode_varint(field << 3) + encode_varint(value)
            for field, value in enumerate(numbers, 1)
            if value
        )
        if work:
            state += encode_varint(_CURRENT_WORK << 3 | 2)
            state += encode_varint(len(work)) + work
        return state

    def restore_state(self, state: bytes) -> None:
        """Restore a state that `serialize_state` returned; reading continues from there.

        Raises InvalidArgumentError if the bytes can't be parsed, if a count is negative, or if the
        state was saved before the work unit had been read to the end; the reader is then reset.
        """
        with self._state_lock:
            self.reset()
            self._restore(state)

    def _restore(self, state: bytes) -> None:
        found = _parse_state(state)
        if found is None:
            raise InvalidArgumentError(
                f"Could not parse state for {self.title}: {escape_bytes(state)}"
            )
        numbers, work = found
        if min(numbers) < 0:
            raise InvalidArgumentError(
                f"Unexpected negative value when restoring in {self.title}: "
                f"{_state_text(numbers, work)}"
            )
        if numbers[0] > numbers[1]:
            raise InvalidArgumentError(
                f"Inconsistent work started vs. finished when restoring in {self.title}: "
                f"{_state_text(numbers, work)}"
            )
        self._work_started, self._work_finished, self._records_produced = numbers
        self._work = work


def _raise_copy(error: OpError) -> tuple[str, bytes]:
    raise type(error)(error.message_without_node)


def _first(elements: list[Element]) -> Element:
    return elements[0]


def _work_name(component: TensorValue) -> bytes:
    """Return the string in a tensor; raise InvalidArgumentError unless it has one element."""
    array = np.asarray(component, object)
    if array.size != 1:
        raise InvalidArgumentError("Expected to dequeue a one-element string tensor")
    name: bytes = array.item()
    return name


def _parse_state(state: bytes) -> tuple[list[int], bytes] | None:
    """Parse a ReaderBaseState; return (the three counts, the work unit), or None if malformed."""
    numbers, work, position = [0, 0, 0], b"", 0
    try:
        while position < len(state):
            tag, position = decode_varint(state, position)
            field, kind = tag >> 3, tag & 7
            value = 0
            if kind in (_VARINT, _BYTES):
                value, position = decode_varint(state, position)
            size = {_VARINT: 0, _FIXED_64: 8, _BYTES: value, _FIXED_32: 4}.get(kind)
            if not field or size is None or position + size > len(state):
                return None
            if kind == _VARINT and field <= len(numbers):
                numbers[field - 1] = value - (value >> 63 << 64)  # as a signed 64-bit number
            elif kind == _BYTES and field == _CURRENT_WORK:
                work = state[position : position + size]
            position += size
    except OpError:
        return None
    return numbers, work


def _state_text(numbers: list[int], work: bytes) -> str:
    names = ("work_started", "work_finished", "num_records_produced")
    pairs = [(name, str(each)) for name, each in zip(names, numbers, strict=True) if each]
    if work:
        pairs.append(("current_work", f'"{escape_bytes(work)}"'))
    return "".join(f"{name}: {value}\n" for name, value in pairs)
