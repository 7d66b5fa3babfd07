"""Limits of connections: how many there may be, and how long each may keep the server waiting.

One timer looks at all connections of a server every SWEEP_SECONDS, so that requests set no timer.
It compares what a connection waits for with what it waited for at the previous look.

Guarantees: used from one event loop; a connection that waits too long ends at the latest two
sweeps after its time; the time in which the loop was too busy to look does not count.

Sources of the defaults: nginx (client_header_timeout, client_body_timeout, send_timeout: 60 s;
worker_connections), Apache (mod_reqtimeout: a least rate; LimitRequestFields: 100), node.js (16 KiB
of headers).
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import logging
import resource
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from server.connections.writes_of_turn import WritesOfTurn

_log = logging.getLogger(__name__)

SWEEP_SECONDS = 1.0
CLOSING_SECONDS = 5.0  # for the other end to confirm that a connection is closed
# The least rate, in bytes per second, of a client that needs longer than its time to send a body or
# to receive a response.
LEAST_RATE = 4 << 10
# While no further connection is accepted, others wait at most so long.
CROWDED_SECONDS = 5.0
CROWDED_IDLE_SECONDS = 1.0
_TOGETHER = 256  # connections that are looked at in one callback; 0.3 ms
RESERVED_DESCRIPTORS = 256  # for files, child processes and listening sockets
_DESCRIPTORS_EACH = 2  # a connection that must be watched for its end needs an epoll of its own


class Waiting(enum.Enum):
    """What the server waits for on a connection."""

    FIRST = "first"  # the first request
    NEXT = "next"  # another request
    HEAD = "head"  # the rest of the request line and the headers
    BODY = "body"  # the rest of a body
    ANSWER = "answer"  # the application
    SENDING = "sending"  # the client, to receive a response
    CLOSED = "closed"  # the confirmation that the connection is closed


@dataclasses.dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits; `rest.…` in the settings."""

    max_connections: int = 4096
    max_header_bytes: int = 64 << 10
    max_headers: int = 128
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    keep_alive_seconds: float = 5.0


@dataclasses.dataclass(slots=True)
class Mark:
    """What a connection waits for, since when, and how far that was then.

    `turn` distinguishes requests. `amount` is the number of bytes received of a body, or of those
    that are to be sent.
    """

    waiting: Waiting
    turn: object
    amount: int = 0
    since: float = 0.0  # loop time


class WatchedConnection(Protocol):
    """A connection whose waits are limited."""

    last_mark: Mark | None

    def mark(self) -> Mark:
        """Return what the connection waits for now."""

    def refuse(self, status: int, message: str) -> None:
        """Respond with an error, if a response can still be sent, and close the connection."""

    def end(self) -> None:
        """Close the connection without a response, and without waiting for the client."""

    def hand_back(self) -> None:
        """Hand the connection back to the process that it came from, if no request is here."""


class Moved(NamedTuple):
    """What is known of a connection that one process hands over to another.

    `data` begins with the head of a request, or is empty. `times` is how often it was handed over,
    and `sender` the slot of the process that did so last.
    """

    data: bytes
    times: int
    sender: int


class MovesConnections(Protocol):
    """Hands connections over to the processes that their next requests belong to."""

    is_background: bool  # whether this process answers only requests that belong to it
    is_draining: bool  # whether no request belongs here any more

    def belongs_here(self, data: bytes) -> bool:
        """Return whether a request belongs to this process; `data` begins with it."""

    def move(self, descriptor: int, data: bytes, before: Moved | None) -> bool:
        """Hand a connection over if it belongs elsewhere; return whether it was."""


