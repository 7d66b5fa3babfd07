"""The ids of sessions in one of several processes: they end with its slot and its generation.

`SESSION_PATH` finds the id in the path of a call on a session.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# The random part has 22 characters and may have "-" itself.
_PLACED = re.compile(r"[A-Za-z0-9_-]{22}-(\d{1,3})-(\d{1,9})\Z")
SESSION_PATH = re.compile(r"/v1/sessions/([^/:]+)")


class Place(NamedTuple):
    """Where a session is."""

    slot: int
    generation: int


def suffix_of(place: Place) -> str:
    """Return what the ids of sessions in a process end with."""
    return f"-{place.slot}-{place.generation}"


def place_of(session_id: str) -> Place | None:
    """Return where a session is, or None if this is no id of such a server."""
    match = _PLACED.match(session_id)
    return None if match is None else Place(int(match[1]), int(match[2]))
