"""ConnectionMover: hands a connection over to the process that its next request belongs to.

Guarantees: used from one event loop. A connection that has been handed over MOST_TIMES, because its
client uses several priorities, stays where requests of normal priority belong.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from server.background.moved_connections import send_connection
from server.background.request_place import RequestPlace
from server.connections.connection_limits import Moved
from server.processes.host_table import WorkerState
from server.processes.worker_host import WorkerHost

MOST_TIMES = 32


class ConnectionMover:
    """Hands over the connections of one process."""

    def __init__(self, host: WorkerHost, place: RequestPlace) -> None:
        self._host = host
        self._place = place
        # Whether this is the background process: others look only at requests that they don't know.
        self.is_background = host.is_background
        self.is_draining = False  # as the background process: no request belongs here any more
        self._was_asked = False  # for a connection that would be handed over

    def want_background(self) -> None:
        """Have the background process started if any connection would be handed over to it.

        To be called when a step of low priority was admitted: a head alone may come from anybody,
        and most steps by gRPC, or with the priority in the body, are none of that process.
        """
        if self._was_asked:
            self._host.want_background()

    def move(self, descriptor: int, data: bytes, before: Moved | None) -> bool:
        """Hand a connection over if it belongs elsewhere; return whether it was.

        `data` was received between two requests. `before` is what came with the connection. The
        background process asks `belongs_here` first.
        """
        times = 0 if before is None else before.times
        moved = Moved(data, times + 1, self._host.place.slot)
        targets = self._back(before) if self.is_background else self._there(data, times)
        return any(send_connection(target, descriptor, moved) for target in targets)

    def belongs_here(self, data: bytes) -> bool:
        """Return whether the background process, if this is it, answers a request."""
        return self._place.is_background(data)

    def _there(self, data: bytes, times: int) -> Iterator[Path]:
        """Yield where the background process is, if the request belongs to it."""
        host = self._host
        if times < MOST_TIMES and self._place.is_background(data):
            self._was_asked = True
            if host.background_answers:
                yield host.moved_path_of(host.background)

    def _back(self, before: Moved | None) -> Iterator[Path]:
        """Yield where processes are that answer everything, the best one first.

        It is the one that handed the connection over, unless that does not serve any more.
        """
        if before is None:
            return
        host = self._host
        states = {slot: row.state for slot, row in enumerate(host.table.workers)}
        for state in (WorkerState.READY, WorkerState.STARTING):
            slots = [slot for slot in states if states[slot] == state]
            for slot in sorted(slots, key=lambda slot: slot != before.sender):
                yield host.moved_path_of(host.place_in(slot))
