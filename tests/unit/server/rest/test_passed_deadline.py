"""The deadline of a request that is passed on, without reading all of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pytest

import protos as pb
from server.passed_calls import PassedRequest, passed_body
from server.rest.passed_deadline import passed_deadline

RUN = b"/v1/sessions/x-r0123456789ab:run?encoding=base64"
HEADER = (b"x-timeout-ms", b"2000")
PROTOBUF = (b"content-type", b"application/x-protobuf")
LARGE = [0.5] * 100_000


def seconds(
    body: Any = b"",
    *headers: tuple[bytes, bytes],
    target: bytes = RUN,
    method: str = "POST",
    default_ms: int = 0,
) -> float | None:
    """How long a request may take."""
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    request = PassedRequest(method, target, [*headers], passed_body([content]))
    deadline = passed_deadline(request, 100, default_ms)
    return None if deadline is None else deadline - 100


@pytest.mark.parametrize(
    "body",
    [
        {"options": {"timeout_in_ms": 1500}},
        {"options": {"timeoutInMs": "1500", "trace_level": 3}},
        {"options": {"experimental": {"run_handler_pool_options": {}}, "timeout_in_ms": 1500}},
        {"options": {"timeout_in_ms": 1500}, "feeds": {"x": LARGE}},
        {"feeds": {"x": LARGE}, "options": {"timeout_in_ms": 1500}},
    ],
)
def test_options_in_json_come_before_the_header(body: Any) -> None:
    assert seconds(body) == seconds(body, HEADER) == 1.5
    assert seconds(body, target=RUN.replace(b":run", b":partialRun")) == 1.5


def test_options_in_messages_come_before_the_header() -> None:
    message = pb.RunStepRequest(options=pb.RunOptions(timeout_in_ms=1500))
    message.feed.add(name="x").tensor.tensor_content = np.zeros(100_000, np.uint8).tobytes()
    assert seconds(message.SerializeToString(), PROTOBUF, HEADER) == 1.5
    assert seconds(b"\xff", PROTOBUF, HEADER) == 2


@pytest.mark.parametrize(
    "body",
    [
        b"",
        {"options": {"timeout_in_ms": 0}},
        {"options": {"timeout_in_ms": -5}},
        {"options": {"trace_level": 3}, "feeds": {"timeout_in_ms": 5}},
        {"feeds": {"x": '"options": {"timeout_in_ms": 5}'}},
    ],
)
def test_the_header_holds_without_options(body: Any) -> None:
    assert seconds(body, HEADER) == 2
    assert seconds(body) is None


def test_other_calls_have_no_options() -> None:
    body = {"config": {}, "options": {"timeout_in_ms": 1500}}
    assert seconds(body, target=b"/v1/sessions") is None
    assert seconds(body, HEADER, target=b"/v1/sessions") == 2
    assert seconds(b"", HEADER, target=RUN, method="GET") == 2


def test_options_that_are_not_seen_here_may_come_before_the_header() -> None:
    for headers in ((), (HEADER,), (HEADER, PROTOBUF)):
        assert (
            seconds(b"\x1f\x8b", *headers, (b"content-encoding", b"gzip"), default_ms=500) is None
        )
        callable_of = RUN.replace(b":run", b":runCallable")
        assert seconds({"handle": 1}, *headers, target=callable_of, default_ms=500) is None


def test_the_timeout_of_the_session_comes_last() -> None:
    assert seconds({}, default_ms=500) == 0.5
    assert seconds({}, HEADER, default_ms=500) == 2
    assert seconds({"options": {"timeout_in_ms": 1500}}, HEADER, default_ms=500) == 1.5
    assert seconds({}, target=RUN.replace(b":run", b":partialRun"), default_ms=500) == 0.5
    assert seconds(b"", PROTOBUF, default_ms=500) == 0.5


def test_what_runs_no_step_has_not_the_timeout_of_the_session() -> None:
    for call in (b":extend", b":close", b":makeCallable", b""):
        assert seconds({}, target=RUN.replace(b":run", call), default_ms=500) is None
    assert seconds(b"", target=RUN, method="GET", default_ms=500) is None


@pytest.mark.parametrize("told", [b"", b"0", b"-1", b"1.5", b"x", b"9" * 4000])
def test_what_is_wrong_is_for_the_host(told: bytes) -> None:
    assert seconds(b"{", (b"x-timeout-ms", told)) is None
