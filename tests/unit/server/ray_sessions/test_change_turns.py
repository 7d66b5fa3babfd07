"""Front ends change the models one after the other; followers that end are not waited for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runtime.errors import CancelledError, DeadlineExceededError, NotFoundError, UnavailableError
from server.ray_sessions import change_turns
from server.ray_sessions.change_turns import ChangeTurns

LOAD = {"load": "a", "base_path": None}
REFUSED = (5, "not found (host)")


class Kept:
    """What has been kept, newest last; raises if it `fails`."""

    def __init__(self) -> None:
        self.states: list[dict[str, Any]] = []
        self.fails = False

    async def __call__(self, state: dict[str, Any]) -> None:
        if self.fails:
            raise OSError("no GCS")
        self.states.append(state)


async def begun(turns: ChangeTurns, seconds: float | None = None) -> asyncio.Task[None]:
    """A change that front `f` has begun, and host `h` has been told to try."""
    assert await turns.follow("h", 0, None, waits=False) is None
    await turns.take("f", "ticket")
    changing = asyncio.ensure_future(turns.change("ticket", "1", LOAD, seconds))
    assert await turns.follow("h", 0, None, waits=True) == ("try", "1", LOAD, seconds)
    return changing


def test_a_change_is_kept_before_it_holds() -> None:
    async def run() -> None:
        kept = Kept()
        turns = ChangeTurns(kept)
        changing = await begun(turns)
        assert await turns.follow("h", 0, ("1", None), waits=True) == ("hold",)
        await changing
        assert kept.states == [{"first": 0, "held": [["1", LOAD]]}]
        await turns.change("ticket", "1", LOAD, None)  # Ray has repeated the call
        assert turns.changes.end == 1
        assert await turns.made_by(["h"], 0.01) == ["h"]
        await turns.follow("h", 1, None, waits=False)
        assert await turns.made_by(["h"], 0.01) == []

    asyncio.run(run())


def test_a_change_that_fails_is_undone_before_its_error_is_raised() -> None:
    async def run() -> None:
        kept = Kept()
        turns = ChangeTurns(kept)
        changing = await begun(turns)
        assert await turns.follow("h", 0, ("1", REFUSED), waits=True) == ("undo",)
        assert not changing.done()
        await turns.follow("h", 0, None, waits=False)
        with pytest.raises(NotFoundError, match=r"not found \(host\)"):
            await changing
        assert kept.states == []

    asyncio.run(run())


def test_a_change_that_can_not_be_kept_fails() -> None:
    async def run() -> None:
        kept = Kept()
        kept.fails = True
        turns = ChangeTurns(kept)
        changing = await begun(turns)
        assert await turns.follow("h", 0, ("1", None), waits=True) == ("undo",)
        await turns.follow("h", 0, None, waits=False)
        with pytest.raises(UnavailableError, match="change of the models can't be kept: no GCS"):
            await changing

    asyncio.run(run())


def test_a_follower_that_says_nothing_fails_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_turns, "GRACE_SECONDS", 0.0)

    async def run() -> None:
        turns = ChangeTurns(Kept())
        changing = await begun(turns, 0.01)
        with pytest.raises(DeadlineExceededError, match="not changed their models in time: h"):
            await changing
        assert await turns.follow("h", 0, ("1", None), waits=True) == ("undo",)

    asyncio.run(run())


def test_a_follower_that_ends_is_not_waited_for() -> None:
    async def run() -> None:
        turns = ChangeTurns(Kept())
        changing = await begun(turns)
        waiting = asyncio.ensure_future(turns.follow("x", 0, ("1", None), waits=True))
        await asyncio.sleep(0)
        await turns.drop("h")
        await changing
        assert await waiting == ("hold",)
        # A call of one that was given up does not bring it back.
        pending = asyncio.ensure_future(turns.follow("x", 1, None, waits=True))
        await asyncio.sleep(0)
        await turns.drop("x")
        assert await pending is None
        assert turns.changes.followers == set()

    asyncio.run(run())


def test_turns_come_one_after_the_other() -> None:
    async def run() -> None:
        turns = ChangeTurns(Kept())
        assert await turns.take("f", "1") == 0
        second = asyncio.ensure_future(turns.take("g", "2"))
        third = asyncio.ensure_future(turns.take("h", "3"))
        await asyncio.sleep(0)
        with pytest.raises(UnavailableError, match="has started again during the change"):
            await turns.change("2", "x", LOAD, None)
        await turns.give("2")  # its client has gone away
        with pytest.raises(CancelledError, match="The change of the models was cancelled"):
            await second
        assert not third.done()
        await turns.drop("f")
        assert await third == 0
        await turns.give("3")

    asyncio.run(run())


def test_a_change_whose_client_goes_away_is_undone() -> None:
    async def run() -> None:
        turns = ChangeTurns(Kept())
        changing = await begun(turns)
        await turns.abandon("1")
        assert await turns.follow("h", 0, ("1", None), waits=True) == ("undo",)
        await turns.follow("h", 0, None, waits=False)
        with pytest.raises(CancelledError):
            await changing
        await turns.abandon("1")  # there is none any more

    asyncio.run(run())


def test_no_turn_begins_before_followers_have_said_that_they_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(change_turns, "REGISTER_SECONDS", 60.0)

    async def run() -> None:
        turns = ChangeTurns(Kept())
        turns.restore({"first": 0, "held": []})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await turns.take("f", "1")

    asyncio.run(run())
