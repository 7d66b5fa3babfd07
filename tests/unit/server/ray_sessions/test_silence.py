"""A call of an actor waits for as long as the actor answers anything."""

from __future__ import annotations

import asyncio

import pytest

from server.ray_sessions import silence
from server.ray_sessions.silence import ActorCalls, SilentError


class Reference:
    """A call, whose end a test decides."""

    def __init__(self) -> None:
        self.future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def as_future(self) -> asyncio.Future[str]:
        """The future that is waited for."""
        return self.future


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "QUIET_SECONDS", 0.01)
    monkeypatch.setattr(silence, "PROBE_SECONDS", 0.01)


def test_an_actor_that_answers_is_waited_for() -> None:
    async def run() -> None:
        call, probes = Reference(), list[Reference]()

        def probe() -> Reference:
            probes.append(Reference())
            probes[-1].future.set_result("here")
            if len(probes) == 3:
                call.future.set_result("done")
            return probes[-1]

        assert await ActorCalls(probe).answer_of(call) == "done"
        assert len(probes) == 3

    asyncio.run(run())


def test_an_actor_that_answers_nothing_is_silent() -> None:
    async def run() -> None:
        with pytest.raises(SilentError, match=r"No answer in 0\.02 s, nor to a ping"):
            await ActorCalls(Reference).answer_of(Reference())

    asyncio.run(run())


def test_what_a_probe_raises_ends_a_call_that_has_no_answer() -> None:
    async def run() -> None:
        call, probe = Reference(), Reference()
        probe.future.set_exception(ConnectionError("the actor has ended"))
        with pytest.raises(ConnectionError, match="the actor has ended"):
            await ActorCalls(lambda: probe).answer_of(call)
        assert call.future.cancelled()

    asyncio.run(run())
