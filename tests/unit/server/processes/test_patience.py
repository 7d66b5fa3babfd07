"""A call waits for another process as long as that runs, and until the deadline of the call."""

from __future__ import annotations

import asyncio
import time

import pytest

from runtime.errors import DeadlineExceededError, UnavailableError
from server.processes import beats, patience
from server.processes.beats import SILENT_SECONDS, beat_now
from server.processes.host_table import Row
from server.processes.patience import Patience
from server.processes.session_ids import Place

PLACE = Place(1, 4)
SILENT = round(SILENT_SECONDS * 1000)


def row(age_ms: int, generation: int = 4) -> Row:
    return Row(beat=beat_now() - age_ms, generation=generation)


@pytest.mark.parametrize(
    ("age_ms", "generation"),
    [(0, 4), (SILENT - 5000, 4), (SILENT, 5)],  # the last one is that of the next process
)
def test_a_process_that_runs_is_waited_for(age_ms: int, generation: int) -> None:
    waiting = Patience(row(age_ms, generation), PLACE)
    for _ in range(10):
        waiting.check()


def test_a_process_that_starts_is_waited_for() -> None:
    waiting = Patience(Row(beat=0, generation=4), PLACE)
    for _ in range(10):
        waiting.check()


def test_a_process_that_does_not_run_is_named() -> None:
    waiting = Patience(row(SILENT), PLACE)
    waiting.check()
    text = "^Process 1 of the server does not answer: its event loop has not run for 10 s$"
    with pytest.raises(UnavailableError, match=text):
        waiting.check()


def test_after_a_stall_of_the_machine_a_process_has_a_moment() -> None:
    stalled = row(SILENT)
    waiting = Patience(stalled, PLACE)
    waiting.check()
    stalled.beat = beat_now()
    waiting.check()
    stalled.beat -= SILENT
    waiting.check()


def test_a_deadline_is_kept_for_a_process_that_does_not() -> None:
    now = time.monotonic()
    Patience(row(0), PLACE, lambda: now + 10).check()
    Patience(row(0), PLACE, lambda: now - 0.1).check()  # the process may say so itself
    with pytest.raises(DeadlineExceededError, match="too late"):
        Patience(row(0), PLACE, lambda: now - 1, "too late").check()


def test_an_answer_ends_the_wait_and_the_end_of_the_wait_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patience, "LOOK_SECONDS", 0.01)

    async def run() -> None:
        call: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        call.set_result("answer")
        assert await Patience(row(SILENT), PLACE).answer_of(call) == "answer"
        call = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.05, call.set_result, "later")
        assert await Patience(row(0), PLACE).answer_of(call) == "later"
        call = asyncio.get_running_loop().create_future()
        with pytest.raises(UnavailableError, match="does not answer"):
            await Patience(row(SILENT), PLACE).answer_of(call)
        assert call.cancelled()

    asyncio.run(run())


def test_a_process_beats_before_the_second_look() -> None:
    assert 2 * beats.BEAT_SECONDS <= patience.LOOK_SECONDS
    assert beats.LATE_SECONDS < SILENT_SECONDS < beats.HUNG_SECONDS
