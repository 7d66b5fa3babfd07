"""The console's stream: at most a message a second, one for all readers, while there are any."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable

from runtime.errors import ResourceExhaustedError
from server.console.live_figures import Figures
from server.lifecycle import Lifecycle, Phase

_log = logging.getLogger(__name__)

MAX_READERS = 32
PERIOD_SECONDS = 1.0
# The figures of many models take long. A message then comes less often, so that they take at most
# this part of a core, up to the longest pause, which is shorter than the patience of proxies.
MAX_SHARE = 0.01
MAX_PAUSE_SECONDS = 20


class EventStream:
    """The messages of one server; used from the event loop only.

    The task that makes them runs while there are readers. The stream ends when the server drains,
    after a message that says so, and if the figures can't be read. `used` returns the processor
    time of this thread, in seconds.
    """

    def __init__(
        self,
        figures: Figures,
        lifecycle: Lifecycle,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        used: Callable[[], float] = time.thread_time,
    ) -> None:
        self._figures, self._lifecycle = figures, lifecycle
        self._sleep, self._used = sleep, used
        self._readers = 0
        self._message = b""
        self._made = asyncio.Event()  # replaced at each message
        self._task: asyncio.Task[None] | None = None

    @property
    def readers(self) -> int:
        """The number of streams that are open."""
        return self._readers

    def open(self) -> AsyncGenerator[bytes, None]:
        """Return a new stream; raise ResourceExhaustedError if MAX_READERS are open.

        It counts from its first message on: a client that has left by then takes no place.
        """
        if self._readers >= MAX_READERS:
            raise ResourceExhaustedError(f"The console is open {MAX_READERS} times; close one")
        return self._read()

    async def _read(self) -> AsyncGenerator[bytes, None]:
        if self._readers >= MAX_READERS:  # others began since `open`
            return
        self._readers += 1
        try:
            if self._task is None:
                self._figures.forget()
                self._task = asyncio.create_task(self._make())
            elif self._message:
                yield self._message
            while True:
                await self._made.wait()
                if not self._message:
                    return
                yield self._message
                if self._lifecycle.phase is Phase.DRAINING:
                    return
        finally:
            self._readers -= 1
            if not self._readers:
                self._end()

    def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._task, self._message = None, b""

    async def _make(self) -> None:
        while True:
            before = self._used()
            try:
                self._message = b"data: %b\n\n" % self._figures.message()
            except Exception:  # the streams end, and their readers may open others
                _log.exception("The console's figures can't be read")
                self._end()
            made, self._made = self._made, asyncio.Event()
            made.set()
            await self._pause(self._used() - before)

    async def _pause(self, cost: float) -> None:
        """Wait for the time of the next message; shorter if the server begins to drain."""
        pause = min(cost / MAX_SHARE / PERIOD_SECONDS, MAX_PAUSE_SECONDS)
        for _ in range(max(1, math.ceil(round(pause, 3)))):
            await self._sleep(PERIOD_SECONDS)
            if self._lifecycle.phase is Phase.DRAINING:
                return
