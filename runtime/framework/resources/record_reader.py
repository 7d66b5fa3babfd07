"""Readers: records of the files whose names come out of a queue.

Reads of one reader are done one after the other; one that has to wait for the next file's name
holds no thread, and its `Deferred` completes in the thread that brings the name.

Guarantees: thread-safe; a record goes to one read only; a reset and a saved state come between two
records, never within one.

TF: tensorflow/core/framework/reader_base.cc
"""

from __future__ import annotations

import collections
import functools
import os
import threading
from collections.abc import Callable, Iterator

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, OpError
from runtime.framework.cancellation import CancellationManager
from runtime.framework.io.record_files import Records
from runtime.framework.io.varint import decode_varint, encode_varint
from runtime.framework.op_kernel import Deferred, FileGate
from runtime.framework.resource_manager import Resource
from runtime.framework.resources.queues import Element, Queue
from runtime.framework.tensor_text import escape_bytes
from runtime.framework.tensor_value import TensorValue

Record = tuple[bytes, bytes]  # key and value
# Makes the records of one piece of work; readers without files never look at the gate.
OpenWork = Callable[[str], Records]

_CURRENT_WORK = 4  # of a ReaderBaseState; the three counts stand before it
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5  # kinds of fields on the wire


class _Read:
    """One read that is still to be done."""

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
    """A reader; `open_work` tells its kind, `title` names it in messages.

    `reads_files` makes every piece of work pass the step's gate. `is_restorable` readers have a
    state that can be stored: those whose work is one record.
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
        self._lock = threading.Lock()  # guards _line and _is_busy
        self._line: collections.deque[_Read] = collections.deque()
        self._is_busy = False  # a read is under way
        # Guards what follows; held while one record is read, not while a name is awaited.
        self._state_lock = threading.RLock()
        self._records: Iterator[tuple[str, bytes]] | None = None
        self._work = b""
        self._work_started = 0
        self._work_finished = 0
        self._records_produced = 0

    @property
    def num_records_produced(self) -> int:
        """Records given out since the last reset."""
        return self._records_produced

    @property
    def num_work_units_completed(self) -> int:
        """Pieces of work (files) that were read to their end."""
        return self._work_finished

    def read_up_to(
        self, count: int, queue: Queue, files: FileGate, cancellation: CancellationManager
    ) -> Deferred:
        """At least one and at most `count` records of one file, as a list, when they are there."""
        read = _Read(count, queue, files, cancellation)
        with self._lock:
            self._line.append(read)
            if self._is_busy:
                return read.deferred
            self._is_busy = True
        self._advance()
        return read.deferred

    def _advance(self) -> None:
        """Do the reads in line until one has to wait for a name."""
        while True:
            with self._lock:
                if not self._line:
                    self._is_busy = False
                    return
                read = self._line[0]
            error: OpError | None = None
            try:
                if not self._try(read):
                    return  # the name's arrival goes on from here
            except OpError as caught:
                error = caught
            self._finish(read, error)

    def _finish(self, read: _Read, error: OpError | None) -> None:
        with self._lock:
            self._line.popleft()
        if error is not None:
            read.deferred.set_error(error)
        else:
            read.deferred.set_value(read.records)

    def _try(self, read: _Read) -> bool:
        """Whether the read is done; False while it waits for a name."""
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
            except OpError as caught:
                error = caught
        if error is not None:
            self._finish(read, error)
        self._advance()

    def _start_work(self, read: _Read, element: Element) -> None:
        work = _name_of(element[0])
        path = os.fsdecode(work)
        if self._reads_files:
            read.files.check_read(path)
        with self._state_lock:
            self._records = self._open_work(path)
            self._work = work
            self._work_started += 1

    def _take_record(self, read: _Read) -> None:
        records = self._records
        if records is None:  # a reset has come between
            return
        try:
            key, value = next(records)
        except StopIteration:
            self._end_work()
            return
        except OpError as error:
            # The work stays: whoever reads on meets the same damage, until a reset.
            self._records = iter(functools.partial(_raise, error), None)
            raise
        read.records.append((self._work + b":" + key.encode() if key else self._work, value))
        self._records_produced += 1
        if self.is_restorable:
            self._end_work()  # its one record

    def _end_work(self) -> None:
        self._records = None
        self._work_finished = self._work_started

    def reset(self) -> None:
        """Forget the current file and all counts."""
        with self._state_lock:
            self._records = None
            self._work = b""
            self._work_started = self._work_finished = self._records_produced = 0

    def serialize_state(self) -> bytes:
        """The counts, and the last work, as a ReaderBaseState."""
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
        """Go on with the counts of `serialize_state`.

        Raises:
            InvalidArgumentError: Other bytes, a negative count, or a work that is under way; the
                reader begins anew.
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


def _raise(error: OpError) -> tuple[str, bytes]:
    raise type(error)(error.message_without_node)


def _first(elements: list[Element]) -> Element:
    return elements[0]


def _name_of(component: TensorValue) -> bytes:
    """The one string of a tensor that came out of the queue."""
    array = np.asarray(component, object)
    if array.size != 1:
        raise InvalidArgumentError("Expected to dequeue a one-element string tensor")
    name: bytes = array.item()
    return name


def _parse_state(state: bytes) -> tuple[list[int], bytes] | None:
    """The three counts and the work of a ReaderBaseState; None for other bytes."""
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
                numbers[field - 1] = value - (value >> 63 << 64)  # signed, of 64 bits
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
