"""Which server a balanced request goes to, and which answers are right."""

from __future__ import annotations

import numpy as np
import pytest

from bench.mixed_load.clients import Balancer, check_line, is_refusal
from bench.mixed_load.sender import Address
from bench.soak.record import Failed, WrongAnswer

FIRST, SECOND = Address("http://first", "first"), Address("http://second", "second")


def test_the_second_server_gets_requests_while_it_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    states = iter([False, True, True, False])
    monkeypatch.setattr("bench.mixed_load.clients.answers_200", lambda url: next(states))
    balancer = Balancer(FIRST)
    assert balancer.choose() == FIRST
    assert not balancer.poll()  # there is no second server yet
    balancer.set_second(SECOND)
    assert balancer.choose() == FIRST
    assert not balancer.poll() and balancer.choose() == FIRST
    assert balancer.poll() and balancer.choose() == SECOND
    balancer.refused(SECOND)
    assert balancer.choose() == FIRST
    assert balancer.poll() and balancer.choose() == SECOND
    assert not balancer.poll() and balancer.choose() == FIRST


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        ("UNAVAILABLE", "The server is draining and takes no new work", True),
        ("503", "503 The server is draining and takes no new work", True),
        ("UNAVAILABLE", "failed to connect: Connection refused", True),
        ("REFUSED", "[Errno 111]", True),
        ("NOT_SENT", "BrokenPipeError", True),
        ("UNAVAILABLE", "Socket closed", False),  # what was taken must be answered
        ("NO_ANSWER", "RemoteDisconnected", False),
        ("503", "the queue is full", False),
        ("CANCELLED", "the server is draining", False),
    ],
)
def test_only_what_a_server_has_not_begun_is_sent_elsewhere(
    code: str, text: str, expected: bool
) -> None:
    assert is_refusal(Failed(code, text)) is expected


def test_the_answer_of_any_allowed_version_is_right() -> None:
    x = np.float32([2, 4])
    check_line([3, 4], x, frozenset({2.0}))
    check_line([3, 4], x, frozenset({1.0, 2.0}))
    for wrong in ([3.0, 5.0], [3.0], []):
        with pytest.raises(WrongAnswer, match="is not x / 2"):
            check_line(wrong, x, frozenset({1.0, 2.0}))
