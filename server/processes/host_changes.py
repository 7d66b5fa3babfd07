"""HostChanges: how a change of the served models holds in all processes of one server, or in none.

One process after the other makes changes, each in its turn: it makes the change itself, tells the
others, and records it for those that start later. `ToldChanges` is the other side.

Guarantees: used from one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import http
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import orjson

from runtime.errors import OpError, error_for_code
from server.host import Change
from server.processes.beats import LATE_SECONDS, seconds_since_beat
from server.processes.host_table import HostTable
from server.processes.patience import Patience
from server.processes.process_client import ProcessClient
from server.processes.session_ids import Place

CHANGE_PATH = "/internal/change"
_TURN_SECONDS = 0.05


class Processes(Protocol):
    """What one process knows of the others."""

    folder: Path
    table: HostTable

    def running(self) -> list[Place]:
        """Return the places of the other processes."""

    def client_of(self, place: Place) -> ProcessClient:
        """Return the client of the Unix socket of another process."""


async def _nothing() -> None:
    pass


class HostChanges:
    """The changes that the process of `host` makes; `on_turn` is what each turn begins with."""

    def __init__(self, host: Processes) -> None:
        self._host = host
        self.on_turn: Callable[[], Awaitable[None]] = _nothing

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Exclude changes by other processes; the system ends the turn of a process that ends."""
        with open(self._host.folder / "changes.lock", "wb") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await asyncio.sleep(_TURN_SECONDS)
            await self.on_turn()
            yield

    def record(self, change: Change) -> None:
        """Keep a change, in the turn of this process, for processes that start later."""
        with open(self._host.folder / "changes.jsonl", "ab") as file:
            file.write(orjson.dumps(change) + b"\n")

    def recorded(self) -> list[Change]:
        """Return the changes so far; they are complete in a turn of this process."""
        try:
            lines = (self._host.folder / "changes.jsonl").read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [orjson.loads(line) for line in lines]

    async def tell(self, change: Change, timeout_seconds: float | None = None) -> None:
        """Make the other processes change their models too; raise the error of one that can't.

        One that ends meanwhile, or has not made the recorded changes yet, will make this one when
        it has started. One that does not answer can't: it is waited for as `Patience` says, and for
        no longer than `timeout_seconds`.
        """
        recorded = len(self.recorded())
        asked = {"change": change, "timeout_seconds": timeout_seconds, "recorded": recorded}
        told = (self._tell(place, asked) for place in self._host.running())
        errors = [each for each in await asyncio.gather(*told) if each is not None]
        if errors:
            raise errors[0]

    async def _tell(self, place: Place, asked: dict[str, Any]) -> OpError | None:
        row, begun = self._host.table.rows[place.slot], time.monotonic()
        timeout_seconds: float | None = asked["timeout_seconds"]

        def deadline() -> float | None:
            # A process that runs keeps it, and has undone what it had begun when it says so.
            if timeout_seconds is None or seconds_since_beat(row) < LATE_SECONDS:
                return None
            return begun + timeout_seconds

        out_of_time = f"Process {place.slot} of the server did not answer before the deadline"
        patience = Patience(row, place, deadline, out_of_time)
        client = self._host.client_of(place)
        sent = client.exchange("POST", CHANGE_PATH, orjson.dumps(asked))
        try:
            status, content = await patience.answer_of(asyncio.ensure_future(sent))
        except OSError:
            return None
        except OpError as error:
            return error
        if status == http.HTTPStatus.OK:
            return None
        told = orjson.loads(content)
        return error_for_code(told["code"], told["message"])
