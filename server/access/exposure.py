"""What a server leaves open, in one line for the start of its log."""

from __future__ import annotations

from server.settings import Settings
from server.settings_sections.ports import is_loopback


def exposure(settings: Settings) -> str | None:
    """Return the warning of a server that others can reach without authentication, or None."""
    if settings.is_authenticated:
        return _exposure_to_tensorflow(settings)
    if is_loopback(settings.rest.host):
        return None
    if settings.tls.requires_client_certificates:
        return None
    may = ["run every model", "read every metric"]
    if settings.sessions.enabled:
        may.append("open sessions")
        if settings.graph_bringers == "anyone":
            may.append("RUN GRAPHS OF THEIR OWN IN THIS PROCESS")
    if settings.admin.enabled:
        may.append("CHANGE WHICH MODELS ARE SERVED")
    return (
        f"OPEN TO THE NETWORK: all who reach {settings.rest.host} may, without a key, "
        f"{', '.join(may)}. To close it: access.keys_file, or sessions.graphs: none, "
        "or rest.host: 127.0.0.1; see SECURITY.md"
    )


def _exposure_to_tensorflow(settings: Settings) -> str | None:
    grpc = settings.grpc
    if grpc.tensorflow_port is None or is_loopback(grpc.tensorflow_host):
        return None
    return (
        f"OPEN TO THE NETWORK: all who reach port {grpc.tensorflow_port} of {grpc.tensorflow_host} "
        f"are {grpc.tensorflow_owner}, without a key. To close it: grpc.tensorflow_host: "
        "127.0.0.1, or no grpc.tensorflow_port; see SECURITY.md"
    )
