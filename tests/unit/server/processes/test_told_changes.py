"""What one process does when another one changes the models: the processes are fakes here."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.requests import Request
from starlette.types import Message

from runtime.errors import CancelledError, OpError, UnknownError
from server.host import Change
from server.models.administration import UNDO
from server.processes.host_table import HostTable
from server.processes.session_ids import Place
from server.processes.told_changes import ToldChanges
from server.processes.worker_host import WorkerHost

CHANGE: Change = {"unload": "m"}


class Models:
    """Makes changes; those that take long wait for `UNDO`."""

    def __init__(self) -> None:
        self.made: list[Change] = []
        self.takes_long = False
        self.failure: OpError | None = None
        self._undone = asyncio.Event()

    async def apply(self, change: Change, timeout_seconds: float | None = None) -> None:
        if change == UNDO:
            self._undone.set()
        elif self.takes_long:
            await self._undone.wait()
            raise CancelledError("The change of the models was cancelled")
        elif self.failure is not None:
            raise self.failure
        self.made.append(change)


class Process:
    """The second of two processes; the test is the first one."""

    def __init__(self, folder: Path) -> None:
        table = HostTable.create(2)
        self.first = WorkerHost(table, Place(0, 0), folder)
        self.host = WorkerHost(table, Place(1, 0), folder)
        self.models = Models()
        self.changes = ToldChanges(self.host, self.models)  # type: ignore[arg-type] # a fake
        self.ended = asyncio.Event()

    async def told(self, change: Change) -> dict[str, Any] | None:
        """Tell of a change in a turn, and return the error."""
        recorded = len(self.first.changes.recorded())
        asked = {"change": change, "timeout_seconds": None, "recorded": recorded}
        parts = [orjson.dumps(asked)]

        async def receive() -> Message:
            if parts:
                return {"type": "http.request", "body": parts.pop()}
            await self.ended.wait()
            return {"type": "http.disconnect"}

        response = await self.changes.answer(Request({"type": "http"}, receive))
        return orjson.loads(response.body) if response.body else None


@contextlib.asynccontextmanager
async def process_in(folder: Path) -> AsyncIterator[Process]:
    process = Process(folder)
    await process.changes.catch_up()
    yield process


def test_a_change_that_is_recorded_holds(tmp_path: Path) -> None:
    async def run() -> None:
        async with process_in(tmp_path) as process:
            async with process.first.change_turn():
                assert await process.told(CHANGE) is None
                process.first.record(CHANGE)
            async with process.host.change_turn():
                assert process.models.made == [CHANGE]

    asyncio.run(run())


def test_an_error_is_told_and_its_change_not_undone_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with process_in(tmp_path) as process:
            process.models.failure = UnknownError("no memory")
            async with process.first.change_turn():
                told = await process.told(CHANGE)
            assert told == {"code": 2, "message": "no memory"}
            async with process.host.change_turn():
                assert process.models.made == []

    asyncio.run(run())


@pytest.mark.parametrize("told_next", [True, False], ids=["with the next change", "by itself"])
def test_a_change_of_a_process_that_ends_before_it_is_recorded_is_undone(
    told_next: bool, tmp_path: Path
) -> None:
    async def run() -> None:
        async with process_in(tmp_path) as process:
            async with process.first.change_turn():
                await process.told(CHANGE)
                if told_next:
                    await process.told({"unload": "n"})
                    process.first.record({"unload": "n"})
            async with asyncio.timeout(20):
                while len(process.models.made) < 2:
                    await asyncio.sleep(0.01)
            async with process.host.change_turn():
                expected = [CHANGE, UNDO, {"unload": "n"}] if told_next else [CHANGE, UNDO]
                assert process.models.made == expected

    asyncio.run(run())


def test_a_change_is_undone_once_if_its_process_takes_it_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with process_in(tmp_path) as process:
            async with process.first.change_turn():
                await process.told(CHANGE)
                await process.told(UNDO)
            async with process.host.change_turn():
                assert process.models.made == [CHANGE, UNDO]

    asyncio.run(run())


@pytest.mark.parametrize("takes_it_back", [True, False], ids=["takes it back", "ends"])
def test_a_change_is_cancelled_if_its_process(takes_it_back: bool, tmp_path: Path) -> None:
    async def run() -> None:
        async with process_in(tmp_path) as process:
            process.models.takes_long = True
            making = asyncio.create_task(process.told(CHANGE))
            await asyncio.sleep(0.01)
            assert not making.done()
            if takes_it_back:
                await process.told(UNDO)
            else:
                process.ended.set()
            assert await making == {
                "code": 1,
                "message": "The change of the models was cancelled",
            }
            assert process.models.made == [UNDO]

    asyncio.run(run())
