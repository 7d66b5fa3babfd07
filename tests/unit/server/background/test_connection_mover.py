"""Which connections are handed over, and what has the background process started."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from server.background import connection_mover
from server.background.connection_mover import MOST_TIMES, ConnectionMover
from server.connections.connection_limits import Moved
from server.processes.host_table import HostTable, WorkerState
from server.processes.session_ids import Place

HERE, THERE = Place(0, 0), Place(1, 4)
LOW, NORMAL = b"low", b"normal"


class Host:
    def __init__(self, place: Place, *, has_background: bool = True, count: int = 1) -> None:
        self.table = HostTable.create(count)
        self.place, self.background = place, THERE
        self.is_background, self.background_answers = place == THERE, has_background
        self.wanted = 0

    def want_background(self) -> None:
        self.wanted += 1

    def place_in(self, slot: int) -> Place:
        return Place(slot, 0)

    def moved_path_of(self, place: Place) -> pathlib.Path:
        return pathlib.Path(f"{place.slot}.{place.generation}")


class Heads:
    def is_background(self, data: bytes) -> bool:
        return data == LOW


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []

    def send(path: pathlib.Path, descriptor: int, moved: Moved) -> bool:
        seen.append((str(path), descriptor, moved))
        return True

    monkeypatch.setattr(connection_mover, "send_connection", send)
    return seen


def mover_of(host: Host) -> ConnectionMover:
    return ConnectionMover(host, Heads())  # type: ignore[arg-type] # for this


@pytest.mark.parametrize(
    ("place", "data", "before", "expected"),
    [
        (HERE, LOW, None, ("1.4", 7, Moved(LOW, 1, 0))),
        (HERE, LOW, Moved(b"", 5, 1), ("1.4", 7, Moved(LOW, 6, 0))),
        (HERE, LOW, Moved(b"", MOST_TIMES, 1), None),
        (HERE, NORMAL, None, None),
        (THERE, NORMAL, Moved(b"", 1, 0), ("0.0", 7, Moved(NORMAL, 2, 1))),
        (THERE, b"", Moved(b"", 1, 0), ("0.0", 7, Moved(b"", 2, 1))),
        (THERE, NORMAL, Moved(b"", MOST_TIMES, 0), ("0.0", 7, Moved(NORMAL, MOST_TIMES + 1, 1))),
        (THERE, NORMAL, None, None),
    ],
)
def test_where_a_connection_goes(
    place: Place, data: bytes, before: Moved | None, expected: Any, sent: list[Any]
) -> None:
    assert mover_of(Host(place)).move(7, data, before) is (expected is not None)
    assert sent == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ((WorkerState.READY, WorkerState.READY, WorkerState.READY), [1, 0, 2]),
        ((WorkerState.READY, WorkerState.ENDED, WorkerState.READY), [0, 2]),
        ((WorkerState.STARTING, WorkerState.STARTING, WorkerState.READY), [2, 1, 0]),
        ((WorkerState.DRAINING, WorkerState.READY, WorkerState.STARTING), [1, 2]),
        ((WorkerState.DRAINING, WorkerState.DRAINING, WorkerState.ENDED), []),
    ],
)
def test_it_goes_back_to_a_process_that_serves(
    states: tuple[WorkerState, ...], expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second process handed it over; here none of them receives it."""
    asked: list[str] = []
    monkeypatch.setattr(
        connection_mover, "send_connection", lambda path, *_: asked.append(str(path))
    )
    host = Host(Place(3, 0), count=3)
    host.is_background = True
    for row, state in zip(host.table.workers, states, strict=True):
        row.state = state
    assert not mover_of(host).move(7, NORMAL, Moved(b"", 1, 1))
    assert asked == [f"{slot}.0" for slot in expected]


def test_what_belongs_to_the_background_process_is_answered_there() -> None:
    mover = mover_of(Host(THERE))
    assert mover.belongs_here(LOW)
    assert not mover.belongs_here(NORMAL)


def test_it_stays_while_there_is_no_background_process(sent: list[Any]) -> None:
    host = Host(HERE, has_background=False)
    mover = mover_of(host)
    mover.want_background()  # a step by gRPC, or with the priority in its body
    assert not mover.move(7, NORMAL, None)
    mover.want_background()
    assert host.wanted == 0
    assert not mover.move(7, LOW, None)
    assert host.wanted == 0  # the head may come from anybody
    mover.want_background()
    assert host.wanted == 1
    assert sent == []
