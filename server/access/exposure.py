"""What a server leaves open, in one line for the start of its log."""

from __future__ import annotations

from server.access.web_origins import is_loopback
from server.settings import Settings


def exposure(settings: Settings) -> str | None:
    """Return the warning of a server that others can reach without authentication, or None."""
    if is_loopback(settings.rest.host) or settings.is_authenticated:
        return None
    if settings.tls.requires_client_certificates:
        return None
    may = ["run every model", "read every metric"]
    if settings.sessions.enabled:
        may.append("open sessions")
        if settings.graph_bringers == "anyone":
            may.append("RUN GRAPHS OF THEIR OWN IN THIS PROCESS")
    return (
        f"OPEN TO THE NETWORK: all who reach {settings.rest.host} may, without a key, "
        f"{', '.join(may)}. To close it: access.keys_file, or sessions.graphs: none, "
        "or rest.host: 127.0.0.1; see SECURITY.md"
    )
