"""CallsOfFronts: the calls that a session host runs for front ends, which may end before them.

Ray lets a call go on whose caller has died. On one server a step is cancelled when its client goes
away, and so it is here: the clients of a front end that has died are gone.

Guarantees: used from one event loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine
from typing import Any, TypeVar

from runtime.errors import CancelledError, OpError

T = TypeVar("T")
_log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0


class CallsOfFronts:
    """The running calls. `alive` returns which front ends there are, or None if it can't say."""

    def __init__(self, alive: Callable[[], Awaitable[Collection[str] | None]]) -> None:
        self._alive = alive
        # By task: the front end, and the instant of `time.monotonic` when the call began.
        self._running: dict[asyncio.Task[Any], tuple[str, float]] = {}

    async def run(self, front: str, call: Coroutine[Any, Any, T]) -> T:
        """Return what a call returns; raise CancelledError if its front end has ended."""
        task = asyncio.ensure_future(call)
        self._running[task] = front, time.monotonic()
        try:
            return await task
        except asyncio.CancelledError:
            if task not in self._running:
                raise CancelledError(f"The {front} has ended") from None
            raise
        finally:
            self._running.pop(task, None)

    async def watch(self) -> None:
        """Cancel the calls of front ends that have ended, for ever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look(time.monotonic() - LOOK_SECONDS)

    async def look(self, since: float) -> None:
        """Cancel the calls of front ends that have ended; ask only if one began before `since`."""
        if not any(began < since for _, began in self._running.values()):
            return
        try:
            alive = await self._alive()
        except OpError as error:
            _log.info("The directory does not say which front ends there are: %s", error.message)
            return
        if alive is None:
            return
        for task, (front, began) in list(self._running.items()):
            if began < since and front not in alive:
                _log.warning("A call is cancelled, because the %s has ended", front)
                del self._running[task]
                task.cancel()
