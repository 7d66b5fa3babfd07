"""Read bodies and step headers of HTTP requests, and make HTTP responses."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from typing import Any, get_args
from urllib.parse import parse_qs

from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope

from runtime.errors import CancelledError, InvalidArgumentError
from server.access.caller import LOCAL, Caller
from server.codec.json_body import to_json
from server.codec.session.tensor_writer import Encoding
from server.connections.large_body import WHOLE_BODY, Body
from server.rest.content_encoding import compression_of, decoded
from server.rest.disconnect import DisconnectWatch
from server.steps.step_request import StepRequest
from server.steps.step_runner import off_loop

PROTOBUF = "application/x-protobuf"
Headers = Mapping[bytes, bytes]  # maps lower-case names to values
ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)


# --- bodies -------------------------------------------------------------------------------------


async def read_body(receive: Receive, headers: Headers, max_bytes: int) -> bytes:
    """Read the whole body, and inflate it if it is compressed.

    Raises CancelledError if the client disconnects, and what `compression_of` and `decoded` raise.
    """
    body = await read_large_body(receive, headers, max_bytes)
    return await bytes_of(body)


async def bytes_of(body: Body) -> bytes:
    """Return a body as bytes; a large one is copied."""
    return body if isinstance(body, bytes) else await off_loop(len(body), b"".join, [body])


async def read_large_body(receive: Receive, headers: Headers, max_bytes: int) -> Body:
    """Read the whole body as `read_body` does; a large one may be a view of where it was received.

    Raises the same errors.
    """
    encoding = headers.get(b"content-encoding")
    compression = None if encoding is None else compression_of(encoding)
    message = await receive()
    body: Body = message.get("body", b"")
    if message.get("more_body") or message["type"] != "http.request":
        chunks = [body]
        while message.get("more_body"):
            message = await receive()
            chunks.append(message.get("body", b""))
        if message["type"] == "http.disconnect":
            raise CancelledError("The client went away.")
        body = message.get(WHOLE_BODY) or await _joined(chunks)
    return body if compression is None else await decoded(body, compression, max_bytes)


async def _joined(chunks: list[Body]) -> bytes:
    # To copy 25 MB takes 10 ms; the interpreter is released meanwhile, but the loop would wait.
    return await off_loop(sum(map(len, chunks)), b"".join, chunks)


async def request_body(request: Request, max_bytes: int) -> bytes:
    """Read the body of a Starlette request; raise the same errors as `read_body`."""
    return await read_body(request.receive, dict(request.scope["headers"]), max_bytes)


def is_protobuf(headers: Headers) -> bool:
    """Return whether the request body is a serialized message; the response then is one too."""
    content_type = headers.get(b"content-type", b"")
    return content_type.partition(b";")[0].strip() == PROTOBUF.encode()


# --- headers and query of a step ----------------------------------------------------------------


def caller_of(scope: Scope) -> Caller:
    """Return the caller that the middleware has admitted."""
    caller: Caller = scope.get("caller") or LOCAL
    return caller


def step_request(
    scope: Scope, headers: Headers, receive: Receive, default_timeout_ms: int = 0
) -> StepRequest:
    """Make a StepRequest with the priority, deadline, id and client of an HTTP request.

    `default_timeout_ms` is the deadline if there is no `X-Timeout-Ms` header; 0 means no deadline.
    Raises InvalidArgumentError if that header is not a positive integer.
    """
    priority = headers.get(b"x-priority")
    timeout = headers.get(b"x-timeout-ms")
    if timeout is not None and not (timeout.isdigit() and 0 < int(timeout) < 1 << 53):
        text = timeout.decode("latin-1")
        raise InvalidArgumentError(f"X-Timeout-Ms must be a positive integer, got {text!r:.80}")
    return StepRequest(
        received_at=scope.get("received_at") or time.monotonic(),
        request_id=scope.get("request_id", ""),
        priority=None if priority is None else priority.decode("latin-1"),
        timeout_ms=default_timeout_ms if timeout is None else int(timeout),
        watch_client=functools.partial(DisconnectWatch, receive),
        caller=caller_of(scope),
    )


def answer_encoding(scope: Scope) -> Encoding:
    """Return the form of tensors in the response, as selected by `?encoding=`.

    Raises InvalidArgumentError if the form is unknown.
    """
    query: bytes = scope["query_string"]
    if not query:
        return "json"
    text = parse_qs(query.decode("latin-1"), keep_blank_values=True).get("encoding", ["json"])[-1]
    if text not in ENCODINGS:
        raise InvalidArgumentError(f"encoding must be one of {', '.join(ENCODINGS)}, got {text!r}")
    return text


# --- responses ----------------------------------------------------------------------------------


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Make a response whose body is compact JSON."""
    return Response(to_json(value), status, headers, "application/json")


def proto_response(
    message: Message, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Make a response whose body is a serialized message."""
    return Response(message.SerializeToString(), status, headers, PROTOBUF)
