"""Map OpErrors to gRPC statuses; no other module uses both.

The status codes of OpErrors and of gRPC have the same numbers; the table is made from them.
"""

from __future__ import annotations

from collections.abc import Iterable

import grpc

from runtime.errors import OpError, error_for_code
from server.access.caller import LOCAL, Caller
from server.rpc.call import RETRY_AFTER

_STATUS_BY_NUMBER = {status.value[0]: status for status in grpc.StatusCode}
MAX_DETAILS_BYTES = 3000  # trailers are HTTP/2 headers, which clients limit to 8 KiB


def status_of(error: OpError, caller: Caller = LOCAL) -> tuple[grpc.StatusCode, str]:
    """Return the gRPC status code of an error, and its message cut to the size of a trailer.

    The message has only what the caller may see.
    """
    details = caller.shown_text(error.message).encode()[:MAX_DETAILS_BYTES].decode(errors="ignore")
    return _STATUS_BY_NUMBER[int(error.code)], details


def error_of(
    code: grpc.StatusCode, details: str, trailers: Iterable[tuple[str, str]] = ()
) -> OpError:
    """Return the error with which a handler of ours has ended a call, and when to try again."""
    error = error_for_code(code.value[0], details)
    for name, value in trailers:
        if name == RETRY_AFTER:
            error.retry_after_seconds = float(value)
    return error
