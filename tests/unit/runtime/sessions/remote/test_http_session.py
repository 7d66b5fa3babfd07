"""Steps of an HTTP session that are cancelled, or started while the session is closed."""

from __future__ import annotations

import queue
import threading
from typing import Any

import pytest

from runtime.api import CancelledError, RunRequest, SessionOptions
from runtime.framework.cancellation import CancellationManager
from runtime.sessions.remote.http_session import HttpSession


@pytest.fixture
def session() -> HttpSession:
    return HttpSession(SessionOptions(target="http://127.0.0.1:1"))


class CancelledMeanwhile(CancellationManager):
    """Cancelled between the registration of a callback and the check after it."""

    def check(self) -> None:
        self.cancel(CancelledError("cancelled meanwhile"))
        super().check()


def test_a_step_that_is_cancelled_before_it_is_sent_is_not_cancelled_in_the_server(
    session: HttpSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelling: queue.SimpleQueue[threading.Event] = queue.SimpleQueue()
    monkeypatch.setattr(
        session._transport,
        "cancel_step",
        lambda path, request_id, answered: cancelling.put(answered),
    )
    with (
        pytest.raises(CancelledError, match=r"^cancelled meanwhile$"),
        session._cancelling(CancelledMeanwhile(), "handle", "request"),
    ):
        raise AssertionError("the step is not sent")
    assert cancelling.get(timeout=30).is_set()


def test_a_step_that_starts_while_the_session_is_closed(
    session: HttpSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_open = session._check_open

    def check_and_close(*_: Any) -> None:
        check_open()
        session.close()

    monkeypatch.setattr(session, "_check_open", check_and_close)
    future = session.run_async(RunRequest({}, ["x"]))
    with pytest.raises(CancelledError, match=r"^Session has been closed\.$"):
        future.result(30)
