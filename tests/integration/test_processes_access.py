"""Owners of a server of several processes: sessions, listings and limits are the host's."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import signal
from collections.abc import Iterator

import httpx
import pytest

from server.access.owner_cells import OwnerCell
from server.processes.host_table import OWNERS as CELLS
from server.processes.host_table import HostTable
from server.rest.session_docs import half_plus_two_graph
from tests.integration.access import OWNERS, bearer, write_keys
from tests.integration.rest_server import RUN_Y, check_error, encoded
from tests.integration.server_process import ServerProcess
from tests.integration.test_processes import afresh, config_file, place, wait_until, workers_of

LIMITED = {
    "alice": OWNERS["alice"] | {"limits": {"sessions": 6}},
    "bob": OWNERS["bob"] | {"limits": {"requests_per_second": 0.01}},
    "root": OWNERS["root"],
    "reader": OWNERS["reader"],
    "carol": OWNERS["bob"],
}


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[ServerProcess]:
    access = {"keys_file": write_keys(tmp_path / "keys.yaml", LIMITED)}
    process = ServerProcess(f"--config={config_file(tmp_path, access=access)}")
    try:
        process.wait_for("Serving on")
        yield process
    finally:
        process.end()


def open_session(server: ServerProcess, owner: str) -> str:
    body = {"graph_def": encoded(half_plus_two_graph())}
    answer = afresh(server, "POST", "/v1/sessions", json=body, headers=bearer(owner))
    assert answer.status_code == 201, answer.text
    session: str = answer.json()["session"]
    return session


def test_sessions_belong_to_their_owner_in_every_process(server: ServerProcess) -> None:
    sessions: list[str] = []
    while len({place(session) for session in sessions}) < 2:
        for session in sessions:
            afresh(server, "DELETE", f"/v1/sessions/{session}", headers=bearer("alice"))
        with concurrent.futures.ThreadPoolExecutor(6) as threads:
            sessions = list(threads.map(lambda _: open_session(server, "alice"), range(6)))
    for _ in range(6):
        refused = afresh(server, "POST", "/v1/sessions", json={}, headers=bearer("alice"))
        check_error(refused, 429, "RESOURCE_EXHAUSTED", "alice exceeds its limit: sessions is 6")
    for session in sessions:
        for _ in range(3):
            run = {"method": "POST", "path": f"/v1/sessions/{session}:run", "json": RUN_Y}
            assert afresh(server, **run, headers=bearer("alice")).status_code == 200  # type: ignore[arg-type] # the same keys
            assert afresh(server, **run, headers=bearer("root")).status_code == 200  # type: ignore[arg-type] # as above
            foreign = afresh(server, **run, headers=bearer("reader"))  # type: ignore[arg-type] # as above
            check_error(foreign, 403, "PERMISSION_DENIED", "requires the role sessions")
            other = afresh(server, **run, headers=bearer("carol"))  # type: ignore[arg-type] # as above
            check_error(other, 404, "NOT_FOUND", "is not found")
            nobody = afresh(server, **run)  # type: ignore[arg-type] # as above
            check_error(nobody, 401, "UNAUTHENTICATED", "requires an API key")
    for _ in range(5):
        mine = afresh(server, "GET", "/v1/sessions", headers=bearer("alice")).json()["sessions"]
        assert sorted(each["session"] for each in mine) == sorted(sessions)
        all_of_them = afresh(server, "GET", "/v1/sessions", headers=bearer("root")).json()
        assert sorted(each["session"] for each in all_of_them["sessions"]) == sorted(
            f"{session[:4]}…" for session in sessions
        )
    assert (
        afresh(server, "DELETE", f"/v1/sessions/{sessions[0]}", headers=bearer("alice")).status_code
        == 200
    )
    open_session(server, "alice")


def test_a_rate_is_that_of_all_processes(server: ServerProcess) -> None:
    codes = [
        afresh(server, "GET", "/v1/sessions", headers=bearer("bob")).status_code for _ in range(12)
    ]
    assert codes == [200] + 11 * [429]


def test_sessions_of_a_process_that_ends_no_longer_count(server: ServerProcess) -> None:
    for _ in range(6):
        open_session(server, "alice")
    for worker in workers_of(server):
        os.kill(worker, signal.SIGKILL)
    wait_until(lambda: afresh_or_none(server) == 200)
    open_session(server, "alice")


def afresh_or_none(server: ServerProcess) -> int | None:
    try:
        return afresh(server, "GET", "/readyz", headers=bearer("root")).status_code
    except httpx.TransportError:
        return None


def test_cells_are_one_for_each_owner_until_there_are_no_more() -> None:
    table = HostTable.create(2)
    other = HostTable(table.descriptor, 2)
    cells = [table.cell(f"owner {number}") for number in range(CELLS)]
    assert all(cell is not None for cell in cells)
    for number in (0, 17, CELLS - 1):
        cell, same = cells[number], other.cell(f"owner {number}")
        assert isinstance(cell, OwnerCell) and isinstance(same, OwnerCell)
        cell.running[1] = number + 1
        assert same.running[1] == number + 1
    assert table.cell("one more") is None
    table.end(1, "ended")
    assert {sum(cell.running) for cell in cells if cell is not None} == {0}
