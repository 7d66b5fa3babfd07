"""The paths of sessions that another process has, and the application for them."""

from __future__ import annotations

from starlette.types import ASGIApp

from server.host import Host
from server.processes.session_ids import SESSION_PATH
from server.processes.worker_host import WorkerHost
from server.rest.late_app import LateApp


class ElsewherePaths:
    """Matches the paths of sessions that another process has, as a pattern of paths does."""

    def __init__(self, host: WorkerHost) -> None:
        self._host = host

    def match(self, path: str) -> bool:
        """Return whether a path is that of a session elsewhere."""
        found = SESSION_PATH.match(path)
        return found is not None and self._host.is_elsewhere(found[1])


def shortcuts_of(host: Host) -> tuple[tuple[ElsewherePaths, ASGIApp], ...]:
    """Return the shortcut of RequestMiddleware for the sessions of other processes."""
    assert isinstance(host, WorkerHost)

    def make() -> ASGIApp:
        from server.rest.session_calls import SessionCalls  # imports httpx

        return SessionCalls(host)

    return ((ElsewherePaths(host), LateApp(make)),)
