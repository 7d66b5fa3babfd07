"""HttpTransport: requests to a Runstep server, and its error answers as OpErrors.

A request is sent again only where that is safe: any request when the connection could not be made,
because the server has seen nothing, and GET and DELETE when the connection broke.
"""

from __future__ import annotations

import contextlib
import json
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
_CONNECT_RETRIES = 2
_GRACE_SECONDS = 5.0  # the server answers at the deadline; the wire gets this much more
# Servers close idle connections after 5 s as a rule: ours must be the one that lets go first, or
# a step might be sent into a connection that is closing.
_KEEP_IDLE_SECONDS = 3.0
_MAX_CONNECTIONS = 128
_CANCEL_SECONDS = 5.0  # for one request to cancel
_CANCEL_INTERVAL_SECONDS = 0.02  # until the server has begun the step that is to be cancelled
_REPEATABLE = ("GET", "DELETE")
_CODE_BY_STATUS = {
    400: Code.INVALID_ARGUMENT, 401: Code.UNAUTHENTICATED, 403: Code.PERMISSION_DENIED,
    404: Code.NOT_FOUND, 409: Code.ABORTED, 410: Code.CANCELLED, 413: Code.RESOURCE_EXHAUSTED,
    429: Code.RESOURCE_EXHAUSTED, 499: Code.CANCELLED, 501: Code.UNIMPLEMENTED,
    503: Code.UNAVAILABLE, 504: Code.DEADLINE_EXCEEDED,
}  # fmt: skip


class HttpTransport:
    """One server's connections. All methods may be called from any thread."""

    def __init__(self, target: str) -> None:
        self._client = httpx.Client(
            base_url=target.rstrip("/"),
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
        """The answer's body, or the OpError that it tells of. Without `seconds` it may take long.

        Raises DeadlineExceededError and UnavailableError for what happens on the way, and
        CancelledError when the transport was closed meanwhile.
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
            except (httpx.HTTPError, RuntimeError) as error:  # a closed client's is RuntimeError
                if self._is_closed:
                    raise CancelledError("Session has been closed.") from error
                if not attempts:
                    raise UnavailableError(f"{method} {path}: {error}") from error
        if answer.is_error:
            raise _error_of(answer)
        return answer.content

    def cancel_step(self, session_path: str, request_id: str, answered: threading.Event) -> None:
        """Ask the server to cancel the step of a request, until it has, or the step is over."""
        content = json.dumps({"request_id": request_id}).encode()
        headers = {"Content-Type": "application/json"}
        give_up_at = time.monotonic() + _CANCEL_SECONDS
        while not answered.is_set() and time.monotonic() < give_up_at:
            with contextlib.suppress(OpError):
                self.send("POST", f"{session_path}:cancel", content, _CANCEL_SECONDS, headers)
                return
            answered.wait(_CANCEL_INTERVAL_SECONDS)  # the step may still be on its way there

    def close(self) -> None:
        """Let go of the connections; requests in flight end with CancelledError."""
        self._is_closed = True
        self._client.close()


def _error_of(answer: httpx.Response) -> OpError:
    """The OpError of an error answer: by its code, else by its status."""
    code = _CODE_BY_STATUS.get(answer.status_code, Code.UNKNOWN)
    message = answer.text
    with contextlib.suppress(ValueError):
        body = answer.json()
        if isinstance(body, dict):
            message = str(body.get("error", message))
            code = Code.__members__.get(str(body.get("code")), code)
    return error_for_code(code, message)
