"""The console's stream: one message a second, the same for all readers, while there are any."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from runtime.errors import ResourceExhaustedError
from server.console.live_figures import Figures
from server.lifecycle import Lifecycle, Phase

MAX_READERS = 32
PERIOD_SECONDS = 1.0


class EventStream:
    """The messages of one server; used from the event loop only.

    The task that makes them runs while there are readers. The stream ends when the server drains,
    after a message that says so.
    """

    def __init__(
        self,
        figures: Figures,
        lifecycle: Lifecycle,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._figures, self._lifecycle, self._sleep = figures, lifecycle, sleep
        self._readers = 0
        self._message = b""
        self._made = asyncio.Event()  # replaced at each message
        self._task: asyncio.Task[None] | None = None

    @property
    def readers(self) -> int:
        """The number of streams that are open."""
        return self._readers

    def open(self) -> AsyncIterator[bytes]:
        """Return a new stream; raise ResourceExhaustedError if MAX_READERS are open."""
        if self._readers >= MAX_READERS:
            raise ResourceExhaustedError(f"The console is open {MAX_READERS} times; close one")
        self._readers += 1
        return self._read()

    async def _read(self) -> AsyncIterator[bytes]:
        try:
            if self._task is None:
                self._figures.forget()
                self._task = asyncio.create_task(self._make())
            elif self._message:
                yield self._message
            while True:
                await self._made.wait()
                yield self._message
                if self._lifecycle.phase is Phase.DRAINING:
                    return
        finally:
            self._readers -= 1
            if not self._readers and self._task is not None:
                self._task.cancel()
                self._task, self._message = None, b""

    async def _make(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                self._message = b"data: %b\n\n" % self._figures.message()
                made, self._made = self._made, asyncio.Event()
                made.set()
                await self._sleep(PERIOD_SECONDS)
