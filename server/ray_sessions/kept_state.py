"""What the directory keeps in the GCS, so that it is there when Ray starts the directory again."""

from __future__ import annotations

import json
from typing import Any

# Ray Serve's controller keeps its state by these functions too.
from ray.experimental.internal_kv import (
    _internal_kv_del,
    _internal_kv_get,
    _internal_kv_put,
)

from server.ray_sessions.host_ids import directory_name

_NAMESPACE = b"runstep"


def keep_state(application: str, state: dict[str, Any]) -> None:
    """Keep the state of an application's directory, as JSON. Not for the event loop."""
    _internal_kv_put(_key(application), json.dumps(state).encode(), True, namespace=_NAMESPACE)


def kept_state(application: str) -> dict[str, Any] | None:
    """Return what was kept, or None. Not for the event loop."""
    found = _internal_kv_get(_key(application), namespace=_NAMESPACE)
    if found is None:
        return None
    state: dict[str, Any] = json.loads(found)
    return state


def forget_state(application: str) -> None:
    """Keep nothing any more. Not for the event loop."""
    _internal_kv_del(_key(application), namespace=_NAMESPACE)


def _key(application: str) -> bytes:
    return directory_name(application).encode()
