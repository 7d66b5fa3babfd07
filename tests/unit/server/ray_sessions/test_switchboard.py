"""Listeners answer what they are asked with their next call; silent ones hold nobody up."""

from __future__ import annotations

import asyncio

import pytest

from server.ray_sessions import switchboard
from server.ray_sessions.switchboard import Origin, Switchboard

A, B, C = ({"node": "10.0.0.5", "replica": name} for name in "abc")
ASKED = ("metrics", None, ["admin"])


async def listening(board: Switchboard, origin: Origin) -> None:
    """Listen for ever, and answer with the name of the listener."""
    answered: tuple[int, str] | None = None
    while True:
        asked = await board.listen(origin, answered)
        assert asked is not None
        number, *question = asked
        assert question == list(ASKED)
        answered = number, f"of {origin['replica']}"


def test_all_but_the_asking_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        board = Switchboard()
        tasks = [asyncio.ensure_future(listening(board, each)) for each in (A, B)]
        silent = asyncio.ensure_future(board.listen(C, None))
        await asyncio.sleep(0)
        silent.cancel()  # its process is stopped
        for _ in range(2):
            told = await board.ask(A, *ASKED, seconds=0.01)
            assert told == [(B, "of b"), (C, None)]
        both = await asyncio.gather(*(board.ask(B, *ASKED, seconds=0.01) for _ in range(2)))
        assert both == [[(A, "of a"), (C, None)]] * 2
        # It goes on: its late answer is nobody's, and the old questions are not asked any more.
        monkeypatch.setattr(switchboard, "LISTEN_SECONDS", 0.0)
        assert await board.listen(C, (1, "late")) is None
        for task in tasks:
            task.cancel()

    asyncio.run(run())


def test_a_listener_that_is_silent_for_long_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        board = Switchboard()
        monkeypatch.setattr(switchboard, "LISTEN_SECONDS", 0.0)
        assert await board.listen(A, None) is None
        assert await board.ask(B, *ASKED, seconds=0.0) == [(A, None)]
        monkeypatch.setattr(switchboard, "SILENT_SECONDS", -1.0)
        assert await board.ask(B, *ASKED, seconds=0.0) == []

    asyncio.run(run())
