"""WritesOfTurn: what one turn of the event loop writes to several connections, written together.

A write wakes whoever waits for it. If that is asleep on another core, the writer spends 5 to 15 µs
on it, a third of the time of a small prediction. A client with several connections, or a proxy, is
woken once by writes that directly follow each other, and by every write that comes while it sleeps
again.

Guarantees: used from one event loop; what is written to one connection keeps its order; a write
waits until the callbacks that are due have run, or until the first one after HOLD_SECONDS adds its
own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

HOLD_SECONDS = 0.0005  # about 20 small predictions


class WritesOfTurn:
    """What the connections of one server have not written yet in the current turn of the loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: dict[asyncio.Transport, bytes] = {}
        self._since = 0.0  # by the clock, when the first of `_held` was added

    def add(
        self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, data: bytes
    ) -> None:
        """Write `data` at the end of the turn of `loop`, together with what others add."""
        held = self._held
        if not held:
            loop.call_soon(self.write)
            self._since = self._clock()
            held[transport] = data
            return
        before = held.get(transport)
        held[transport] = data if before is None else before + data
        if self._clock() - self._since >= HOLD_SECONDS:
            self.write()

    def write(self) -> None:
        """Write everything now."""
        held, self._held = self._held, {}
        for transport, data in held.items():
            if not transport.is_closing():
                transport.write(data)

    def write_of(self, transport: asyncio.Transport) -> None:
        """Write now what is held for a connection, which is to be closed or written to directly."""
        data = self._held.pop(transport, None)
        if data is not None and not transport.is_closing():
            transport.write(data)
