"""An application that is made late is made once, and not on the event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from server.rest.late_app import LateApp


async def call(app: LateApp, scope: dict[str, object]) -> None:
    async def receive() -> dict[str, object]:
        return {}

    async def send(_: object) -> None:
        pass

    await app(scope, receive, send)


def test_the_first_requests_make_it_once_in_another_thread():
    made, seen = [], []

    async def answer(scope, receive, send):
        seen.append(scope["path"])

    def make():
        made.append(threading.current_thread())
        return answer

    async def scenario():
        app = LateApp(make)
        await asyncio.gather(*(call(app, {"path": path}) for path in ("a", "b", "c")))

    asyncio.run(scenario())
    assert sorted(seen) == ["a", "b", "c"]
    assert len(made) == 1 and made[0] is not threading.main_thread()


def test_a_prepared_one_answers_without_a_thread(monkeypatch):
    seen = []

    async def answer(scope, receive, send):
        seen.append(scope)

    app = LateApp(lambda: answer)
    assert app.prepare() is app.prepare() is answer
    monkeypatch.setattr(asyncio, "to_thread", None)
    asyncio.run(call(app, {"path": "a"}))
    assert seen == [{"path": "a"}]


def test_the_error_of_one_that_cannot_be_made_is_that_of_each_request():
    tries = []

    def make():
        tries.append(1)
        raise ImportError("No module named 'fastapi'")

    app = LateApp(make)
    for _ in range(2):
        with pytest.raises(ImportError, match="No module named 'fastapi'"):
            asyncio.run(call(app, {}))
    assert len(tries) == 2