class Connections:
    """The connections of one server; `mover` hands some of them over, if there is one.

    If `is_ending`, a response says that no other follows it, so that the client takes a new
    connection, and not one that is closed when the server ends.
    """

    def __init__(self, limits: ConnectionLimits | None = None) -> None:
        self.limits = limits or ConnectionLimits()
        self.writes = WritesOfTurn()
        self.mover: MovesConnections | None = None
        self.is_ending = False
        self.max_connections = min(self.limits.max_connections, connections_that_fit())
        self._open: set[WatchedConnection] = set()
        self.on_change: Callable[[], object] = int  # called when a connection has begun or ended
        self._timer: asyncio.Handle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_refusing = False  # logged once
        self._due = 0.0  # loop time of the next sweep

    def __len__(self) -> int:
        """Return how many connections are open."""
        return len(self._open)

    def add(self, connection: WatchedConnection, loop: asyncio.AbstractEventLoop) -> None:
        """Register a new connection, or refuse it if there are too many."""
        if len(self._open) >= self.max_connections:
            if not self._is_refusing:
                _log.warning("%d connections are open; others are refused", len(self._open))
            self._is_refusing = True
            connection.refuse(
                503,
                f"The server has {len(self._open)} connections; rest.max_connections is "
                f"{self.max_connections}",
            )
        # Also if it is refused: it has a descriptor until the client confirms the end.
        self._open.add(connection)
        self.on_change()
        if self._timer is None:
            self._loop = loop
            self._set_timer(loop)

    def remove(self, connection: WatchedConnection) -> None:
        """Forget a connection that has ended."""
        self._open.discard(connection)
        self.on_change()
        if not self._open and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def hand_back(self) -> None:
        """Hand back what other processes have handed over, because this one drains."""
        for connection in tuple(self._open):
            connection.hand_back()

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due = loop.time() + SWEEP_SECONDS
        self._timer = loop.call_later(SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Look at all connections; meanwhile a loop that is late has received nothing of them."""
        assert self._loop is not None
        late = self._loop.time() - self._due
        if late > 0:
            for connection in self._open:
                if connection.last_mark is not None:
                    connection.last_mark.since += late
        self._continue(iter(tuple(self._open)))

    def _continue(self, connections: Iterator[WatchedConnection]) -> None:
        """Look at some connections, and at the others in a later callback."""
        assert self._loop is not None
        now = self._loop.time()
        is_crowded = len(self._open) >= self.max_connections
        self._is_refusing = self._is_refusing and is_crowded
        for number, connection in enumerate(connections, 1):
            if connection in self._open:
                self._look_at(connection, now, is_crowded)
            if number == _TOGETHER:
                self._timer = self._loop.call_soon(self._continue, connections)
                return
        self._timer = None
        if self._open:
            self._set_timer(self._loop)

    def _look_at(self, connection: WatchedConnection, now: float, is_crowded: bool) -> None:
        mark, before = connection.mark(), connection.last_mark
        if before is None or (mark.waiting, mark.turn) != (before.waiting, before.turn):
            mark.since = now
            connection.last_mark = mark
            return
        waiting = mark.waiting
        if waiting is Waiting.ANSWER:
            return  # the deadline of its step limits it
        waited = now - before.since
        if waited < self._seconds(waiting, is_crowded):
            return
        done = mark.amount - before.amount if waiting is Waiting.BODY else 0
        if waiting is Waiting.SENDING:  # more to be sent than before is progress too
            done = abs(mark.amount - before.amount)
        if done < waited * LEAST_RATE:
            _end(connection, waiting, self.limits)
            return
        mark.since = now
        connection.last_mark = mark

    def _seconds(self, waiting: Waiting, is_crowded: bool) -> float:
        """Return how long a connection may wait without enough progress."""
        limits = self.limits
        if waiting is Waiting.NEXT:
            seconds, crowded = limits.keep_alive_seconds, CROWDED_IDLE_SECONDS
        elif waiting is Waiting.CLOSED:
            return CLOSING_SECONDS
        else:
            is_head = waiting in (Waiting.HEAD, Waiting.FIRST)
            seconds = limits.header_seconds if is_head else limits.body_seconds
            crowded = CROWDED_SECONDS
        return min(seconds, crowded) if is_crowded else seconds


def _end(connection: WatchedConnection, waiting: Waiting, limits: ConnectionLimits) -> None:
    if waiting is Waiting.HEAD:
        connection.refuse(
            408, f"The headers took longer than {limits.header_seconds:g} s (rest.header_seconds)"
        )
    elif waiting is Waiting.BODY:
        connection.refuse(
            408,
            f"Fewer than {LEAST_RATE} bytes per second of the body were received for "
            f"{limits.body_seconds:g} s (rest.body_seconds)",
        )
    else:
        connection.end()


def connections_that_fit() -> int:
    """Return how many connections the process's limit of descriptors permits.

    gRPC has as many, and some descriptors are for everything else.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 1 << 30
    return max(16, (soft - RESERVED_DESCRIPTORS) // (_DESCRIPTORS_EACH + 1))


def raise_descriptor_limit() -> None:
    """Let the process have as many descriptors as it may: connections and files use them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError) as error:  # macOS has a lower limit of its own
            _log.info("The limit of %d descriptors remains: %s", soft, error)
