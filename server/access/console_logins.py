"""The logins of the console: random ids that stand for a credential while somebody uses it.

A browser keeps the id in a cookie; the credential stays here. Another site can't use the cookie:
the request must also have a header that only the console's page adds, and no sign that another
site made it.

Guarantees: used from the event loop only. Logins are limited in number and time, and what a
credential may do is decided anew at each request.
"""

from __future__ import annotations

import dataclasses
import re
import secrets
from collections.abc import Callable, Mapping

from server.access.web_origins import host_of

COOKIE = "runstep_console"
HEADER = b"x-runstep-console"
IDLE_SECONDS = 30 * 60.0
LONGEST_SECONDS = 12 * 3600.0
MAX_LOGINS = 1000  # at the same time; the one that was not used for longest ends
MAX_FAILURES = 20  # wrong credentials in FAILURE_SECONDS, above which further ones are 429
FAILURE_SECONDS = 10.0
_ID_BYTES = 32
_ID = re.compile(rf"(?:\A|;)\s*{COOKIE}=([A-Za-z0-9_-]{{43}})\s*(?:;|\Z)")


@dataclasses.dataclass(slots=True)
class _Login:
    token: str = dataclasses.field(repr=False)
    began: float
    used: float


class ConsoleLogins:
    """The logins of one server; `clock` is in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._logins: dict[str, _Login] = {}  # in the order of their last use
        self._failures: list[float] = []

    def begin(self, token: str) -> str:
        """Return the id of a new login with a credential that is valid now."""
        now = self._clock()
        self._drop_ended(now)
        if len(self._logins) >= MAX_LOGINS:
            del self._logins[next(iter(self._logins))]
        login_id = secrets.token_urlsafe(_ID_BYTES)
        self._logins[login_id] = _Login(token, now, now)
        return login_id

    def end(self, headers: Mapping[bytes, bytes]) -> None:
        """End the login of a request, if it has one."""
        self._logins.pop(_id_in(headers), None)

    def token_of(self, headers: Mapping[bytes, bytes]) -> str | None:
        """Return the credential that a request of the console's page has, or None."""
        if HEADER not in headers or b"cookie" not in headers or not is_own_page(headers):
            return None
        login_id = _id_in(headers)
        login = self._logins.pop(login_id, None)
        now = self._clock()
        if login is None or _has_ended(login, now):
            return None
        login.used = now
        self._logins[login_id] = login
        return login.token

    def stands(self, headers: Mapping[bytes, bytes]) -> bool:
        """Return whether the login of a request has not ended; this is no use of it."""
        login = self._logins.get(_id_in(headers))
        return login is not None and not _has_ended(login, self._clock())

    def allows_failure(self) -> bool:
        """Count a wrong credential; return False above the rate of MAX_FAILURES."""
        now = self._clock()
        self._failures = [each for each in self._failures if now - each < FAILURE_SECONDS]
        if len(self._failures) >= MAX_FAILURES:
            return False
        self._failures.append(now)
        return True

    def _drop_ended(self, now: float) -> None:
        for login_id in [each for each, login in self._logins.items() if _has_ended(login, now)]:
            del self._logins[login_id]


def _has_ended(login: _Login, now: float) -> bool:
    return now - login.used > IDLE_SECONDS or now - login.began > LONGEST_SECONDS


def _id_in(headers: Mapping[bytes, bytes]) -> str:
    match = _ID.search(headers.get(b"cookie", b"").decode("latin-1"))
    return "" if match is None else match[1]


def is_own_page(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether nothing says that a page of another site made a request.

    Source: https://www.w3.org/TR/fetch-metadata (Sec-Fetch-Site); the host of `Origin` must be that
    of `Host`, because a proxy may change the port.
    """
    if headers.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none"):
        return False
    origin = headers.get(b"origin")
    if origin is None:
        return True
    scheme, _, netloc = origin.decode("latin-1").partition("://")
    own = host_of(headers.get(b"host", b"").decode("latin-1"))
    return scheme in ("http", "https") and bool(own) and host_of(netloc) == own
