"""ToldChanges: the changes of the served models that other processes make, each in its turn.

Guarantees: used from one event loop.
"""

from __future__ import annotations

import asyncio
import logging

import orjson
from starlette.requests import Request
from starlette.responses import Response

from runtime.errors import OpError
from server.host import Change
from server.models.administration import UNDO, Administration
from server.processes.worker_host import WorkerHost

_log = logging.getLogger(__name__)


class ToldChanges:
    """Makes those changes in this process.

    None is made before `catch_up` has made those that were recorded before this process. One whose
    process ends before it has recorded the change is undone.
    """

    def __init__(self, host: WorkerHost, administration: Administration) -> None:
        self._host = host
        self._administration = administration
        self._has_caught_up = False
        # How many changes were recorded before the last one that was made here, until it is known
        # whether that one holds.
        self._unsettled: int | None = None
        self._settling: asyncio.Task[None] | None = None
        host.changes.on_turn = self._settle

    async def catch_up(self) -> None:
        """Make the changes that were made before this process started."""
        async with self._host.change_turn():
            for change in self._host.changes.recorded():
                try:
                    await self._administration.apply(change)
                except OpError as error:
                    _log.error("A change of the models can't be repeated: %s", error.message)
            self._has_caught_up = True

    async def answer(self, request: Request) -> Response:
        """Make a change that another process makes in its turn."""
        asked = orjson.loads(await request.body())
        if not self._has_caught_up:  # it will be among those that are recorded
            return Response()
        try:
            if asked["change"] == UNDO:
                self._unsettled = None
                await self._administration.apply(UNDO)
            else:
                await self._settle()
                await self._make(asked["change"], asked["timeout_seconds"], request)
                self._unsettled = asked["recorded"]
                self._settling = asyncio.create_task(self._settle_later())
        except OpError as error:
            content = orjson.dumps({"code": int(error.code), "message": error.message})
            return Response(content, 500, media_type="application/json")
        return Response()

    async def _make(self, change: Change, timeout_seconds: float | None, request: Request) -> None:
        """Make a change; undo it if the other process ends, or waits for it no more."""
        making = asyncio.ensure_future(self._administration.apply(change, timeout_seconds))
        waiting = asyncio.ensure_future(request.receive())
        await asyncio.wait((making, waiting), return_when=asyncio.FIRST_COMPLETED)
        if not making.done():
            await self._administration.apply(UNDO)
        waiting.cancel()
        await making

    async def _settle_later(self) -> None:
        async with self._host.change_turn():  # that of the other process has ended
            pass

    async def _settle(self) -> None:
        """Undo the last change if it was not recorded; the turn in which it was made has ended."""
        recorded, self._unsettled = self._unsettled, None
        if recorded is not None and len(self._host.changes.recorded()) <= recorded:
            _log.error("A change of the models is undone: the process that made it has ended")
            await self._administration.apply(UNDO)
