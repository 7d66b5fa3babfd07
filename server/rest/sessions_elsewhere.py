"""The paths of sessions that another process has, and the applications for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection

from starlette.types import ASGIApp, Receive, Scope, Send

from runtime.errors import UnavailableError
from server.host import Host
from server.processes.session_ids import SESSION_PATH
from server.processes.worker_host import WorkerHost
from server.rest.session_calls import SessionCalls
from server.sessions.session_errors import SessionGoneError

_OPENING_PATHS = ("/v1/sessions", "/v1/sessions/")
_START_SECONDS = 15.0  # until the background process serves
_NOTICE_SECONDS = 0.5  # until it is noticed that one which has served does so no more
_LOOK_SECONDS = 0.02


class ElsewherePaths:
    """Matches the paths of sessions that another process has, as a pattern of paths does."""

    def __init__(self, host: WorkerHost) -> None:
        self._host = host

    def match(self, path: str) -> bool:
        """Return whether a path is that of a session elsewhere."""
        found = SESSION_PATH.match(path)
        return found is not None and self._host.is_elsewhere(found[1])


class OpeningPaths:
    """Matches the paths by which sessions are opened, as a pattern of paths does."""

    def match(self, path: str) -> bool:
        """Return whether a path is one of them."""
        return path in _OPENING_PATHS


class BackgroundOpening:
    """An ASGI application that has sessions of low priority opened in the background process.

    The first of them starts it, and waits for it: a session stays where it was opened. If it does
    not start, or for other requests, `app` responds. `priorities` are those of low priority.
    """

    def __init__(self, host: WorkerHost, app: ASGIApp, priorities: Collection[str]) -> None:
        self._host = host
        self._app = app
        self._priorities = frozenset(each.encode() for each in priorities)
        self._calls = SessionCalls(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request, which was admitted.

        Raises UnavailableError if the background process ends meanwhile.
        """
        if not (self._is_low(scope) and await self._is_there()):
            await self._app(scope, receive, send)
            return
        try:
            await self._calls.pass_on(self._host.background, scope, receive, send)
        except SessionGoneError:
            raise UnavailableError(
                "The background process ended while it opened the session"
            ) from None

    def _is_low(self, scope: Scope) -> bool:
        named = [value for name, value in scope["headers"] if name == b"x-priority"]
        return scope["method"] == "POST" and len(named) == 1 and named[0] in self._priorities

    async def _is_there(self) -> bool:
        """Return whether the background process serves, after waiting for its start."""
        host, begun = self._host, time.monotonic()
        host.want_background()
        while not (host.background_answers and host.listens(host.background)):
            limit = _NOTICE_SECONDS if host.has_background else _START_SECONDS
            if host.table.background.is_put_off or time.monotonic() - begun > limit:
                return False
            await asyncio.sleep(_LOOK_SECONDS)
        return True


def shortcuts_of(
    host: Host, app: ASGIApp
) -> tuple[tuple[ElsewherePaths | OpeningPaths, ASGIApp], ...]:
    """Return the shortcuts of RequestMiddleware for sessions of other processes.

    `app` responds where they do not.
    """
    assert isinstance(host, WorkerHost)

    elsewhere = (ElsewherePaths(host), SessionCalls(host))
    if host.is_background or not host.background_priorities:
        return (elsewhere,)
    opening = BackgroundOpening(host, app, host.background_priorities)
    return (elsewhere, (OpeningPaths(), opening))
