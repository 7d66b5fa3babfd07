"""WorkerTask: what a process must know that is started to serve with others."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import orjson

from server.processes.session_ids import Place


@dataclasses.dataclass(frozen=True, slots=True)
class WorkerTask:
    """What the supervisor passes to a worker; the descriptors are inherited.

    `settings` are those of the whole server, as JSON. `listener` is the HTTP socket, or -1 without
    HTTP; `supervisor` is a pipe that ends with the supervisor. `sources` and `notes` are for the
    log, which the first worker writes when the server starts. `turns` are those of
    `WorkerHost.share_low_priority` for the background process, and `has_rpc` is whether the others
    have gRPC.
    """

    settings: dict[str, Any]
    slot: int
    generation: int
    count: int
    table: int
    listener: int
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
        return tuple(each for each in (self.table, self.listener, self.supervisor) if each >= 0)

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

    @classmethod
    def from_memory(cls, descriptor: int) -> WorkerTask:
        """Read what `in_memory` wrote, and close the descriptor."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        with open(descriptor, "rb") as file:
            return cls(**orjson.loads(file.read()))
