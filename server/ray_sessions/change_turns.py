"""ChangeTurns: lets one front end at a time change the models of all, and waits for all.

Guarantees: used from one event loop. A change that holds has been kept before anybody hears so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from runtime.errors import (
    CancelledError,
    Code,
    DeadlineExceededError,
    UnavailableError,
    error_for_code,
)
from server.host import Change
from server.ray_sessions.model_changes import Instruction, ModelChanges, Refusal

FOLLOW_SECONDS = 20.0  # until a follower asks again
CHANGE_SECONDS = 600.0  # for a change without a deadline
REGISTER_SECONDS = 3.0
GRACE_SECONDS = 5.0  # after a deadline, for reports that say so
_UNDO_SECONDS = 30.0
_STARTED_AGAIN = "The directory of sessions has started again during the change; try again"


class ChangeTurns:
    """The turns of front ends. `keep` keeps what `ModelChanges.kept` returns."""

    def __init__(self, keep: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        self.changes = ModelChanges()
        self._keep = keep
        self._changed = asyncio.Condition()
        self._waiting: list[tuple[str, str]] = []  # (follower, ticket); the first has the turn
        self._running: dict[str, asyncio.Future[None]] = {}  # by the id of the change
        self._opens_at = 0.0  # the instant of `time.monotonic` before which no turn begins

    def restore(self, kept: dict[str, Any]) -> None:
        """Continue after an end: the followers there are have some seconds to say so."""
        self.changes.restore(kept)
        self._opens_at = time.monotonic() + REGISTER_SECONDS

    async def note(self) -> None:
        """Let everyone who waits look again; also called once a second."""
        async with self._changed:
            self._changed.notify_all()

    async def _wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait for a condition; return False if it does not hold after `seconds`."""
        try:
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(condition)
        except TimeoutError:
            return False
        return True

    async def drop(self, who: str) -> None:
        """Forget a follower that has ended, and its turn."""
        self.changes.drop(who)
        self._waiting = [each for each in self._waiting if each[0] != who]
        await self.note()

    # --- followers -----------------------------------------------------------------------------

    async def follow(
        self, who: str, position: int, tried: tuple[str, Refusal | None] | None, *, waits: bool
    ) -> Instruction | None:
        """Return what a follower has to do next; None after FOLLOW_SECONDS, or if it `waits` not.

        It has made the changes before number `position`. `tried` is the id of the one that it has
        tried, and how that ended.
        """
        found: Instruction | None = None
        tried_id = None if tried is None else tried[0]
        self.changes.heard(who, position)
        if tried is not None:
            self.changes.report(who, *tried)

        def look() -> bool:
            nonlocal found
            if who not in self.changes.followers:
                return True  # it was given up
            found = self.changes.instruction(who, position, tried_id)
            return found is not None

        has_found = look()
        await self.note()
        if not has_found and waits:
            await self._wait(look, FOLLOW_SECONDS)
        return found

    async def made_by(self, followers: Sequence[str], seconds: float) -> list[str]:
        """Wait until some followers have made all changes; return those that have not in time."""
        await self._wait(lambda: not self.changes.behind(followers), seconds)
        return self.changes.behind(followers)

    # --- turns ---------------------------------------------------------------------------------

    async def take(self, who: str, ticket: str) -> int:
        """Wait for the turn of a front end, and return the number of the next change.

        Raises CancelledError if the turn is given up meanwhile.
        """
        mine = (who, ticket)
        if mine not in self._waiting:
            self._waiting.append(mine)
        async with self._changed:
            await self._changed.wait_for(
                lambda: mine not in self._waiting or (self._waiting[0] == mine and self._is_free())
            )
        if mine not in self._waiting:
            raise CancelledError("The change of the models was cancelled")
        return self.changes.end

    def _is_free(self) -> bool:
        return self.changes.trial is None and time.monotonic() >= self._opens_at

    async def give(self, ticket: str) -> None:
        """End a turn, or the wait for it."""
        self._waiting = [each for each in self._waiting if each[1] != ticket]
        await self.note()

    async def change(
        self, ticket: str, change_id: str, change: Change, seconds: float | None
    ) -> None:
        """Make a change in the turn of `ticket`; if it fails anywhere, raise the error.

        Then nobody has made it. Raises UnavailableError if the turn is not known any more.
        """
        if self.changes.holds(change_id):
            return  # asked again by Ray
        running = self._running.get(change_id)
        if running is None:
            if not self._waiting or self._waiting[0][1] != ticket:
                raise UnavailableError(_STARTED_AGAIN)
            running = asyncio.ensure_future(self._make(change_id, change, seconds))
            self._running[change_id] = running
            running.add_done_callback(lambda _: self._running.pop(change_id))
        await asyncio.shield(running)

    async def abandon(self, change_id: str) -> None:
        """Let a change fail that does not hold yet."""
        trial = self.changes.trial
        if trial is not None and trial.id == change_id:
            error = CancelledError("The change of the models was cancelled")
            trial.refusal = (int(error.code), error.message)

    async def _make(self, change_id: str, change: Change, seconds: float | None) -> None:
        trial = self.changes.begin(change_id, change, seconds)
        await self.note()
        limit = CHANGE_SECONDS if seconds is None else seconds + GRACE_SECONDS
        if not await self._wait(lambda: not self.changes.waits_for(), limit):
            late = ", ".join(sorted(self.changes.waits_for()))
            error = DeadlineExceededError(f"These have not changed their models in time: {late}")
            trial.refusal = trial.refusal or (int(error.code), error.message)
        failure = trial.failure
        if failure is None:
            try:
                await self._keep(self.changes.kept(with_trial=True))
            except Exception as error:
                text = f"The change of the models can't be kept: {error}"
                failure = int(Code.UNAVAILABLE), text
        if failure is None:
            self.changes.hold()
            await self.note()
            return
        self.changes.abandon()
        await self.note()
        await self._wait(lambda: not self.changes.undoing, _UNDO_SECONDS)
        raise error_for_code(*failure)

    async def begin_anew(self, change: Change) -> None:
        """Let a change of the operator's hold, which says which models there are."""
        self.changes.begin_anew(change)
        await self._keep(self.changes.kept())
        await self.note()
