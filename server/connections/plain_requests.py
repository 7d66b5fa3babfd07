"""Plain requests: small, and without anything that changes how their step must run.

A plain request may be answered at once, in the callback that receives its last byte, without a task
and without the ASGI application. Whatever is unusual about a request makes it not plain; it is then
answered by the application, as every request may be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

# A body of this length takes 0.1 ms to parse, and is parsed twice if its step is not short.
PLAIN_BODY_BYTES = 1 << 14
# The headers that change nothing about a step, and Content-Type, which `is_plain` looks at. Those
# with credentials tell who the caller is: `Access.plain_caller` looks at them where it matters.
_PLAIN_HEADERS = frozenset({
    b"host", b"user-agent", b"accept", b"accept-encoding", b"accept-language", b"connection",
    b"content-type", b"content-length", b"x-request-id", b"x-forwarded-for", b"x-forwarded-proto",
    b"authorization", b"x-api-key", b"inference-header-content-length", b"x-session-affinity",
})  # fmt: skip

_END_OF_HEAD = b"\r\n\r\n"
# No other line ends, no folded lines, no empty lines: the head ends where a parser says it does.
_HEAD = re.compile(rb"POST [!-~]+ HTTP/1\.1\r\n(?:[!#-'*+.0-9A-Z^-z|~-]+:[^\r\n\0]*\r\n)+\r\n")
_MAX_HEAD = 2048  # bytes
MAX_HEADS = 1024


class ContentWithHeaders(NamedTuple):
    """The body of a response, and its headers except Content-Length."""

    body: bytes
    headers: Sequence[tuple[bytes, bytes]]


# The JSON of a response; or a coroutine that writes it, when it is large and the step has run; or
# None, when nothing has been done and the request must be answered by the application.
ContentNow: TypeAlias = bytes | Coroutine[Any, Any, bytes] | None
# The same with other headers than JSON has.
AnyContentNow: TypeAlias = ContentNow | ContentWithHeaders | Coroutine[Any, Any, ContentWithHeaders]
# Takes the percent-encoded path, the headers and the body of a plain POST request of one API.
# Raises the error of the response.
AnswerPlain: TypeAlias = Callable[[str, Mapping[bytes, bytes], bytes], AnyContentNow]


class ResponseNow(NamedTuple):
    """A whole response; `text` has its headers, but not those of every response, and its body."""

    status: int
    text: bytes


class LateContent:
    """The content of a response that the application must await and send.

    It has the place of an endpoint: `__name__` is the name in metrics.
    """

    __slots__ = ("__name__", "content")

    def __init__(self, name: str, content: Coroutine[Any, Any, bytes | ContentWithHeaders]) -> None:
        self.__name__ = name
        self.content = content


# Takes the percent-encoded path, the headers and the body of a plain POST request. Never raises. If
# it returns a LateContent, the application must be called with it in the scope (LATE_CONTENT), and
# if it returns None, as for any other request.
AnswerNow: TypeAlias = Callable[
    [str, Mapping[bytes, bytes], bytes], ResponseNow | LateContent | None
]
LATE_CONTENT = "late_content"


class PlainHead(NamedTuple):
    """The head of a plain request that has been parsed; `length` is that of the body."""

    path: str
    headers: Mapping[bytes, bytes]
    length: int


class KnownHeads:
    """The heads of plain requests that were parsed before, by their bytes.

    A client sends the same head again and again, and equal bytes mean the same.
    """

    def __init__(self) -> None:
        self._heads: dict[bytes, PlainHead] = {}

    def find(self, data: bytes) -> tuple[PlainHead, bytes] | None:
        """Return the known head and the body of `data`, if that is one whole request."""
        end = data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
        head = self._heads.get(data[:end])
        if head is None or len(data) != end + head.length:
            return None
        return head, data[end:]

    def add(self, data: bytes, head: PlainHead) -> None:
        """Remember the head of `data`, if that is one whole request of an ordinary form."""
        end = data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
        if end + head.length == len(data) and end <= _MAX_HEAD and _HEAD.fullmatch(data, 0, end):
            if len(self._heads) >= MAX_HEADS:
                self._heads.clear()
            self._heads[data[:end]] = head


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
