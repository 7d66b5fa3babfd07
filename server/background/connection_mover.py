"""ConnectionMover: hands a connection over to the process that its next request belongs to.

Guarantees: used from one event loop. A connection that has been handed over MOST_TIMES, because its
client uses several priorities, stays where requests of normal priority belong.
"""

from __future__ import annotations

from pathlib import Path

from server.background.moved_connections import send_connection
from server.background.request_place import RequestPlace
from server.connections.connection_limits import Moved
from server.processes.worker_host import WorkerHost

MOST_TIMES = 32


class ConnectionMover:
    """Hands over the connections of one process."""

    def __init__(self, host: WorkerHost, place: RequestPlace) -> None:
        self._host = host
        self._place = place
        # Whether this is the background process: others look only at requests that they don't know.
        self.is_background = host.is_background
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

        `data` was received between two requests. `before` is what came with the connection.
        """
        times = 0 if before is None else before.times
        target = self._target(data, times, before)
        if target is None:
            return False
        moved = Moved(data, times + 1, self._host.place.slot)
        return send_connection(target, descriptor, moved)

    def _target(self, data: bytes, times: int, before: Moved | None) -> Path | None:
        host = self._host
        is_background = self._place.is_background(data)
        if self.is_background:
            if is_background or before is None:
                return None
            return host.moved_path_of(host.place_in(before.sender))
        if not is_background or times >= MOST_TIMES:
            return None
        self._was_asked = True
        return host.moved_path_of(host.background) if host.has_background else None
