"""Plain requests: small, and without anything that changes how their step must run.

A plain request may be answered at once, in the callback that receives its last byte, without a task
and without the ASGI application. Whatever is unusual about a request makes it not plain; it is then
answered by the application, as every request may be.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple, TypeAlias

# A body of this length takes 0.1 ms to parse, and is parsed twice if its step is not short.
PLAIN_BODY_BYTES = 1 << 14
# The headers that change nothing about a step, and Content-Type, which `is_plain` looks at.
_PLAIN_HEADERS = frozenset({
    b"host", b"user-agent", b"accept", b"accept-encoding", b"accept-language", b"connection",
    b"content-type", b"content-length", b"x-request-id", b"x-forwarded-for", b"x-forwarded-proto",
})  # fmt: skip

# The content of a response; or a coroutine that writes it, when it is large and the step has run;
# or None, when nothing has been done and the request must be answered by the application.
ContentNow: TypeAlias = bytes | Coroutine[Any, Any, bytes] | None


class ResponseNow(NamedTuple):
    """A whole response."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class LateContent:
    """The content of a response that the application must await and send.

    It has the place of an endpoint: `__name__` is the name in metrics.
    """

    __slots__ = ("__name__", "content")

    def __init__(self, name: str, content: Coroutine[Any, Any, bytes]) -> None:
        self.__name__ = name
        self.content = content


# Takes the percent-encoded path, the headers and the body of a plain POST request. Never raises. If
# it returns a LateContent, the application must be called with it in the scope (LATE_CONTENT), and
# if it returns None, as for any other request.
AnswerNow: TypeAlias = Callable[
    [str, Mapping[bytes, bytes], bytes], ResponseNow | LateContent | None
]
LATE_CONTENT = "late_content"


def is_plain(headers: Mapping[bytes, bytes], size: int) -> bool:
    """Return whether a request with a body of `size` bytes is plain.

    Its body is then JSON that is not compressed, and its step has the default priority and the
    default deadline.
    """
    return (
        size < PLAIN_BODY_BYTES
        and headers.keys() <= _PLAIN_HEADERS
        and b"protobuf" not in headers.get(b"content-type", b"")
    )
