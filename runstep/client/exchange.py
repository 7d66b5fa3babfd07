"""What a call sends and reads, without sockets: requests, answers, errors, and when to repeat.

A call is a generator that yields requests, gets their answers, and returns its result; the clients
only move bytes. So the blocking and the asyncio client can't differ.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Generator, Mapping
from typing import Any, TypeAlias, TypeVar

from runtime.errors import Code, OpError, UnavailableError, error_for_code

T = TypeVar("T")

JSON = {"Content-Type": "application/json"}
_REFUSED = (429, 503)
# With this, the message of an error names the node that failed, so the step had begun.
_NODE = b"[[{{node "
# The codes of answers that name none, as those below /v2; see docs/client.md.
_CODES = {
    400: Code.INVALID_ARGUMENT,
    401: Code.UNAUTHENTICATED,
    403: Code.PERMISSION_DENIED,
    404: Code.NOT_FOUND,
    405: Code.UNIMPLEMENTED,
    409: Code.ABORTED,
    410: Code.CANCELLED,
    413: Code.INVALID_ARGUMENT,
    415: Code.INVALID_ARGUMENT,
    429: Code.RESOURCE_EXHAUSTED,
    499: Code.CANCELLED,
    500: Code.INTERNAL,
    501: Code.UNIMPLEMENTED,
    502: Code.UNAVAILABLE,
    503: Code.UNAVAILABLE,
    504: Code.DEADLINE_EXCEEDED,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """One request. `timeout` is in seconds and includes the wait in the server's queues.

    `is_idempotent`: it may be sent again after a failure that leaves open whether it was done.
    `is_refusable`: it may be sent again after the server has refused it (429, 503).
    """

    method: str
    path: str
    content: bytes = b""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    timeout: float | None = None
    is_idempotent: bool = False
    is_refusable: bool = False

    def with_headers(self, headers: Mapping[str, str]) -> Request:
        """Return this request with further headers."""
        return dataclasses.replace(self, headers={**self.headers, **headers})


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        """Return the body as JSON; raise InternalError if it is none."""
        try:
            return json.loads(self.content)
        except ValueError:
            raise error_for_code(
                Code.INTERNAL, f"the answer is not JSON: {self.content[:200]!r}"
            ) from None


Steps: TypeAlias = Generator[Request, Answer, T]


def get(path: str, timeout: float | None = None) -> Request:
    """Return a GET, which may be repeated."""
    return Request("GET", path, timeout=timeout, is_idempotent=True, is_refusable=True)


def post(path: str, body: object, timeout: float | None = None, *, refusable: bool) -> Request:
    """Return a POST of JSON; raise InvalidArgumentError if `body` can't be JSON."""
    try:
        content = json.dumps(body).encode()
    except (TypeError, ValueError) as error:
        raise error_for_code(
            Code.INVALID_ARGUMENT, f"the request can't be written as JSON: {error}"
        ) from None
    return Request("POST", path, content, JSON, timeout, is_refusable=refusable)


def priority_header(priority: str | None) -> dict[str, str]:
    """Return the header by which a server knows a priority before it has read the body.

    The body names it too, and decides.
    """
    if priority is None or not (priority.isascii() and priority.isprintable() and priority):
        return {}
    return {"X-Priority": priority}


def check(answer: Answer) -> Answer:
    """Return the answer if it is a success; raise its error, with its code and request id, if not.

    The error has the attributes `request_id` (`X-Request-Id`, or "") and `status`.
    """
    if answer.status // 100 == 2:
        return answer
    text, name = answer.content[:2000].decode(errors="replace"), ""
    try:
        body = json.loads(answer.content)
        text, name = str(body["error"]), str(body.get("code", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        text = text or f"HTTP status {answer.status}"
    code = Code[name] if name in Code.__members__ else _CODES.get(answer.status, Code.UNKNOWN)
    error: Any = error_for_code(code, text)
    error.request_id = answer.headers.get("x-request-id", "")
    error.status = answer.status
    raise error


def unreachable(url: str, error: Exception) -> OpError:
    """Return the error of a server that can't be reached."""
    return UnavailableError(f"{url} can't be reached: {error or type(error).__name__}")


@dataclasses.dataclass(frozen=True, slots=True)
class Retries:
    """How often a request is sent, and the pauses in between, in seconds.

    A request is sent again only if that is safe: if it was never sent, because no connection was
    made; if it was refused with 429 or 503 before it began and may be (a prediction, never a step
    of a session, which may have changed state before it failed); or if it only reads. An error
    that names a node, or has no `Retry-After`, is not taken for a refusal before the beginning.
    """

    attempts: int = 3
    first_pause: float = 0.1
    longest_pause: float = 5.0

    def pause_after_answer(
        self, attempt: int, request: Request, answer: Answer, seconds_left: float
    ) -> float | None:
        """Return the pause after attempt `attempt`, from 1; None if the answer is the last.

        `Retry-After` counts, up to `longest_pause`.
        """
        after = answer.headers.get("retry-after", "")
        if answer.status not in _REFUSED or not request.is_refusable:
            return None
        if not request.is_idempotent and (not after or _NODE in answer.content):
            return None
        return self._pause(attempt, float(after) if after.isdecimal() else 0.0, seconds_left)

    def pause_after_failure(
        self, attempt: int, request: Request, seconds_left: float, *, was_sent: bool
    ) -> float | None:
        """Return the pause after there was no answer; None if the request is not sent again."""
        if was_sent and not request.is_idempotent:
            return None
        return self._pause(attempt, 0.0, seconds_left)

    def _pause(self, attempt: int, least: float, seconds_left: float) -> float | None:
        pause = min(max(self.first_pause * 2 ** (attempt - 1), least), self.longest_pause)
        return pause if attempt < self.attempts and pause < seconds_left else None
