"""HostTable: what the processes of one server know of each other, in memory that they share.

Each worker process has a slot, and a row in the table. A worker that ends is replaced by another in
the same slot, whose generation is one more. The last slot is that of the background process
(server/background), if there is one; the process of the first slot supervises it.

Guarantees: a field has one writer, except that any process may set `is_wanted`, which stays set.
The supervisor writes `generation`, `process_id`, `is_put_off` and `ending`, and clears the counts
and the beat of a worker that has ended; the worker writes the rest of its row. A number is one
aligned word, so that a reader sees a value that was written. `locked` excludes the other processes
and must be held for a few instructions only, because event loops wait for it; the system releases
the lock of a process that ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import fcntl
import hashlib
import mmap
import os
from collections.abc import Iterator

from server.access.owner_cells import DIGEST_BYTES, OwnerCell

OWNERS = 1024  # with limits; more are limited in each process by itself
_ENDING_BYTES = 104


class WorkerState(enum.IntEnum):
    """The states of a worker, in their order."""

    STARTING = 0
    READY = 1
    DRAINING = 2
    ENDED = 3


class Row(ctypes.Structure):
    """The row of one slot."""

    _fields_ = (
        ("generation", ctypes.c_int64),
        ("process_id", ctypes.c_int64),
        ("state", ctypes.c_int64),
        ("sessions", ctypes.c_int64),  # open or being opened
        ("connections", ctypes.c_int64),  # of the HTTP port; -1 while it does not accept
        ("pending", ctypes.c_int64),  # steps of normal priority that wait or run
        ("models", ctypes.c_int64),  # a digest of what it serves
        ("beat", ctypes.c_int64),  # when its event loop ran last: see server/processes/beats.py
        ("is_wanted", ctypes.c_int64),  # of the background process: whether it is to be started
        ("is_put_off", ctypes.c_int64),  # of the background process: it can't be started now
        ("ending_length", ctypes.c_int64),
        ("ending", ctypes.c_char * _ENDING_BYTES),  # how the worker before this one ended
    )

    generation: int
    process_id: int
    state: int
    sessions: int
    connections: int
    pending: int
    models: int
    beat: int
    is_wanted: int
    is_put_off: int
    ending_length: int
    ending: bytes


class HostTable:
    """The rows of all slots, and what owners use; `descriptor` can be inherited."""

    def __init__(self, descriptor: int, count: int) -> None:
        self.descriptor = descriptor
        self.count = count  # of workers, without the background process
        rows = count + 1
        self._memory = mmap.mmap(descriptor, _table_bytes(rows))
        self.rows = (Row * rows).from_buffer(self._memory)
        self.cells = (OwnerCell * OWNERS).from_buffer(self._memory, ctypes.sizeof(Row) * rows)

    @classmethod
    def create(cls, count: int) -> HostTable:
        """Make a table for `count` workers, all of which are starting."""
        descriptor = os.memfd_create("runstep-host")
        os.ftruncate(descriptor, _table_bytes(count + 1))
        table = cls(descriptor, count)
        for row in table.rows:
            row.connections = -1
        return table

    @property
    def workers(self) -> list[Row]:
        """The rows of the workers, without that of the background process."""
        return self.rows[: self.count]

    @property
    def background(self) -> Row:
        """The row of the background process."""
        return self.rows[self.count]

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Exclude the other processes from their `locked` blocks."""
        fcntl.lockf(self.descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self.descriptor, fcntl.LOCK_UN)

    def others(self, slot: int) -> list[Row]:
        """Return the rows of all slots but one."""
        return [row for number, row in enumerate(self.rows) if number != slot]

    def cell(self, owner: str) -> OwnerCell | None:
        """Return what an owner uses; None if there are more owners than cells.

        The system gives memory for the cells that are used.
        """
        wanted = hashlib.sha256(owner.encode()).digest()[:DIGEST_BYTES]
        first = int.from_bytes(wanted, "little")
        with self.locked():
            for step in range(OWNERS):
                cell: OwnerCell = self.cells[(first + step) % OWNERS]
                if bytes(cell.digest) == wanted:
                    return cell
                if not any(cell.digest):
                    cell.digest[:] = list(wanted)
                    return cell
        return None

    # --- by the supervisor --------------------------------------------------------------------

    def begin(self, slot: int, process_id: int) -> None:
        """Note a new worker, whose generation was set by `end` or is 0."""
        self.rows[slot].process_id = process_id

    def end(self, slot: int, ending: str) -> None:
        """Note how the worker of a slot has ended; the next one has a new generation."""
        row = self.rows[slot]
        row.state, row.process_id = WorkerState.ENDED, 0
        row.sessions, row.connections, row.pending, row.beat = 0, -1, 0, 0
        text = ending.encode()[:_ENDING_BYTES]
        row.ending = text
        row.ending_length = len(text)
        for cell in self.cells:
            if any(cell.digest):
                cell.running[slot] = cell.sessions[slot] = 0
        row.generation += 1

    def ending_of(self, slot: int) -> str:
        """Return how the worker before the present one has ended."""
        row = self.rows[slot]
        return row.ending[: row.ending_length].decode(errors="ignore")


def how_it_ended(code: int) -> str:
    """Return how a process with this exit code has ended, as the rest of a sentence."""
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _table_bytes(rows: int) -> int:
    return rows * ctypes.sizeof(Row) + OWNERS * ctypes.sizeof(OwnerCell)
