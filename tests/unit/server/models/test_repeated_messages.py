"""A message that repeats is one line, and then a count."""

from __future__ import annotations

import logging

import pytest

from server.models.repeated_messages import RepeatedMessages

LOGGER = logging.getLogger("server.models.repeated")


def test_repetitions_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    messages = RepeatedMessages(LOGGER)
    for _ in range(120):
        messages.log("m", logging.ERROR, "gone")
    messages.log("n", logging.WARNING, "other")
    assert caplog.messages == ["gone", "gone (10 times)", "gone (100 times)", "other"]


def test_the_end_is_logged_if_there_were_repetitions(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    messages = RepeatedMessages(LOGGER)
    messages.log("m", logging.ERROR, "once")
    messages.over("m")
    for _ in range(3):
        messages.log("m", logging.ERROR, "gone")
    messages.over("m")
    messages.over("m")
    messages.log("m", logging.ERROR, "gone")
    assert caplog.messages == ["once", "gone", "Over after 3 times: gone", "gone"]


def test_another_text_is_logged_at_once(caplog: pytest.LogCaptureFixture) -> None:
    messages = RepeatedMessages(LOGGER)
    for text in ("a", "b", "b", "a"):
        messages.log("m", logging.ERROR, text)
    assert caplog.messages == ["a", "b", "a"]
