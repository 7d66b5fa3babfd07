"""Keep the log free of errors about responses to gRPC clients that have gone.

A client that has the deadline of its step, as TensorFlow's has, often goes away while the response
is being sent. gRPC logs that as an error with a traceback, once for each call, although it is no
fault of the server; strangers could fill the log with it.
"""

from __future__ import annotations

import logging

_LOGGER = "grpc._cython.cygrpc"
_GONE = "ExecuteBatchError raised in core"  # the operations of a call that has ended have failed

_log = logging.getLogger(__name__)


class _GoneClients(logging.Filter):
    """Logs these errors as one line for debugging instead."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if not message.startswith(_GONE):
            return True
        _log.debug("A client has gone before its response:%s", message.removeprefix(_GONE))
        return False


_filter = _GoneClients()


def quiet_gone_clients() -> None:
    """Log no errors about clients that have gone; a second call has no effect."""
    logging.getLogger(_LOGGER).addFilter(_filter)
