"""Caller: who makes a request, and what this caller may do."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable

from server.access.access_errors import DeniedError, ForeignSessionError
from server.access.limits import Usage

_SHOWN_CHARACTERS = 4  # of a masked id; 18 others remain, which are 108 random bits


class Role(enum.StrEnum):
    """What a caller may do; an admin has the other roles too."""

    PREDICT = "predict"  # run the signatures of served models
    SESSIONS = "sessions"  # open sessions and use one's own
    ADMIN = "admin"  # see the sessions of all owners, and use one whose id is known


EVERY_ROLE = frozenset(Role)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """One caller; requests of one owner may have different callers, for example after a reload.

    `owner` is the name to which sessions belong; "" stands for all who are not authenticated.
    `usage` has the limits of the owner, and is None if there are none. `redact` removes what
    only an admin may see from the text of an error.
    """

    owner: str = ""
    roles: frozenset[Role] = EVERY_ROLE
    is_authenticated: bool = False
    may_bring_graphs: bool = True
    usage: Usage | None = None
    redact: Callable[[str], str] | None = None

    def has(self, role: Role) -> bool:
        """Return whether the caller has a role."""
        return role in self.roles or Role.ADMIN in self.roles

    def check_role(self, role: Role) -> None:
        """Raise PermissionDeniedError if the caller does not have a role."""
        if not self.has(role):
            has = ", ".join(sorted(self.roles)) or "none"
            raise DeniedError(f"This call requires the role {role}; the caller has {has}", "role")

    def check_may_bring_graphs(self) -> None:
        """Raise PermissionDeniedError unless the caller may bring graphs of its own."""
        if not self.may_bring_graphs:
            raise DeniedError(
                "The caller may not bring graphs of its own (sessions.graphs); "
                "a session on a served model is possible",
                "graphs",
            )

    def may_use(self, owner: str) -> bool:
        """Return whether the caller may use a session of `owner` whose id it holds."""
        return owner == self.owner or Role.ADMIN in self.roles

    def check_session(self, session_id: str, owner: str) -> None:
        """Raise NotFoundError, as for an unknown id, unless `may_use(owner)`."""
        if not self.may_use(owner):
            raise ForeignSessionError(f"Session {session_id} is not found.")

    def shown_id(self, session_id: str, owner: str) -> str:
        """Return a session's id for a listing, masked unless the session is the caller's own.

        All who are not authenticated are one owner, so that the ids of its sessions are masked.
        """
        if self.is_authenticated and owner == self.owner:
            return session_id
        return masked(session_id)

    def shown_text(self, text: str) -> str:
        """Return the text of an error without what the caller may not see."""
        return text if self.redact is None or Role.ADMIN in self.roles else self.redact(text)


# The caller of code that is in this process, such as a test; it may do everything.
LOCAL = Caller()


def masked(session_id: str) -> str:
    """Return an id that tells sessions apart for people, but does not allow to use one."""
    return f"{session_id[:_SHOWN_CHARACTERS]}…"


def told_caller(caller: Caller) -> tuple[str | None, list[str]]:
    """Return what another process is told of a caller for whom it is asked: owner and roles."""
    owner = caller.owner if caller.is_authenticated else None
    return owner, [str(role) for role in caller.roles]


def caller_of(owner: str | None, roles: Iterable[str]) -> Caller:
    """Return the caller of whom `told_caller` has told."""
    if owner is None:  # a server without authentication knows nobody
        return Caller()
    return Caller(owner, frozenset(map(Role, roles)), is_authenticated=True)
