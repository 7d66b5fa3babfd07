"""HangUpWatch: notices that a client has gone while its connection is not read."""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable


class HangUpWatch:
    """Calls `hung_up` once when the other end of a connection closes, unless cancelled before."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        hung_up: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._hung_up = hung_up
        # The loop refuses a reader for a transport's socket, but accepts a reader for an epoll of
        # the socket.
        self._poll = select.epoll()
        self._poll.register(transport.get_extra_info("socket").fileno(), select.EPOLLRDHUP)
        loop.add_reader(self._poll.fileno(), self._ended)

    def cancel(self) -> None:
        """Stop watching."""
        if not self._poll.closed:
            self._loop.remove_reader(self._poll.fileno())
            self._poll.close()

    def _ended(self) -> None:
        self.cancel()
        self._hung_up()
