"""Calls for front ends that have ended are cancelled; all others go on."""

from __future__ import annotations

import asyncio
import math

import pytest

from runtime.errors import CancelledError, UnavailableError
from server.ray_sessions.calls_of_fronts import CallsOfFronts


class Directory:
    """Says which front ends there are, counts how often, or does not answer."""

    def __init__(self, alive: list[str] | Exception | None) -> None:
        self.alive = alive
        self.asked = 0

    async def __call__(self) -> list[str] | None:
        self.asked += 1
        if isinstance(self.alive, Exception):
            raise self.alive
        return self.alive


def test_calls_of_a_front_end_that_has_ended() -> None:
    async def run() -> None:
        directory = Directory(["front b"])
        calls = CallsOfFronts(directory)
        released = asyncio.Event()

        async def wait() -> str:
            await released.wait()
            return "done"

        lost, kept = (asyncio.ensure_future(calls.run(f"front {x}", wait())) for x in "ab")
        await asyncio.sleep(0)
        await calls.look(-math.inf)  # both have just begun
        assert directory.asked == 0
        await calls.look(math.inf)
        with pytest.raises(CancelledError, match="The front a has ended"):
            await lost
        released.set()
        assert await kept == "done"
        await calls.look(math.inf)  # nothing runs
        assert directory.asked == 1

    asyncio.run(run())


@pytest.mark.parametrize("alive", [None, UnavailableError("it starts again")])
def test_nothing_is_cancelled_while_it_is_not_known_who_is_there(alive: Exception | None) -> None:
    async def run() -> None:
        calls = CallsOfFronts(Directory(alive))
        waiting = asyncio.ensure_future(calls.run("front a", asyncio.sleep(0.01, "done")))
        await asyncio.sleep(0)
        await calls.look(math.inf)
        assert await waiting == "done"

    asyncio.run(run())


def test_a_call_that_is_cancelled_by_its_caller() -> None:
    async def run() -> None:
        calls = CallsOfFronts(Directory([]))
        waiting = asyncio.ensure_future(calls.run("front a", asyncio.sleep(60)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not calls._running

    asyncio.run(run())
