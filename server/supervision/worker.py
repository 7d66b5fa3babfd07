"""One of several processes that serve as one server: `python -m server.supervision.worker FD`.

The supervisor starts it, and passes it what it must know in a file in memory. When the supervisor
ends, however that happens, the process drains as after SIGTERM.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import orjson

from server.processes.host_table import HostTable
from server.processes.session_ids import Place
from server.starting.early_signals import SIGNALS, end_at_signals

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class WorkerTask:
    """What the supervisor passes to a worker; the descriptors are inherited.

    `settings` are those of the whole server, as JSON. `listener` is the HTTP socket, or -1 without
    HTTP; `supervisor` is a pipe that ends with the supervisor. `sources` and `notes` are for the
    log, which the first worker writes when the server starts.
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


def run(descriptor: int) -> int:
    """Serve until a signal, and return the exit code."""
    task = WorkerTask.from_memory(descriptor)
    # Imported after the signals have a handler.
    from runtime.errors import OpError
    from server.process import SharedPorts, serve
    from server.processes.worker_host import WorkerHost
    from server.settings import Settings
    from server.start_log import Start
    from server.supervision.divided_settings import divided_settings, low_priority_turns

    whole = Settings(**task.settings)
    settings = divided_settings(whole, task.slot, task.count)
    host = WorkerHost(HostTable(task.table, task.count), task.place, Path(task.folder))
    host.share_priorities()
    host.share_low_priority(low_priority_turns(whole, task.count))
    host.share_weights()
    listener = None if task.listener < 0 else socket.socket(fileno=task.listener)
    is_first = task.slot == 0 and task.generation == 0
    start = Start(task.sources, task.notes) if is_first else None
    try:
        return serve(settings, start, SharedPorts(host, listener, task.supervisor))
    except OpError as error:
        _log.error("%s: %s", error.code.name, error.message)
        return 1


if __name__ == "__main__":
    end_at_signals()
    # The supervisor waits for its signals, which are blocked in it and in what it starts.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {*SIGNALS, signal.SIGCHLD})
    code = run(int(sys.argv[1]))
    from server.process_end import end_process

    end_process(code)
