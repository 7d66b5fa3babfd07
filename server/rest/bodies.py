"""Bodies and headers of requests and answers: content types, deadlines, encodings."""

from __future__ import annotations

from typing import Any, get_args

from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import Response

from runtime.errors import InvalidArgumentError
from server.codec.json_body import to_json
from server.codec.json_tensor_writer import Encoding
from server.rest.request_body import read_body

PROTOBUF = "application/x-protobuf"
_ENCODINGS = get_args(Encoding)


async def request_body(request: Request, max_bytes: int) -> bytes:
    """All of the body, inflated when it is gzipped; raises as `read_body`."""
    encoding = request.headers.get("content-encoding", "")
    return await read_body(request.receive, encoding.encode(), max_bytes)


def is_protobuf(request: Request) -> bool:
    """Whether the body is a serialized message; the answer is one too then."""
    return request.headers.get("content-type", "").partition(";")[0].strip() == PROTOBUF


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Compact JSON."""
    return Response(to_json(value), status, headers, "application/json")


def proto_response(
    message: Message, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """A serialized message."""
    return Response(message.SerializeToString(), status, headers, PROTOBUF)


def header_timeout_ms(request: Request) -> int | None:
    """`X-Timeout-Ms`, a positive integer of milliseconds, or None."""
    text = request.headers.get("x-timeout-ms")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 53):
        raise InvalidArgumentError(f"X-Timeout-Ms must be a positive integer, got {text!r:.80}")
    return int(text)


def asked_encoding(request: Request) -> Encoding:
    """`?encoding=`: how tensors of the answer are written."""
    if not request.scope["query_string"]:
        return "json"
    text = request.query_params.get("encoding", "json")
    if text not in _ENCODINGS:
        raise InvalidArgumentError(f"encoding must be one of {', '.join(_ENCODINGS)}, got {text!r}")
    return text  # type: ignore[return-value] # checked above
