"""What each HTTP call requires of its caller: one table.

A path that no row names requires the role `predict` if its method may change something, and else
only that the caller is known. So a new call is closed until it has a row.
"""

from __future__ import annotations

import enum
import re

# The console shows sessions by their ids, too.
_SESSION = re.compile(r"(?:/v1|/console/api)/sessions/([^/:]+)")


class Need(enum.Enum):
    """What a call requires."""

    NOTHING = "nothing"
    KNOWN = "a known caller"
    PREDICT = "the role predict"
    SESSIONS = "the role sessions"
    GRAPHS = "the role sessions, and the right to bring graphs"


_ANY = re.compile(r"")
# (methods, or () for all; pattern of the path's beginning; need). The first matching row counts.
_RULES: tuple[tuple[tuple[str, ...], re.Pattern[str], Need], ...] = (
    # For load balancers and orchestrators, which have no keys.
    (("GET", "HEAD"), re.compile(r"/(?:healthz|readyz)\Z"), Need.NOTHING),
    (("GET", "HEAD"), re.compile(r"/v2/health/(?:live|ready)/?\Z"), Need.NOTHING),
    # The same for every server; browsers that read it have no keys.
    (("GET", "HEAD"), re.compile(r"/(?:docs|openapi\.json)\Z"), Need.NOTHING),
    # The console's page, which has no data; and where it logs in.
    (("GET", "HEAD"), re.compile(r"/console(?:\Z|/(?!api/))"), Need.NOTHING),
    (("POST",), re.compile(r"/console/api/log(?:in|out)\Z"), Need.NOTHING),
    # Browsers send the preflight request of CORS without credentials. Its answer has no body.
    (("OPTIONS",), _ANY, Need.NOTHING),
    (("POST",), re.compile(r"/v1/sessions/[^/:]+:extend\Z"), Need.GRAPHS),
    ((), re.compile(r"(?:/v1|/console/api)/sessions(?:[/:]|\Z)"), Need.SESSIONS),
    # It runs a signature, as predict does.
    (("POST",), re.compile(r"/console/api/models/[^/]+/trace\Z"), Need.PREDICT),
    # Who may change something is decided by server/models/administration.py.
    (("POST",), re.compile(r"/console/api/(?:drain\Z|models/[^/]+:label\Z)"), Need.KNOWN),
    (("POST",), re.compile(r"/v2/(?:repository|logging|(?:.*/)?trace/setting)"), Need.KNOWN),
    (("GET", "HEAD"), _ANY, Need.KNOWN),
    ((), _ANY, Need.PREDICT),
)


def need_of(method: str, path: str) -> Need:
    """Return what a call requires; `path` is percent-decoded."""
    return next(
        need
        for methods, pattern, need in _RULES
        if (not methods or method in methods) and pattern.match(path)
    )


def session_in(path: str) -> str | None:
    """Return the session id in a path, or None if there is none."""
    match = _SESSION.match(path)
    return None if match is None else match[1]
