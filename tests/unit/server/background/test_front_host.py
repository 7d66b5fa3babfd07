"""The one process of a server keeps changes of the models for a background process."""

from __future__ import annotations

import asyncio

import pytest

from server.background.front_host import FrontHost
from server.processes.host_table import HostTable, WorkerState
from server.processes.session_ids import Place
from server.processes.worker_host import WorkerHost


@pytest.fixture
def host() -> FrontHost:
    return FrontHost(HostTable.create(1))


def test_nothing_is_written_before_there_is_a_background_process(host: FrontHost) -> None:
    async def scenario() -> None:
        async with host.change_turn():
            host.record({"number": 1})
        assert not host.folder.exists()
        host.remove_sockets()
        await host.make_folder()
        await host.make_folder()
        async with host.change_turn():
            host.record({"number": 2})
        assert host.changes.recorded() == [{"number": 1}, {"number": 2}]
        assert host.folder.stat().st_mode & 0o777 == 0o700
        host.remove_sockets()
        assert not host.folder.exists()

    asyncio.run(scenario())


def test_the_folder_is_not_made_during_a_change(host: FrontHost) -> None:
    async def scenario() -> None:
        async with host.change_turn():
            making = asyncio.create_task(host.make_folder())
            await asyncio.sleep(0)
            host.record({"number": 1})
            assert not host.folder.exists()
        await making
        assert host.changes.recorded() == [{"number": 1}]
        host.remove_sockets()

    asyncio.run(scenario())


def test_the_background_process_is_compared_by_what_serves(host: FrontHost) -> None:
    there = WorkerHost(host.table, Place(1, 0), host.folder)
    assert there.is_background
    host.note_models(5)
    assert host.has_same_models  # so that predictions have it started
    there.table.background.state = WorkerState.READY
    for own, others, expected in ((0, 0, True), (5, 0, False), (5, 5, True), (6, 5, False)):
        host.note_models(own)
        there.note_models(others)
        assert host.has_same_models is expected
        assert there.has_same_models is expected
