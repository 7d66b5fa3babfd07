"""What the processes of one server note for each other, and who removes their folder."""

from __future__ import annotations

import asyncio
import pathlib
import socket

import pytest

from runtime.errors import DeadlineExceededError, NotFoundError, OpError, UnavailableError
from server.background.front_host import FrontHost
from server.processes import patience
from server.processes.beats import LATE_SECONDS, SILENT_SECONDS, beat_now
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


def test_a_background_process_whose_loop_does_not_run_is_handed_nothing(
    tmp_path: pathlib.Path,
) -> None:
    table = HostTable.create(1)
    host = WorkerHost(table, Place(0, 0), tmp_path)
    assert not host.background_answers
    table.background.state = WorkerState.READY
    assert host.background_answers
    table.background.beat = beat_now()
    assert host.background_answers
    table.background.beat -= round(LATE_SECONDS * 1000)
    assert not host.background_answers
    assert host.has_background  # its sessions are still there


def test_a_process_whose_loop_does_not_run_is_not_ready(tmp_path: pathlib.Path) -> None:
    table = HostTable.create(3)
    host = WorkerHost(table, Place(0, 0), tmp_path)
    for row, age in zip(table.workers, (SILENT_SECONDS, SILENT_SECONDS, 1.0), strict=True):
        row.state, row.beat = WorkerState.READY, beat_now() - round(age * 1000)
    assert host.not_ready() == ["process 1 does not answer"]
    table.end(1, "was killed")
    assert host.not_ready() == ["process 1 is ended"]


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
        assert host.process_of(session) == Place(1, 1)
        return
    with pytest.raises(expected):
        host.process_of(session)


def test_a_session_of_a_background_process_that_starts_is_there(tmp_path: pathlib.Path) -> None:
    table = HostTable.create(2)
    table.begin(2, 17)
    host = WorkerHost(table, Place(0, 0), tmp_path)
    assert host.process_of("A" * 22 + "-2-0") == host.background


def host_beside(
    silent_seconds: float, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> WorkerHost:
    """An impatient process beside one that has been silent for some time."""
    monkeypatch.setattr(patience, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(patience, "_GRACE_SECONDS", 0.0)
    table = HostTable.create(2)
    table.begin(1, 1)
    table.rows[1].beat = beat_now() - round(silent_seconds * 1000)
    return WorkerHost(table, Place(0, 0), folder)


@pytest.mark.parametrize(
    ("silent_seconds", "timeout_seconds", "error", "text"),
    [
        (SILENT_SECONDS, None, UnavailableError, "Process 1 of the server does not answer"),
        (SILENT_SECONDS / 2, 0.1, DeadlineExceededError, "Process 1 of the server did not answer"),
    ],
)
def test_a_change_is_not_kept_waiting_by_a_process_that_hangs(
    silent_seconds: float,
    timeout_seconds: float | None,
    error: type[OpError],
    text: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = host_beside(silent_seconds, tmp_path, monkeypatch)

    async def run() -> None:
        with pytest.raises(error, match=text):
            await host.tell({"unload": "model"}, timeout_seconds)
        await host.close()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "1.0.http"))
        listener.listen()
        asyncio.run(run())


def test_a_process_that_runs_keeps_the_deadline_of_a_change(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = host_beside(0.0, tmp_path, monkeypatch)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.15)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async def run() -> None:
        async with await asyncio.start_unix_server(answer, tmp_path / "1.0.http"):
            await host.tell({"unload": "model"}, 0.05)
            await host.close()

    asyncio.run(run())
