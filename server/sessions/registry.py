"""The open sessions by id, and, for a limited time, the ids of closed sessions.

Guarantees: used from the event loop only, so nothing changes between two awaits; a place is
reserved before a session is made, so `max_open` also counts the sessions that are being opened.
"""

from __future__ import annotations

import collections
import contextlib
import secrets
import sys
import weakref
from collections.abc import Iterable, Iterator

from runtime.errors import NotFoundError
from server.access.caller import LOCAL, Caller
from server.access.limits import Usage
from server.host import ALONE, Host
from server.sessions.clock import Clock
from server.sessions.open_session import OpenSession, OwnerSteps
from server.sessions.session_errors import SessionGoneError, TooManySessionsError

TOMBSTONE_SECONDS = 3600  # the time for which the response to a closed id is 410
MAX_TOMBSTONES = 10_000
ID_BYTES = 16  # 128 random bits: 22 characters of [A-Za-z0-9_-]
CLOSED_MESSAGE = "Session has been closed."


def new_session_id(suffix: str = "") -> str:
    """Return a random id, which is also the session handle in gRPC; `suffix` says where it is."""
    return secrets.token_urlsafe(ID_BYTES) + suffix


class SessionRegistry:
    """The sessions by id, and the limit on the number of open sessions."""

    def __init__(
        self,
        max_open: int,
        clock: Clock,
        max_owner_steps: int = sys.maxsize,
        host: Host = ALONE,
    ) -> None:
        """Make a registry without sessions; `max_open` is for all processes of the host."""
        self._max_open = max_open
        self._host = host
        self._clock = clock
        self._max_owner_steps = max_owner_steps
        # By owner, as long as one of its sessions exists.
        self._steps: weakref.WeakValueDictionary[str, OwnerSteps] = weakref.WeakValueDictionary()
        self._open: dict[str, OpenSession] = {}
        # By owner with limits who has opened sessions here, as long as they are known.
        self._usages: weakref.WeakValueDictionary[str, Usage] = weakref.WeakValueDictionary()
        self._being_opened: list[str] = []  # the owners of the sessions that are being opened
        # Maps the id of a closed session to (instant of its end, message), the oldest first.
        self._gone: collections.OrderedDict[str, tuple[float, str]] = collections.OrderedDict()

    def __iter__(self) -> Iterator[OpenSession]:
        """Iterate over the open sessions, in the order in which they were opened."""
        return iter(list(self._open.values()))

    def __len__(self) -> int:
        """Return the number of open sessions."""
        return len(self._open)

    @contextlib.contextmanager
    def place(self, caller: Caller = LOCAL) -> Iterator[None]:
        """Reserve a place for a session of a caller.

        Raises TooManySessionsError if all places are taken, and LimitExceededError if the caller's
        are.
        """
        if caller.usage is not None:
            self._usages[caller.owner] = caller.usage
        with self._host.locked():
            if caller.usage is not None:
                mine = [opened for opened in self._open.values() if opened.owner == caller.owner]
                caller.usage.check_sessions(self._seconds_to_first_expiry(mine))
            if self._taken + self._host.sessions_elsewhere() >= self._max_open:
                raise TooManySessionsError(
                    f"{self._max_open} sessions are open, which is the most (sessions.max_open)",
                    self._seconds_to_first_expiry(self._open.values()),
                )
            self._being_opened.append(caller.owner)
            self._note(caller.owner)
        try:
            yield
        finally:
            self._being_opened.remove(caller.owner)
            self._note(caller.owner)

    def _note(self, owner: str) -> None:
        """Note how many sessions there are, and how many of an owner, for the other processes."""
        self._host.note_sessions(self._taken)
        usage = self._usages.get(owner)
        if usage is not None:
            mine = sum(opened.owner == owner for opened in self._open.values())
            usage.note_sessions(mine + self._being_opened.count(owner))

    @property
    def _taken(self) -> int:
        return len(self._open) + len(self._being_opened)

    def steps_of(self, caller: Caller) -> OwnerSteps | None:
        """Return the count of steps that all sessions of the caller share.

        It is None for those who are not authenticated, because they are not told apart.
        """
        if not caller.is_authenticated:
            return None
        return self._steps.setdefault(caller.owner, OwnerSteps(self._max_owner_steps))

    def add(self, opened: OpenSession) -> None:
        """Add a session under its id."""
        self._open[opened.id] = opened

    def get(self, session_id: str) -> OpenSession:
        """Return the open session with this id.

        Raises SessionGoneError if the session was closed or has expired, and NotFoundError if the
        id was never known or has been dropped.
        """
        opened = self._open.get(session_id)
        if opened is not None:
            if self._clock.monotonic() < opened.lease.deadline:
                return opened
            raise SessionGoneError(opened.expiry_message)
        self._drop_old_tombstones()
        if session_id in self._gone:
            raise SessionGoneError(self._gone[session_id][1])
        raise NotFoundError(f"Session {session_id} is not found.")

    def owner_of(self, session_id: str) -> str | None:
        """Return the owner of an open session, or None if no open session has this id."""
        opened = self._open.get(session_id)
        return None if opened is None else opened.owner

    def remove(self, session_id: str, message: str) -> OpenSession | None:
        """Remove a session; from now on, `get` raises an error with `message` for its id."""
        opened = self._open.pop(session_id, None)
        if opened is not None:
            self._note(opened.owner)
            opened.gone = message
            self._gone[session_id] = (self._clock.monotonic(), message)
            if len(self._gone) > MAX_TOMBSTONES:
                self._gone.popitem(last=False)
        return opened

    def is_gone(self, session_id: str) -> bool:
        """Return whether the id belonged to a session that was closed or has expired."""
        self._drop_old_tombstones()
        return session_id in self._gone

    def expired(self) -> list[OpenSession]:
        """Return the sessions whose lease has run out."""
        now = self._clock.monotonic()
        return [opened for opened in self._open.values() if opened.lease.has_expired(now)]

    def _seconds_to_first_expiry(self, sessions: Iterable[OpenSession]) -> float:
        now = self._clock.monotonic()
        return min((opened.lease.expires_at(now) - now for opened in sessions), default=1.0)

    def _drop_old_tombstones(self) -> None:
        oldest = self._clock.monotonic() - TOMBSTONE_SECONDS
        while self._gone and next(iter(self._gone.values()))[0] < oldest:
            self._gone.popitem(last=False)
