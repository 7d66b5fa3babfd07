"""Runstep's clients, and the launcher `python -m runstep`.

    from runstep import Client

    with Client("http://localhost:8501") as client:
        client.predict("half_plus_two", {"x": [1.0, 2.0, 5.0]})

The server's packages are named `server`, `runtime` and `protos`; importing this one loads none of
them but `runtime.errors`, and that only with a client.
"""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runstep.client.async_client import AsyncClient, AsyncSession
    from runstep.client.sync_client import Client, Session

__all__ = ["AsyncClient", "AsyncSession", "Client", "Session", "__version__"]

_MODULES = {
    "AsyncClient": "runstep.client.async_client",
    "AsyncSession": "runstep.client.async_client",
    "Client": "runstep.client.sync_client",
    "Session": "runstep.client.sync_client",
}


def __getattr__(name: str) -> object:
    """Import a client when it is used: the launcher needs none."""
    if name == "__version__":
        return metadata.version("runstep")
    if name not in _MODULES:
        raise AttributeError(f"module 'runstep' has no attribute {name!r}")
    import importlib

    from runstep.names import check_names

    check_names(("runtime",))
    return getattr(importlib.import_module(_MODULES[name]), name)
