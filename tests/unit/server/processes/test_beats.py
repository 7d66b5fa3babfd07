"""A process is killed when it has shown for long that it does not run, and never wrongly."""

from __future__ import annotations

import pytest

from server.processes import beats
from server.processes.beats import HUNG_SECONDS, BeatWatch, seconds_since_beat
from server.processes.host_table import Row, WorkerState

LOOK = 0.1
LOOKS = round(HUNG_SECONDS / LOOK)


class Watched:
    """A process, and who looks at it."""

    def __init__(self, state: WorkerState = WorkerState.READY) -> None:
        self.row, self.watch, self.now = Row(beat=1, state=state), BeatWatch(), 1000.0
        self.watch.look(self.row, self.now)

    def hangs(self, looks: int = 1, seconds: float = LOOK) -> bool:
        found = False
        for _ in range(looks):
            self.now += seconds
            found = self.watch.look(self.row, self.now) or found
        return found


@pytest.mark.parametrize("state", [WorkerState.READY, WorkerState.DRAINING])
def test_a_process_without_beats_hangs_once(state: WorkerState) -> None:
    watched = Watched(state)
    assert watched.watch.how_it_ended(-9) == "was killed by signal 9"
    assert not watched.hangs(LOOKS - 2)
    assert watched.hangs(4)
    watched.row.beat += 1  # at the last moment
    assert not watched.hangs(2 * LOOKS)  # it is killed once
    assert watched.watch.how_it_ended(-9) == "did not answer for 60 s and was killed"


def test_a_beat_begins_the_time_again() -> None:
    watched = Watched()
    for _ in range(3):
        assert not watched.hangs(LOOKS - 2)
        watched.row.beat += 1
    assert not watched.hangs(LOOKS - 2)


@pytest.mark.parametrize("state", [WorkerState.STARTING, WorkerState.ENDED])
def test_a_process_that_starts_may_take_long(state: WorkerState) -> None:
    watched = Watched(state)
    assert not watched.hangs(3 * LOOKS)
    watched.row.state = WorkerState.READY
    assert not watched.hangs(LOOKS - 2)


def test_time_in_which_the_supervising_process_did_not_run_does_not_count() -> None:
    watched = Watched()
    assert not watched.hangs(LOOKS - 2)
    assert not watched.hangs(seconds=3600)
    assert not watched.hangs(LOOKS - 2)
    assert watched.hangs(4)


def test_how_long_ago_a_beat_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beats, "beat_now", lambda: 10_000)
    assert seconds_since_beat(Row(beat=9_750)) == 0.25
    assert seconds_since_beat(Row(beat=0)) == 0.0
