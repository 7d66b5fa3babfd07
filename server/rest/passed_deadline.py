"""The deadline of a request as the process knows it that passes the request on.

The process that has the session reads the whole request and keeps its deadline. This is for when
that process does not answer.
"""

from __future__ import annotations

import re

from server.codec.message_fields import timeout_of_run_step
from server.passed_calls import Body, PassedRequest, view_of
from server.rest.http_messages import is_protobuf

# Of a large body in JSON both ends are looked at: options stand before the feeds or after them.
_END_BYTES = 64 << 10
_OPTIONS = re.compile(
    rb'"options"\s*:\s*\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*?"timeout(?:_in_ms|InMs)"\s*:\s*"?([1-9]\d{0,15})\b'
)
_STEP = re.compile(rb"[^?]*:(run|partialRun|runCallable)(?:\?|\Z)")
_CALLABLE = b"runCallable"
_MOST_DIGITS = 15


def passed_deadline(
    request: PassedRequest, received_at: float, default_ms: int = 0
) -> float | None:
    """Return the deadline, an instant of `time.monotonic()`; None if there is none, or it may be.

    That is `options.timeout_in_ms`, or else the header `X-Timeout-Ms`, or else, of a step,
    `default_ms` milliseconds, if not 0. What is wrong with them is for the process that has the
    session. It alone knows the options of a callable, and those in a body that is compressed, which
    come first.
    """
    headers = dict(request.headers)
    milliseconds = 0
    step = _STEP.match(request.target) if request.method == "POST" else None
    if step is not None:
        if step[1] == _CALLABLE or b"content-encoding" in headers:
            return None
        if is_protobuf(headers):
            milliseconds = timeout_of_run_step(view_of(request.body))
        else:
            milliseconds = _timeout_of_json(request.body)
    if not milliseconds:
        told = headers.get(b"x-timeout-ms", b"")
        milliseconds = int(told) if told.isdigit() and len(told) <= _MOST_DIGITS else 0
    if not milliseconds and step is not None:
        milliseconds = default_ms
    return received_at + milliseconds / 1000 if milliseconds else None


def _timeout_of_json(body: Body) -> int:
    ends = (body,) if len(body) <= _END_BYTES else (body[:_END_BYTES], body[-_END_BYTES:])
    for each in ends:
        if found := _OPTIONS.search(view_of(each)):
            return int(found[1])
    return 0
