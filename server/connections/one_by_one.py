"""OneByOne: gives the parser of a connection one request at a time, and looks where each belongs.

The background process answers some requests only. What follows one of them on its connection, in
the same packet or while it is being answered, may be a request that only another process may
answer. So a request is parsed when the one before it is answered, and if it belongs elsewhere the
connection is handed back with it.

Guarantees: used from one event loop; requests are answered in their order, each by one process.
What a client sends ahead is not read while a part of it waits.
"""

from __future__ import annotations

import asyncio
import re
from typing import Protocol

from server.connections.connection_limits import MovesConnections

# Until the connection is tried again that can't be handed over now: the other process has not
# received those before it, or the client has not received its response.
AGAIN_SECONDS = 0.005
_END_OF_HEAD = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n", re.IGNORECASE)
_UNUSUAL = re.compile(rb"\r\n(?:transfer-encoding|upgrade)[ \t]*:", re.IGNORECASE)
_WHATEVER_COMES = 1 << 62  # bytes


def length_of_request(data: bytes) -> int | None:
    """Return the bytes of the request that `data` begins with, of its head and of its body.

    None if the head is not complete or does not say it in the usual way: chunks would have to be
    parsed.
    """
    end = data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
    found = _LENGTH.search(data, 0, end)
    if end < len(_END_OF_HEAD) or found is None or _UNUSUAL.search(data, 0, end):
        return None
    # A parser may take other ends of lines for ends.
    lines = data.count(_END_OF_HEAD[:2], 0, end)
    if any(data.count(each, 0, end) != lines for each in (b"\r", b"\n")):
        return None
    return end + int(found[1])


class ParsedConnection(Protocol):
    """The connection, whose parser receives what it is given."""

    loop: asyncio.AbstractEventLoop

    @property
    def is_between_requests(self) -> bool:
        """Whether no request is being received; one may be being answered."""

    @property
    def is_answered(self) -> bool:
        """Whether no request is being answered."""

    @property
    def is_closing(self) -> bool:
        """Whether it has ended or is about to."""

    def is_idle(self) -> bool:
        """Return whether no request is being received or answered, and one could be answered."""

    def is_moved(self, data: bytes) -> bool:
        """Hand the connection over with `data`; return whether that was possible."""

    def receive(self, data: bytes, *, may_move: bool) -> None:
        """Parse `data`."""

    def pause(self) -> None:
        """Read no more; notice if the client goes away."""

    def resume(self) -> None:
        """Read again."""


class OneByOne:
    """What one connection has received."""

    def __init__(self, connection: ParsedConnection, mover: MovesConnections) -> None:
        self._connection = connection
        self._mover = mover
        self._later = b""  # what follows the request that is being received or answered
        self.left = 0  # bytes of that request which the connection has not received
        self._timer: asyncio.Handle | None = None

    def receive(self, data: bytes, *, is_here: bool) -> None:
        """Receive more; `is_here` if it begins with a request that was handed over to here."""
        connection = self._connection
        data, self._later = self._later + data, b""
        if not connection.is_between_requests:
            self._give(data, self.left)
        elif not connection.is_idle():
            self._wait(data, AGAIN_SECONDS)
        elif (length := self._length_here(data, is_here)) is not None:
            self._give(data, length)
        elif not connection.is_moved(data):
            if self._mover.is_draining:  # it is refused, and there may be no other process
                self._give(data, _WHATEVER_COMES)
            else:
                self._wait(data, AGAIN_SECONDS)

    def _length_here(self, data: bytes, is_here: bool) -> int | None:
        """Return the length of the request in `data`; None if it belongs elsewhere."""
        if self._mover.is_draining or not (is_here or self._mover.belongs_here(data)):
            return None
        return length_of_request(data)

    def _give(self, data: bytes, length: int) -> None:
        """Let the connection have what belongs to the request."""
        part, rest = data[:length], data[length:]
        self.left = length - len(part)
        self._connection.receive(part, may_move=False)
        if rest:
            self._wait(rest, 0)

    def _wait(self, data: bytes, seconds: float) -> None:
        """Keep what can't be looked at yet."""
        connection = self._connection
        if connection.is_closing:
            return
        self._later = data
        connection.pause()
        if connection.is_answered:
            self._look_in(seconds)

    def response_is_complete(self) -> None:
        """Go on with what the client has sent meanwhile."""
        if self._later:
            self._connection.pause()
            self._look_in(0)
        elif self._mover.is_draining:
            self._look_in(0)

    def _look_in(self, seconds: float) -> None:
        self.end()
        self._timer = self._connection.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._connection.is_closing:
            return
        if not self._later:
            self.hand_back()
            return
        self._connection.resume()
        self.receive(b"", is_here=False)

    def hand_back(self) -> None:
        """Hand the connection back, because this process drains, unless a request is here."""
        if not self._later and self._connection.is_idle():
            self._connection.is_moved(b"")

    def end(self) -> None:
        """Forget the connection."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
