"""What the processes of one server note for each other, and who removes their folder."""

from __future__ import annotations

import pathlib
import socket

import pytest

from runtime.errors import NotFoundError, OpError
from server.background.front_host import FrontHost
from server.processes.host_table import HostTable, WorkerState
from server.processes.session_ids import Place
from server.processes.worker_host import WorkerHost
from server.sessions.session_errors import SessionGoneError


@pytest.mark.parametrize(
    ("count", "slot", "is_orphan", "expected"),
    [
        (2, 0, False, False),  # the supervisor does
        (2, 0, True, True),
        (2, 2, True, False),  # the background process of a server whose first process has ended
        (2, 2, False, False),
        (1, 1, True, True),
        (1, 1, False, False),
    ],
)
def test_who_removes_the_folder(
    count: int, slot: int, is_orphan: bool, expected: bool, tmp_path: pathlib.Path
) -> None:
    host = WorkerHost(HostTable.create(count), Place(slot, 0), tmp_path)
    assert host.removes_sockets(is_orphan=is_orphan) is expected


def test_the_only_process_removes_the_folder() -> None:
    assert FrontHost(HostTable.create(1)).removes_sockets(is_orphan=False)


def test_a_process_that_leaves_its_row_is_draining(tmp_path: pathlib.Path) -> None:
    table = HostTable.create(2)
    host = WorkerHost(table, Place(2, 0), tmp_path)
    host.note_state(WorkerState.READY)
    assert host.has_background
    host.leave_row()
    assert table.background.state == WorkerState.DRAINING
    host.note_state(WorkerState.READY)
    assert table.background.state == WorkerState.DRAINING


def test_a_process_that_was_replaced_does_not_write_into_its_row(tmp_path: pathlib.Path) -> None:
    table = HostTable.create(2)
    host = WorkerHost(table, Place(2, 0), tmp_path)
    table.end(2, "ended")
    table.background.state = WorkerState.READY  # of the next one
    host.leave_row()
    assert table.background.state == WorkerState.READY


def test_a_process_listens_as_long_as_it_is_there(tmp_path: pathlib.Path) -> None:
    host = WorkerHost(HostTable.create(2), Place(0, 0), tmp_path)
    assert not host.listens(host.background)
    path = str(tmp_path / "2.0.http")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(0)
        assert all(host.listens(host.background) for _ in range(8))
    assert pathlib.Path(path).exists()
    assert not host.listens(host.background)


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("-1-1", None),
        ("-2-0", NotFoundError),  # the background process has not been started
        ("-0-0", SessionGoneError),
        ("-0-1", NotFoundError),  # it waits to be started
        ("-1-2", NotFoundError),
        ("-3-0", NotFoundError),
        ("", NotFoundError),
    ],
)
def test_whose_a_session_is(
    place: str, expected: type[OpError] | None, tmp_path: pathlib.Path
) -> None:
    table = HostTable.create(2)
    table.end(0, "ended")
    table.end(1, "ended")
    table.begin(1, 17)
    host = WorkerHost(table, Place(1, 7), tmp_path)
    session = "A" * 22 + place
    if expected is None:
        assert host.process_of(session).place == Place(1, 1)
        return
    with pytest.raises(expected):
        host.process_of(session)


def test_a_session_of_a_background_process_that_starts_is_there(tmp_path: pathlib.Path) -> None:
    table = HostTable.create(2)
    table.begin(2, 17)
    host = WorkerHost(table, Place(0, 0), tmp_path)
    assert host.process_of("A" * 22 + "-2-0").place == host.background
