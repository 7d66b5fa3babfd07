"""LateApp: an ASGI application that is made after the ports are open."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send


class LateApp:
    """Makes an application with `make`, which takes long, at the first request or before.

    Guarantees: thread-safe; it is made once, outside of the event loop; if `make` raises, the
    request gets the error, and the next one tries again.
    """

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        self._make = make
        self._lock = threading.Lock()  # guards making the application
        self._app: ASGIApp | None = None

    def prepare(self) -> ASGIApp:
        """Make the application unless it exists, and return it; not for the event loop."""
        with self._lock:
            if self._app is None:
                self._app = self._make()
            return self._app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        app = self._app
        if app is None:
            app = await asyncio.to_thread(self.prepare)
        await app(scope, receive, send)
