"""ModelChanges: the changes of the served models of one application, and who has made them.

Pure state. *Followers* are the session hosts and the front ends. A change is *tried* by all of
them; if each has succeeded, it *holds*: it is counted, and followers that come later make it too,
in the order of the changes. If one has failed, all others undo it. A follower says how many changes
it has made, and which one it has tried beside them, so that whoever lost this state can go on.

Rules: one change is tried at a time. What is tried and neither on trial any more nor holds is
undone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from server.host import Change

Refusal = tuple[int, str]  # the code and the message of an OpError
# ("make", number, id, change), ("try", id, change, seconds), ("hold",), ("undo",)
Instruction = tuple[Any, ...]


@dataclasses.dataclass(slots=True)
class Trial:
    """A change that is tried; `reports` has what each follower says, None for success.

    `seconds` is the time that each has, or None.
    """

    id: str
    change: Change
    seconds: float | None
    reports: dict[str, Refusal | None] = dataclasses.field(default_factory=dict)
    refusal: Refusal | None = None  # from elsewhere

    @property
    def failure(self) -> Refusal | None:
        """The first refusal, if there is one."""
        told = (self.refusal, *self.reports.values())
        return next((each for each in told if each is not None), None)


class ModelChanges:
    """The changes that hold, from number `first` on, and the one on trial.

    The changes before `first` are of no meaning any more, because the change of that number says
    which models there are.
    """

    def __init__(self) -> None:
        self.first = 0
        self.held: list[tuple[str, Change]] = []  # with their ids
        self.trial: Trial | None = None
        self.followers: set[str] = set()
        self.undoing: set[str] = set()  # who has tried the last change, which failed
        self._positions: dict[str, int] = {}

    @property
    def end(self) -> int:
        """The number of the next change."""
        return self.first + len(self.held)

    @property
    def for_newcomers(self) -> int:
        """The number of the first change that the newest settings do not have."""
        return self.first + any("configure" in change for _, change in self.held[:1])

    def holds(self, change_id: str) -> bool:
        """Return whether a change holds."""
        return any(change_id == each for each, _ in self.held)

    # --- followers -----------------------------------------------------------------------------

    def instruction(self, who: str, position: int, tried: str | None) -> Instruction | None:
        """Return what a follower has to do, or None if it has to wait.

        It has made the changes before number `position`, and has tried the one with the id `tried`.
        """
        if tried is not None:
            if self.trial is not None and self.trial.id == tried:
                return None
            is_next = self.first <= position < self.end
            return ("hold",) if is_next and self.held[position - self.first][0] == tried else _UNDO
        self.undoing.discard(who)
        if position < self.end:
            number = max(position, self.first)
            return ("make", number, *self.held[number - self.first])
        if self.trial is not None and who not in self.trial.reports:
            return ("try", self.trial.id, self.trial.change, self.trial.seconds)
        return None

    def heard(self, who: str, position: int) -> None:
        """Note that a follower has made the changes before number `position`."""
        self.followers.add(who)
        self._positions[who] = position

    def report(self, who: str, tried: str, refusal: Refusal | None) -> None:
        """Note how a follower's trial has ended."""
        if self.trial is not None and self.trial.id == tried:
            self.trial.reports[who] = refusal

    def drop(self, who: str) -> None:
        """Forget a follower that has ended."""
        self.followers.discard(who)
        self.undoing.discard(who)
        self._positions.pop(who, None)

    def behind(self, followers: Sequence[str]) -> list[str]:
        """Return which of some followers have not made all changes."""
        return [who for who in followers if self._positions.get(who, 0) < self.end]

    # --- changes -------------------------------------------------------------------------------

    def begin(self, change_id: str, change: Change, seconds: float | None) -> Trial:
        """Put a change on trial."""
        assert self.trial is None
        self.trial = Trial(change_id, change, seconds)
        return self.trial

    def waits_for(self) -> set[str]:
        """Return the followers that have not reported their trial."""
        return set() if self.trial is None else self.followers - self.trial.reports.keys()

    def hold(self) -> None:
        """Let the change on trial hold."""
        assert self.trial is not None
        self.held.append((self.trial.id, self.trial.change))
        self.trial = None

    def abandon(self) -> None:
        """End the trial: who has tried the change undoes it."""
        assert self.trial is not None
        self.undoing = set(self.trial.reports) & self.followers
        self.trial = None

    def begin_anew(self, change: Change) -> None:
        """Let a change hold that says which models there are, whatever was before."""
        self.first, self.held = self.end, [("", change)]

    # --- what is kept --------------------------------------------------------------------------

    def kept(self, *, with_trial: bool = False) -> dict[str, Any]:
        """Return what must not be lost, as JSON; `with_trial` as if the trial held."""
        held = [list(each) for each in self.held]
        if with_trial and self.trial is not None:
            held.append([self.trial.id, self.trial.change])
        return {"first": self.first, "held": held}

    def restore(self, kept: dict[str, Any]) -> None:
        """Continue with what was kept."""
        self.first = kept["first"]
        self.held = [(change_id, change) for change_id, change in kept["held"]]


_UNDO = ("undo",)
