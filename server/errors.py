"""Map errors to HTTP statuses and response bodies; no other module does.

A body is `{"error": "<message>", "code": "NOT_FOUND", "request_id": "…"}`. Below `/v2` it is only
`{"error": "<message>"}`, as the Open Inference Protocol requires.

Source of the table: google/rpc/code.proto; 499 for CANCELLED is TensorFlow Serving's.
"""

from __future__ import annotations

import logging
import math
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match

from runtime.errors import (
    CancelledError,
    Code,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnauthenticatedError,
    UnimplementedError,
)
from server.access.caller import Caller
from server.codec.json_body import to_json
from server.sessions.session_errors import SessionGoneError

_log = logging.getLogger(__name__)

HTTP_STATUS: dict[Code, int] = {
    Code.OK: 200,
    Code.CANCELLED: 499,
    Code.UNKNOWN: 500,
    Code.INVALID_ARGUMENT: 400,
    Code.DEADLINE_EXCEEDED: 504,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.FAILED_PRECONDITION: 400,
    Code.ABORTED: 409,
    Code.OUT_OF_RANGE: 400,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.DATA_LOSS: 500,
    Code.UNAUTHENTICATED: 401,
}


class BodyTooLargeError(InvalidArgumentError):
    """The request body exceeds `rest.max_body_bytes`."""


class MethodNotAllowedError(UnimplementedError):
    """The path exists, but not with this method; `allowed` lists the methods that it takes."""

    def __init__(self, allowed: str) -> None:
        super().__init__(f"Method not allowed here; the path takes {allowed}")
        self.allowed = allowed


# Errors whose HTTP status is more specific than the status of their code.
_STATUS_OF_CLASS: dict[type[OpError], int] = {
    SessionGoneError: 410,
    BodyTooLargeError: 413,
    MethodNotAllowedError: 405,
}
_RETRIABLE = (429, 503)
_UNKNOWN = Caller()  # of a request that was not admitted; the texts of those errors hide nothing
_METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")
_RETRY_AFTER_SECONDS = 1  # at least; most queues drain in less, and some errors know the time


def http_status(error: OpError) -> int:
    """Return the HTTP status of the response to an error."""
    return _STATUS_OF_CLASS.get(type(error)) or HTTP_STATUS[error.code]


def error_response(error: OpError, scope: dict[str, Any]) -> Response:
    """Make the response that reports an error; `scope` is the scope of the ASGI request.

    The text has only what the caller in the scope may see.
    """
    caller: Caller = scope.get("caller") or _UNKNOWN
    body: dict[str, Any] = {"error": caller.shown_text(error.message)}
    if not scope["path"].startswith("/v2"):
        body |= {"code": error.code.name, "request_id": scope.get("request_id", "")}
    scope["error"] = error  # the middleware counts what is refused
    status = http_status(error)
    # Before Content-Length, which Starlette appends, as in the responses that report no error.
    headers = {"Content-Type": "application/json"}
    if status in _RETRIABLE:
        seconds = max(_RETRY_AFTER_SECONDS, math.ceil(error.retry_after_seconds))
        headers["Retry-After"] = str(seconds)
    if isinstance(error, UnauthenticatedError):
        headers["WWW-Authenticate"] = "Bearer"  # RFC 9110 §15.5.2
    if isinstance(error, MethodNotAllowedError):
        headers["Allow"] = error.allowed
    return Response(to_json(body), status, headers)


def as_op_error(error: Exception) -> OpError:
    """Return the OpError that reports an exception to the client.

    The details of an unexpected exception are logged and are not sent to the client.
    """
    if isinstance(error, OpError):
        return error
    if isinstance(error, HTTPException):
        return _from_http(error)
    if isinstance(error, ClientDisconnect):
        return CancelledError("The client went away.")
    _log.error("Unexpected error", exc_info=error)
    return InternalError(f"Internal error ({type(error).__name__}); see the server's log")


def _from_http(error: HTTPException) -> OpError:
    """Convert an error of Starlette's router, for example an unknown path, to an OpError."""
    if error.status_code == HTTPStatus.NOT_FOUND:
        return NotFoundError("No such path; GET /docs lists those there are")
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return MethodNotAllowedError((error.headers or {}).get("Allow", "another"))
    return InvalidArgumentError(str(error.detail))


async def handle_error(request: Request, error: Exception) -> Response:
    """Respond to any error; this is Starlette's exception handler for every kind of error."""
    shown = as_op_error(error)
    if isinstance(shown, MethodNotAllowedError):
        shown = MethodNotAllowedError(_methods_of_path(request) or shown.allowed)
    return error_response(shown, request.scope)  # type: ignore[arg-type] # a dict


def _methods_of_path(request: Request) -> str:
    """Return the methods of all routes at this path.

    Starlette reports only the methods of the first route.
    """
    taken = [
        method
        for method in _METHODS
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in request.app.routes
        )
    ]
    return ", ".join(taken)
