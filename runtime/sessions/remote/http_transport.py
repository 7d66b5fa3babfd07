"""HttpTransport: sends requests to a Runstep server and raises its error responses as OpErrors.

A request is repeated only if this is safe. If no connection could be made, any request is repeated,
because the server has not received it. If the connection broke, only GET and DELETE are repeated.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
import time
from collections.abc import Mapping

import httpx

from runtime.foundation.errors import (
    CancelledError,
    Code,
    DeadlineExceededError,
    OpError,
    UnavailableError,
    error_for_code,
)

PROTOBUF = "application/x-protobuf"
# The same in all requests: a gateway that hashes it sends a session's to the same server.
AFFINITY = "x-session-affinity"
_CONNECT_RETRIES = 2
# The server responds at the deadline at the latest; the client waits these seconds longer.
_GRACE_SECONDS = 5.0
# Servers usually close idle connections after 5 s. The client has to close them earlier, or a step
# might be sent on a connection that the server is closing.
_KEEP_IDLE_SECONDS = 3.0
_MAX_CONNECTIONS = 128
_CANCEL_SECONDS = 5.0  # time limit of each `:cancel` request and of all attempts together
_CANCEL_INTERVAL_SECONDS = 0.02  # pause between two attempts
_REPEATABLE = ("GET", "DELETE")
_CODE_BY_STATUS = {
    400: Code.INVALID_ARGUMENT, 401: Code.UNAUTHENTICATED, 403: Code.PERMISSION_DENIED,
    404: Code.NOT_FOUND, 409: Code.ABORTED, 410: Code.CANCELLED, 413: Code.RESOURCE_EXHAUSTED,
    429: Code.RESOURCE_EXHAUSTED, 499: Code.CANCELLED, 501: Code.UNIMPLEMENTED,
    503: Code.UNAVAILABLE, 504: Code.DEADLINE_EXCEEDED,
}  # fmt: skip


class HttpTransport:
    """The connections to one server. All methods may be called from any thread."""

    def __init__(self, target: str) -> None:
        self._client = httpx.Client(
            base_url=target.rstrip("/"),
            headers={AFFINITY: secrets.token_hex(8)},
            transport=httpx.HTTPTransport(
                retries=_CONNECT_RETRIES,
                limits=httpx.Limits(
                    max_connections=_MAX_CONNECTIONS, keepalive_expiry=_KEEP_IDLE_SECONDS
                ),
            ),
        )
        self._is_closed = False

    def send(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Send a request, wait for its response and return the body of the response.

        `seconds` is the time limit, or None for no limit. Raises the OpError of an error response,
        DeadlineExceededError if no response comes in time, UnavailableError if the connection
        fails, and CancelledError if `close` was called in the meantime.
        """
        sent = {"Content-Type": PROTOBUF, **(headers or {})}
        if seconds is not None:
            sent["X-Timeout-Ms"] = str(max(1, int(seconds * 1000)))
        timeout = None if seconds is None else seconds + _GRACE_SECONDS
        attempts = 2 if method in _REPEATABLE else 1
        while True:
            attempts -= 1
            try:
                answer = self._client.request(
                    method, path, content=content, headers=sent, timeout=timeout
                )
                break
            except httpx.TimeoutException as error:
                raise DeadlineExceededError(f"{method} {path}: no answer in {timeout} s") from error
            except (httpx.HTTPError, RuntimeError) as error:  # a closed client raises RuntimeError
                if self._is_closed:
                    raise CancelledError("Session has been closed.") from error
                if not attempts:
                    raise UnavailableError(f"{method} {path}: {error}") from error
        if answer.is_error:
            raise _error_of(answer)
        return answer.content

    def cancel_step(self, session_path: str, request_id: str, answered: threading.Event) -> None:
        """Request the cancellation of a step until the server accepts it or the step has ended.

        The caller must set `answered` when the response of the step has arrived.
        """
        content = json.dumps({"request_id": request_id}).encode()
        headers = {"Content-Type": "application/json"}
        give_up_at = time.monotonic() + _CANCEL_SECONDS
        while not answered.is_set() and time.monotonic() < give_up_at:
            with contextlib.suppress(OpError):
                self.send("POST", f"{session_path}:cancel", content, _CANCEL_SECONDS, headers)
                return
            # The server may not have received the step yet.
            answered.wait(_CANCEL_INTERVAL_SECONDS)

    def close(self) -> None:
        """Close the connections; requests in flight raise CancelledError."""
        self._is_closed = True
        self._client.close()


def _error_of(answer: httpx.Response) -> OpError:
    """Return the OpError of an error response, with the code in its body or else of its status."""
    code = _CODE_BY_STATUS.get(answer.status_code, Code.UNKNOWN)
    message = answer.text
    with contextlib.suppress(ValueError):
        body = answer.json()
        if isinstance(body, dict):
            message = str(body.get("error", message))
            code = Code.__members__.get(str(body.get("code")), code)
    return error_for_code(code, message)
