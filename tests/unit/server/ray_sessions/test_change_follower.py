"""A follower makes, tries and undoes changes as it is told, whatever happens in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runtime.errors import NotFoundError, UnavailableError
from server.host import Change
from server.models.administration import UNDO
from server.ray_sessions import change_follower
from server.ray_sessions.change_follower import ChangeFollower

LOAD = {"load": "a", "base_path": None}
ANEW = {"configure": []}


class Directory:
    """Tells instructions in turn, and then nothing for ever; `asked` are the calls."""

    def __init__(self, *told: Any) -> None:
        self._told = list(told)
        self.asked: list[tuple[int, Any, bool]] = []

    async def __call__(self, method: str, who: str, *asked: Any) -> Any:
        assert (method, who) == ("follow", "me")
        self.asked.append(asked)  # type: ignore[arg-type] # three values
        if not self._told:
            await asyncio.get_running_loop().create_future()
        told = self._told.pop(0)
        if isinstance(told, Exception):
            raise told
        return told


def followed(
    directory: Directory, *, fails: bool = False, own: str = "", has_own_models: bool = False
) -> tuple[ChangeFollower, list[Change]]:
    """The follower after all instructions, and the changes that it has made."""
    made: list[Change] = []

    async def apply(change: Change, seconds: float | None) -> None:
        made.append(change)
        if fails and change != UNDO:
            raise NotFoundError("Could not find base path /x")

    async def run() -> ChangeFollower:
        follower = ChangeFollower(directory, "me", 0, has_own_models=has_own_models)
        follower.own = own
        following = asyncio.ensure_future(follower.follow(apply))
        await follower.reaches(follower.position)
        while directory._told or not directory.asked:
            await asyncio.sleep(0)
        for _ in range(3):
            await asyncio.sleep(0)
        following.cancel()
        return follower

    return asyncio.run(run()), made


def test_it_makes_what_holds_and_says_so() -> None:
    directory = Directory(("make", 0, "1", LOAD), ("make", 3, "4", LOAD), None)
    follower, made = followed(directory)
    assert (follower.position, made) == (4, [LOAD, LOAD])
    assert directory.asked == [
        (0, None, False),
        (1, None, False),
        (4, None, False),
        (4, None, True),
    ]


def test_a_trial_that_holds() -> None:
    directory = Directory(None, ("try", "1", LOAD, 3.0), ("hold",))
    follower, made = followed(directory)
    assert (follower.position, made) == (1, [LOAD])
    assert directory.asked[2:] == [(0, ("1", None), True), (1, None, True)]


def test_a_trial_that_is_undone() -> None:
    follower, made = followed(Directory(None, ("try", "1", LOAD, None), ("undo",)))
    assert (follower.position, made) == (0, [LOAD, UNDO])


def test_a_trial_that_fails_here() -> None:
    directory = Directory(None, ("try", "1", LOAD, None), ("undo",))
    follower, made = followed(directory, fails=True)
    assert (follower.position, made) == (0, [LOAD])
    assert directory.asked[2] == (0, ("1", (5, "Could not find base path /x (me)")), True)


def test_a_trial_that_holds_although_it_has_failed_here() -> None:
    """The directory had given this follower up."""
    follower, made = followed(Directory(None, ("try", "1", LOAD, None), ("hold",)), fails=True)
    assert (follower.position, made) == (1, [LOAD, LOAD])


def test_a_change_of_its_own_is_made_already_and_undone_elsewhere() -> None:
    for verdict, position in (("hold", 1), ("undo", 0)):
        directory = Directory(None, ("try", "1", LOAD, None), (verdict,))
        follower, made = followed(directory, own="1")
        assert (follower.position, made) == (position, [])
    follower, made = followed(Directory(("make", 0, "1", LOAD), None), own="1")
    assert (follower.position, made) == (1, [])


def test_models_anew_are_not_for_who_has_its_own() -> None:
    for has_own_models, expected in ((True, []), (False, [ANEW])):
        directory = Directory(("make", 2, "", ANEW), None)
        follower, made = followed(directory, has_own_models=has_own_models)
        assert (follower.position, made) == (3, expected)


def test_a_directory_that_does_not_answer_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_follower, "RETRY_SECONDS", 0.0)
    directory = Directory(
        None, ("try", "1", LOAD, None), UnavailableError("it starts again"), ("hold",)
    )
    follower, made = followed(directory)
    assert (follower.position, made) == (1, [LOAD])
    assert directory.asked[2] == directory.asked[3]
