"""ChangeFollower: makes the changes of the served models that hold for a whole application.

Each front end and each session host has one. It asks the directory what to do next, and says how
many changes it has made (`server/ray_sessions/model_changes.py`).

Guarantees: used from one event loop. While the directory does not answer, the models stay as they
are.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from runtime.errors import OpError, as_op_error
from server.host import Change
from server.models.administration import UNDO
from server.ray_sessions.model_changes import Refusal

_log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
Apply = Callable[[Change, float | None], Awaitable[None]]
# Calls a method of the directory and returns the content of its answer, or raises its OpError.
Ask = Callable[..., Awaitable[Any]]


@dataclasses.dataclass(frozen=True, slots=True)
class _Tried:
    """A change that was tried; `is_own` if this process had made it before."""

    id: str
    change: Change
    refusal: Refusal | None
    is_own: bool = False


class ChangeFollower:
    """The follower `who`, which has the models as they were before change number `position`.

    If it `has_own_models`, changes by which the operator gives all models anew are not for it.
    """

    def __init__(self, ask: Ask, who: str, position: int, *, has_own_models: bool) -> None:
        self.who = who
        self.position = position
        self.own = ""  # the id of a change that this process has made already, and undoes itself
        self._ask = ask
        self._has_own_models = has_own_models
        self._tried: _Tried | None = None
        self._changed = asyncio.Condition()
        self.is_current = False  # it has made all changes that held before it came

    async def reaches(self, position: int) -> None:
        """Wait until it is current, and the changes before a number have been made."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.is_current and self.position >= position)

    async def follow(self, apply: Apply) -> None:
        """Make changes for ever."""
        while True:
            try:
                tried = None if self._tried is None else (self._tried.id, self._tried.refusal)
                told = await self._ask("follow", self.who, self.position, tried, self.is_current)
            except OpError as error:
                _log.info("The directory does not say what has changed: %s", error.message)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            await self._do(told, apply)
            async with self._changed:
                self._changed.notify_all()

    async def _do(self, told: Any, apply: Apply) -> None:
        match told:
            case None:
                self.is_current = True
            case ("make", number, change_id, change):
                if not change_id or change_id != self.own:
                    await self._make(change, apply)
                self.position = number + 1
            case ("try", change_id, change, seconds):
                self.is_current = True
                self._tried = await self._try(change_id, change, seconds, apply)
            case ("hold",) | ("undo",) if self._tried is not None:
                await self._end_trial(self._tried, apply, holds=told[0] == "hold")
                self._tried = None

    async def _make(self, change: Change, apply: Apply) -> None:
        if self._has_own_models and "configure" in change:
            return
        try:
            await apply(change, None)
        except Exception as error:
            message = as_op_error(error).message
            _log.error("A change of the models that others have made failed: %s", message)

    async def _try(
        self, change_id: str, change: Change, seconds: float | None, apply: Apply
    ) -> _Tried:
        if change_id == self.own:
            return _Tried(change_id, change, None, is_own=True)
        try:
            await apply(change, seconds)
        except Exception as error:
            told = as_op_error(error)
            refusal = int(told.code), f"{told.message} ({self.who})"
            return _Tried(change_id, change, refusal)
        return _Tried(change_id, change, None)

    async def _end_trial(self, tried: _Tried, apply: Apply, *, holds: bool) -> None:
        is_own = tried.id == self.own
        has_made = is_own if tried.is_own else tried.refusal is None
        if holds:
            if not has_made:
                await self._make(tried.change, apply)
            self.position += 1
        elif has_made and not is_own:
            await self._make(UNDO, apply)
