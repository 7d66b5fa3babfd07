"""A call of an actor waits for as long as the actor answers anything."""

from __future__ import annotations

import asyncio
import errno

import pytest

from server.ray_sessions import silence
from server.ray_sessions.silence import ActorCalls, SilentError


class EndedError(Exception):
    """What says that the actor has ended."""


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

        assert await ActorCalls(probe, EndedError).answer_of(call) == "done"
        assert len(probes) == 3

    asyncio.run(run())


def test_an_actor_that_answers_nothing_is_silent() -> None:
    async def run() -> None:
        with pytest.raises(SilentError, match=r"No answer in 0\.02 s, nor to a ping"):
            await ActorCalls(Reference, EndedError).answer_of(Reference())

    asyncio.run(run())


def test_the_end_of_the_actor_ends_a_call_that_has_no_answer() -> None:
    async def run() -> None:
        call, probe = Reference(), Reference()
        probe.future.set_exception(EndedError("the actor has ended"))
        with pytest.raises(EndedError, match="the actor has ended"):
            await ActorCalls(lambda: probe, EndedError).answer_of(call)
        assert call.future.cancelled()

    asyncio.run(run())


@pytest.mark.parametrize("is_begun", [True, False])
def test_another_fault_of_a_probe_ends_no_call(is_begun: bool) -> None:
    async def run() -> None:
        call, asked = Reference(), 0

        def probe() -> Reference:
            nonlocal asked
            asked += 1
            if asked == 3:
                call.future.set_result("done")
            fault = OSError(errno.EMFILE, "Too many open files")
            if not is_begun:
                raise fault
            failed = Reference()
            failed.future.set_exception(fault)
            return failed

        assert await ActorCalls(probe, EndedError).answer_of(call) == "done"
        assert asked == 3

    asyncio.run(run())
