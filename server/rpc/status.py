"""OpErrors to gRPC statuses: the only place that knows both.

The numbers are the same, so the table is made from them.
"""

from __future__ import annotations

import grpc

from runtime.errors import OpError

_STATUS_BY_NUMBER = {status.value[0]: status for status in grpc.StatusCode}
MAX_DETAILS_BYTES = 3000  # trailers travel in headers, which clients limit to 8 KiB in all


def status_of(error: OpError) -> tuple[grpc.StatusCode, str]:
    """The status code, and the message short enough to travel as a trailer."""
    details = error.message.encode()[:MAX_DETAILS_BYTES].decode(errors="ignore")
    return _STATUS_BY_NUMBER[int(error.code)], details
