"""The ids of sessions on the nodes of a Ray cluster: they end with the id of their session host.

Before it is the timeout of a session's steps, if there is one: every front end knows it then, also
when the host hangs.
"""

from __future__ import annotations

import platform
import re
import secrets

_HOST_ID_BYTES = 6
_FRONT = "front end "
# The random part has 22 characters and may have "-" itself.
_PLACED = re.compile(r"[A-Za-z0-9_-]{22}(?:-t(\d{1,19}))?-r([0-9a-f]{12})\Z")


def new_host_id() -> str:
    """Return the id of a new session host."""
    return secrets.token_hex(_HOST_ID_BYTES)


def suffix_of(host_id: str, timeout_ms: int = 0) -> str:
    """Return what the id of a session in a host ends with; `timeout_ms` is that of its steps."""
    return (f"-t{timeout_ms}" if timeout_ms else "") + f"-r{host_id}"


def host_of(session_id: str) -> str | None:
    """Return the id of a session's host, or None if this is no id of such a session."""
    match = _PLACED.match(session_id)
    return None if match is None else match[2]


def timeout_of(session_id: str) -> int:
    """Return the timeout in milliseconds of a session's steps that have none; 0 if there is none.

    A callable may have one of its own.
    """
    match = _PLACED.match(session_id)
    return 0 if match is None else int(match[1] or 0)


def directory_name(application: str) -> str:
    """Return the name of the actor that knows the hosts of an application."""
    return f"runstep.{application}.directory"


def host_name(application: str, host_id: str) -> str:
    """Return the name of a session host's actor."""
    return f"{host_prefix(application)}{host_id}"


def host_prefix(application: str) -> str:
    """Return what the names of all session hosts of an application begin with."""
    return f"runstep.{application}.host."


def new_front_name() -> str:
    """Return a name for this process, as a front end."""
    return f"{_FRONT}{secrets.token_hex(4)} on {platform.node()}"


def is_front(who: str) -> bool:
    """Return whether a name is that of a front end."""
    return who.startswith(_FRONT)


def follower_of(host_id: str, address: str) -> str:
    """Return what a session host is called where changes of models are spoken of."""
    return f"session host {host_id} on node {address}"
