"""Where sessions of low priority are opened, by what is known of the background process."""

from __future__ import annotations

import asyncio
import time
import types
from typing import Any

import pytest

from runtime.errors import UnavailableError
from server.processes.session_ids import Place
from server.rest import sessions_elsewhere
from server.rest.sessions_elsewhere import BackgroundOpening, OpeningPaths
from server.sessions.session_errors import SessionGoneError

LOW = [(b"x-priority", b"low")]
START_SECONDS = 0.3


class Host:
    """A host whose background process serves after some looks, unless its start `is_put_off`.

    If it was killed, it does not listen although its row says that it serves.
    """

    background = Place(1, 2)

    def __init__(self, looks: float, *, is_put_off: bool = False, was_killed: bool = False) -> None:
        self._looks = looks
        self._was_killed = self.has_background = was_killed
        self.wanted = 0
        row = types.SimpleNamespace(is_put_off=int(is_put_off))
        self.table = types.SimpleNamespace(background=row)

    def want_background(self) -> None:
        self.wanted += 1

    def listens(self, place: Place) -> bool:
        return place == self.background and not self._was_killed

    @property
    def background_answers(self) -> bool:
        self._looks -= 1
        return self._looks < 0


class Calls:
    """Notes the process to which a request was passed on."""

    def __init__(self, error: Exception | None = None) -> None:
        self.passed: list[Any] = []
        self._error = error

    async def pass_on(self, process: Place, *_: Any) -> None:
        self.passed.append(process)
        if self._error is not None:
            raise self._error


def opened(host: Host, calls: Calls, monkeypatch: pytest.MonkeyPatch, **scope: Any) -> list[str]:
    """The applications of this process that a request came to."""
    seen: list[str] = []

    async def app(scope: Any, *_: Any) -> None:
        seen.append(scope["method"])

    monkeypatch.setattr(sessions_elsewhere, "SessionCalls", lambda host: calls)
    monkeypatch.setattr(sessions_elsewhere, "_NOTICE_SECONDS", 0.05)
    monkeypatch.setattr(sessions_elsewhere, "_START_SECONDS", START_SECONDS)
    opening = BackgroundOpening(host, app, {"low"})  # type: ignore[arg-type] # for this
    asyncio.run(opening({"method": "POST", "headers": LOW, **scope}, None, None))  # type: ignore[arg-type] # not used
    return seen


@pytest.mark.parametrize("looks", [0, 3])
def test_a_session_is_opened_there_once_it_serves(
    looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, calls = Host(looks), Calls()
    assert not opened(host, calls, monkeypatch)
    assert calls.passed == [Place(1, 2)]
    assert host.wanted == 1


@pytest.mark.parametrize("is_put_off", [True, False], ids=["at once", "after a while"])
def test_a_session_is_opened_here_if_it_does_not_come(
    is_put_off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, begun = Calls(), time.monotonic()
    assert opened(Host(float("inf"), is_put_off=is_put_off), calls, monkeypatch) == ["POST"]
    assert not calls.passed
    assert is_put_off or time.monotonic() - begun >= START_SECONDS


def test_a_session_is_opened_here_if_the_process_was_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = Calls()
    assert opened(Host(0, was_killed=True), calls, monkeypatch) == ["POST"]
    assert not calls.passed


@pytest.mark.parametrize(
    "scope",
    [
        {"headers": []},
        {"headers": [(b"x-priority", b"normal")]},
        {"headers": [*LOW, (b"x-priority", b"normal")]},
        {"method": "GET"},
    ],
)
def test_other_requests_start_nothing(
    scope: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    host, calls = Host(0), Calls()
    assert opened(host, calls, monkeypatch, **scope) == [scope.get("method", "POST")]
    assert not calls.passed and not host.wanted


def test_an_end_meanwhile_is_no_lost_session(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(SessionGoneError("Session has been lost"))
    with pytest.raises(UnavailableError, match="ended while it opened"):
        opened(Host(0), calls, monkeypatch)


@pytest.mark.parametrize(
    ("path", "matches"),
    [
        ("/v1/sessions", True),
        ("/v1/sessions/", True),
        ("/v1/sessions/abc", False),
        ("/v1/models", False),
    ],
)
def test_paths(path: str, matches: bool) -> None:
    assert OpeningPaths().match(path) is matches
