"""WorkerTask: what a process must know that is started to serve with others; and its restarts."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import orjson

from server.processes.session_ids import Place

MODULE = "server.supervision.worker"
# A process that ends soon after its start is replaced later each time.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 30.0
STABLE_SECONDS = 60.0


@dataclasses.dataclass(slots=True)
class Restarts:
    """When a process is started again; instants of `time.monotonic()`."""

    started_at: float = 0.0
    due_at: float = 0.0
    _pause: float = FIRST_PAUSE_SECONDS

    def has_ended(self, now: float) -> None:
        """Note the end: the next start is due at once if the process had been stable, or later."""
        if now - self.started_at > STABLE_SECONDS:
            self._pause, self.due_at = FIRST_PAUSE_SECONDS, now
        else:
            self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
            self.due_at = now + self._pause


@dataclasses.dataclass(frozen=True, slots=True)
class WorkerTask:
    """What the supervisor passes to a worker; the descriptors are inherited.

    `settings` are those of the whole server, as JSON. `listeners` are the HTTP sockets;
    `supervisor` is a pipe that ends with the supervisor. `sources` and `notes` are for the log,
    which the first worker writes when the server starts. `turns` are those of
    `WorkerHost.share_low_priority` for the background process, and `has_rpc` is whether the others
    have gRPC.
    """

    settings: dict[str, Any]
    slot: int
    generation: int
    count: int
    table: int
    listeners: Sequence[int]
    supervisor: int
    folder: str
    sources: str
    notes: list[str]
    turns: dict[str, int] | None = None
    has_rpc: bool = False

    @property
    def is_background(self) -> bool:
        """Whether this is the background process, whose settings are its own."""
        return self.slot == self.count

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The descriptors that the worker inherits."""
        return (self.table, *self.listeners, self.supervisor)

    @property
    def place(self) -> Place:
        """The slot and the generation of the worker."""
        return Place(self.slot, self.generation)

    def in_memory(self) -> int:
        """Return the descriptor of a file in memory that has this."""
        descriptor = os.memfd_create("runstep-worker")
        with open(descriptor, "wb", closefd=False) as file:
            file.write(orjson.dumps(dataclasses.asdict(self)))
        return descriptor

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process; raise OSError if the system can't."""
        descriptor = self.in_memory()
        try:
            return subprocess.Popen(
                [sys.executable, "-m", MODULE, str(descriptor)],
                pass_fds=(descriptor, *self.descriptors),
                start_new_session=True,  # a terminal's signals reach this process only
                stdin=subprocess.DEVNULL,
            )
        finally:
            os.close(descriptor)

    @classmethod
    def from_memory(cls, descriptor: int) -> WorkerTask:
        """Read what `in_memory` wrote, and close the descriptor."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        with open(descriptor, "rb") as file:
            return cls(**orjson.loads(file.read()))
