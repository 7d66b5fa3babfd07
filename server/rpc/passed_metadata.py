"""The metadata of a call that is passed on to another process of the server."""

from __future__ import annotations

import orjson

from server.rpc.call import CERTIFICATE_NAMES, FOR_TENSORFLOW, CallContext

# What belongs to one connection, or must not come from a client.
_OF_CONNECTION = frozenset({"user-agent", "content-type", "te", CERTIFICATE_NAMES, FOR_TENSORFLOW})


def passed_metadata(context: CallContext) -> list[tuple[str, str]]:
    """Return what a client has sent, and how it was identified."""
    metadata = [
        (key, value)
        for key, value in context.metadata.items()
        if key not in _OF_CONNECTION and not key.startswith("grpc-")
    ]
    if context.certificate_names:
        names = orjson.dumps(context.certificate_names).decode()
        metadata.append((CERTIFICATE_NAMES, names))
    if context.is_for_tensorflow:
        metadata.append((FOR_TENSORFLOW, "1"))
    return metadata
