"""Apply what all requests have in common: id, receipt time, body limit, drain, metrics, log.

RequestMiddleware is a plain ASGI application around the router. It takes about 10 µs for each
request.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runtime.errors import InvalidArgumentError
from server.errors import BodyTooLargeError, as_op_error, error_response
from server.lifecycle import Lifecycle
from server.metrics import Metrics

_log = logging.getLogger("server.access")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9_.:/+=-]{1,128}\Z")
# Calls that end work and begin none are accepted while the server drains.
_ENDING_VERBS = (":close", ":cancel", ":keepAlive", ":releaseCallable")
_SERVER_ERROR = 500


class RequestMiddleware:
    """Sets `request_id` and `received_at` of the scope, and applies the common rules.

    `shortcut` is a pattern of paths and the application that handles them in place of `app`, whose
    router takes as long as a small prediction.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        shortcut: tuple[re.Pattern[str], ASGIApp],
        lifecycle: Lifecycle,
        metrics: Metrics,
        max_body_bytes: int,
        access_log: bool,
    ) -> None:
        self._app = app
        self._shortcut_path, self._shortcut = shortcut
        self._lifecycle = lifecycle
        self._metrics = metrics
        self._max_body_bytes = max_body_bytes
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = scope["received_at"] = time.monotonic()
        headers = dict(scope["headers"])
        request_id = scope["request_id"] = _request_id(headers)
        status, is_complete = 0, False

        async def send_with_id(message: Message) -> None:
            nonlocal status, is_complete
            is_complete = message["type"] == "http.response.body" and not message.get("more_body")
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        is_work, is_counted = scope["method"] == "POST", False
        try:
            receive = self._limit_body(headers, receive)
            if is_work:
                self._lifecycle.begin_request()
                is_counted = True
                if not scope["path"].endswith(_ENDING_VERBS):
                    self._lifecycle.check_accepting()
            app = self._shortcut if self._shortcut_path.match(scope["path"]) else self._app
            await app(scope, receive, send_with_id)
        except Exception as error:
            # The framework also raises errors to which it has already responded. If only a part of
            # the response has been sent, the connection must be broken, so that the client notices.
            if status and not is_complete:
                raise
            if not status:
                await error_response(as_op_error(error), scope)(scope, receive, send_with_id)  # type: ignore[arg-type] # a dict
        finally:
            self._note(scope, status, time.monotonic() - started)
            if is_counted:
                self._lifecycle.end_request()

    def _limit_body(self, headers: dict[bytes, bytes], receive: Receive) -> Receive:
        """Raise BodyTooLargeError if Content-Length exceeds the limit.

        If that header is missing, return a `receive` that counts the bytes and raises at the limit.
        """
        limit = self._max_body_bytes
        length = headers.get(b"content-length")
        if length is not None:
            if not length.isdigit():
                raise InvalidArgumentError(f"Content-Length is not a number: {length!r:.40}")
            if int(length) > limit:
                raise BodyTooLargeError(_too_large(limit, length.decode()))
            return receive
        if b"transfer-encoding" not in headers:
            return receive
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise BodyTooLargeError(_too_large(limit, f"{received} or more"))
            return message

        return counted

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        endpoint: Any = scope.get("endpoint")
        api = getattr(endpoint, "__name__", "none")
        self._metrics.requests(api, status).add(seconds)
        # Clients expect 503 and 504; a 500, or no response at all, requires the operator.
        failed = status in (_SERVER_ERROR, 0)
        if self._access_log or failed:
            _log.log(
                logging.WARNING if failed else logging.INFO,
                "%s %s",
                scope["method"],
                scope["path"],
                extra={
                    "request_id": scope["request_id"],
                    "status": status,
                    "milliseconds": round(seconds * 1000, 3),
                },
            )


def _request_id(headers: dict[bytes, bytes]) -> str:
    """Return the client's `X-Request-Id` if it is safe to log and to return, else a new id."""
    given = headers.get(b"x-request-id", b"")
    return given.decode() if _REQUEST_ID.match(given) else secrets.token_hex(8)


def _too_large(limit: int, length: str) -> str:
    return f"The body has {length} bytes; rest.max_body_bytes is {limit}"
