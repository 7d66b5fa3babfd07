"""Apply what all requests have in common: id, caller, body limit, drain, metrics, log.

RequestMiddleware is a plain ASGI application around the router. It takes about 10 µs for each
request.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runtime.errors import InvalidArgumentError
from server.access.access import Access
from server.access.caller import Caller
from server.access.limits import Usage
from server.connections.connection_limits import Connections
from server.connections.plain_requests import (
    LATE_CONTENT,
    AnswerPlain,
    AnyContentNow,
    ContentWithHeaders,
    LateContent,
    ResponseNow,
)
from server.errors import BodyTooLargeError, as_op_error, error_response
from server.lifecycle import Lifecycle
from server.memory_in_flight import COUNTED_BYTES, TIMES_BODY, Holding, MemoryInFlight, current
from server.metrics import Metrics

_log = logging.getLogger("server.access")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9_.:/+=-]{1,128}\Z")
# Calls that end work and begin none are accepted while the server drains.
_ENDING_VERBS = (":close", ":cancel", ":keepAlive", ":releaseCallable")
_SERVER_ERROR = 500
# Random ids, made many at a time, because each use of the system's generator takes 1 to 5 µs.
_ID_DIGITS = 16
_IDS_AT_ONCE = 256
_new_ids: list[str] = []
_JSON = (b"content-type", b"application/json")
_JSON_LINE = b"content-type: application/json\r\n"
_LENGTH = b"content-length"
_TEXT = b"%bcontent-length: %d\r\nx-request-id: %b\r\n\r\n%b"
_NO_ANSWER = ("", None)
# In the scope of a request that another process has admitted, and counted for its caller.
PASSED_ON = "is_passed_on"
# What else a logged path may have; a space would let a client add keys to the line.
_PATH_CHARACTERS = "/:@!$&'()*+,;=~"


class PathPattern(Protocol):
    """Whatever matches paths, such as a compiled regular expression."""

    def match(self, path: str, /) -> object:
        """Return whether a path matches."""


class RequestMiddleware:
    """Sets `request_id`, `received_at` and `caller` of the scope, and applies the common rules.

    `shortcuts` are patterns of paths and the applications that handle them in place of `app`, whose
    router takes as long as a small prediction.

    `answers_now` has, by the verb that ends the path, the name in metrics and the function that
    responds to a plain request at once.

    `prepare` makes what `app` has to make before its first request, not on the event loop.

    `connections` are those that HttpProtocol receives the requests on. `memory` is what large
    bodies and answers take.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        prepare: Callable[[], object] | None = None,
        shortcuts: Sequence[tuple[PathPattern, ASGIApp]] = (),
        answers_now: Mapping[str, tuple[str, AnswerPlain]] | None = None,
        access: Access,
        connections: Connections | None = None,
        memory: MemoryInFlight | None = None,
        lifecycle: Lifecycle,
        metrics: Metrics,
        max_body_bytes: int,
        access_log: bool,
    ) -> None:
        self._app = app
        self.prepare = prepare
        self.connections = Connections() if connections is None else connections
        self._memory = MemoryInFlight() if memory is None else memory
        self._shortcuts = shortcuts
        self._answers_now = answers_now or {}
        self._access = access
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
        is_new = PASSED_ON not in scope
        caller: Caller | None = None

        async def send_with_id(message: Message) -> None:
            nonlocal status, is_complete
            is_complete = message["type"] == "http.response.body" and not message.get("more_body")
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            elif is_new and caller is not None and caller.usage is not None:
                caller.usage.add_bytes(len(message.get("body", b"")))
            await send(message)

        is_work, is_counted = scope["method"] == "POST", False
        holding = Holding()  # as `begin_request` does
        holding.memory = self._memory
        current.set(holding)
        try:
            caller = scope["caller"] = self._access.admit_http(
                scope["method"],
                scope["path"],
                headers,
                scope.get("certificate_names", ()),
                is_new=is_new,
            )
            receive = self._limit_body(headers, receive, holding)
            if is_new and caller.usage is not None and caller.usage.counts_bytes:
                receive = _counted(receive, caller.usage)
            if is_work:
                self._lifecycle.begin_request()
                is_counted = True
                if not scope["path"].endswith(_ENDING_VERBS):
                    self._lifecycle.check_accepting()
            app = self._app
            for pattern, shortcut in self._shortcuts:
                if pattern.match(scope["path"]):
                    app = shortcut
                    break
            if LATE_CONTENT in scope:
                app = _send_late_content
            await app(scope, receive, send_with_id)
        except Exception as error:
            # The framework also raises errors to which it has already responded. If only a part of
            # the response has been sent, the connection must be broken, so that the client notices.
            if status and not is_complete:
                raise
            if not status:
                await error_response(as_op_error(error), scope)(scope, receive, send_with_id)  # type: ignore[arg-type] # a dict
        finally:
            endpoint: Any = scope.get("endpoint")
            api = getattr(endpoint, "__name__", "none")
            if "error" in scope:  # whose traceback refers to the scope
                self._access.count_refusal("rest", scope.pop("error"))
            owner = "" if caller is None else caller.owner
            self._note(api, scope["method"], scope["path"], request_id, status, started, owner)
            if holding.size:
                holding.end()
            if is_counted:
                self._lifecycle.end_request()

    def _limit_body(
        self, headers: dict[bytes, bytes], receive: Receive, holding: Holding
    ) -> Receive:
        """Raise BodyTooLargeError if Content-Length exceeds the limit.

        If that header is missing or large, return a `receive` that counts the bytes and raises at
        the limit, or if the bodies in flight take too much memory.
        """
        limit = self._max_body_bytes
        length = headers.get(b"content-length")
        if length is not None:
            if not length.isdigit():
                raise InvalidArgumentError(f"Content-Length is not a number: {length!r:.40}")
            if int(length) > limit:
                raise BodyTooLargeError(_too_large(limit, length.decode()))
            if int(length) < COUNTED_BYTES:
                return receive
        elif b"transfer-encoding" not in headers:
            return receive
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            size = len(message.get("body", b""))
            received += size
            if received > limit:
                raise BodyTooLargeError(_too_large(limit, f"{received} or more"))
            holding.add(size * TIMES_BODY, is_body=True)
            return message

        return counted

    def answer_now(
        self, path: str, headers: Mapping[bytes, bytes], body: bytes
    ) -> ResponseNow | LateContent | None:
        """Respond at once to a plain POST request, by the same rules as to any; see AnswerNow."""
        verb = path[max(path.rfind(":"), path.rfind("/")) + 1 :]
        api, answer = self._answers_now.get(verb, _NO_ANSWER)
        if (
            answer is None
            or (caller := self._access.plain_caller(headers)) is None
            or not self._lifecycle.is_accepting
            or len(body) > self._max_body_bytes
        ):
            return None
        started = time.monotonic()
        request_id = _request_id(headers)
        content: AnyContentNow
        try:
            content = answer(path, headers, body)
        except Exception as error:
            scope = {"path": path, "request_id": request_id, "caller": caller}
            response = error_response(as_op_error(error), scope)
            status, content = response.status_code, bytes(response.body)
            lines = _header_lines(each for each in response.raw_headers if each[0] != _LENGTH)
        else:
            status = 200
            if isinstance(content, bytes):
                lines = _JSON_LINE
            elif content is None:
                return None
            elif isinstance(content, ContentWithHeaders):
                content, sent = content
                lines = _header_lines(sent)
            else:
                return LateContent(api, content)
        self._note(api, "POST", path, request_id, status, started)
        self._lifecycle.note_answered()
        return ResponseNow(status, _TEXT % (lines, len(content), request_id.encode(), content))

    def _note(
        self,
        api: str,
        method: str,
        path: str,
        request_id: str,
        status: int,
        started: float,
        owner: str = "",
    ) -> None:
        seconds = time.monotonic() - started
        self._metrics.requests[api, status].add(seconds)
        # Clients expect 503 and 504; a 500, or no response at all, requires the operator.
        failed = status in (_SERVER_ERROR, 0)
        if self._access_log or failed:
            _log.log(
                logging.WARNING if failed else logging.INFO,
                "%s %s",
                method,
                quote(path, _PATH_CHARACTERS),
                extra={
                    "request_id": request_id,
                    "owner": owner,
                    "status": status,
                    "milliseconds": round(seconds * 1000, 3),
                },
            )


def _header_lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join([b"%b: %b\r\n" % each for each in headers])


async def _send_late_content(scope: Scope, _: Receive, send: Send) -> None:
    late = scope["endpoint"] = scope[LATE_CONTENT]
    content = await late.content
    body, sent = content if isinstance(content, ContentWithHeaders) else (content, (_JSON,))
    headers = [*sent, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _counted(receive: Receive, usage: Usage) -> Receive:
    """Return a `receive` that counts the bytes of the body for the caller."""

    async def counted() -> Message:
        message = await receive()
        usage.add_bytes(len(message.get("body", b"")))
        return message

    return counted


def _request_id(headers: Mapping[bytes, bytes]) -> str:
    """Return the client's `X-Request-Id` if it is safe to log and to return, else a new id."""
    given = headers.get(b"x-request-id")
    if given is not None and _REQUEST_ID.match(given):
        return given.decode()
    if not _new_ids:
        digits = secrets.token_hex(_ID_DIGITS // 2 * _IDS_AT_ONCE)
        _new_ids.extend(re.findall(f".{{{_ID_DIGITS}}}", digits))
    return _new_ids.pop()


def _too_large(limit: int, length: str) -> str:
    return f"The body has {length} bytes; rest.max_body_bytes is {limit}"
