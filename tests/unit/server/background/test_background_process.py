"""When the start of the background process is put off, so that no request waits for it."""

from __future__ import annotations

import asyncio
import pathlib
import signal
import subprocess
import sys
from typing import Any

import pytest

from server.background import background_process
from server.background.background_process import BackgroundProcess
from server.processes.host_table import HostTable
from server.processes.session_ids import Place
from server.processes.worker_host import WorkerHost
from server.processes.worker_task import WorkerTask
from server.settings import Settings

SECONDS = 20


async def nothing() -> None:
    pass


async def full_disk() -> None:
    raise OSError("No space left on device")


def process_of_nothing(task: WorkerTask) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({SECONDS})"])


@pytest.mark.parametrize(
    ("left", "prepare", "is_put_off"),
    [(1 << 40, nothing, 0), (1, nothing, 1), (1 << 40, full_disk, 1)],
    ids=["starts", "too little memory", "a full disk"],
)
def test_a_start_that_is_not_possible_is_put_off(
    left: int,
    prepare: Any,
    is_put_off: int,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background_process, "available_bytes", lambda: left)
    monkeypatch.setattr(WorkerTask, "start", process_of_nothing)
    host = WorkerHost(HostTable.create(1), Place(0, 0), tmp_path)
    row = host.table.background
    process = BackgroundProcess(Settings(), host, prepare)
    is_there = [0]

    async def run() -> None:
        supervising = asyncio.create_task(process.supervise())
        host.want_background()
        async with asyncio.timeout(SECONDS):
            while not (row.process_id or row.is_put_off):
                await asyncio.sleep(0.01)
        is_there[:] = [row.process_id, row.is_put_off]
        supervising.cancel()
        process.kill()
        await process.end(0)

    asyncio.run(run())
    assert is_there[1] == is_put_off
    assert bool(is_there[0]) is not bool(is_put_off)
    assert row.is_put_off  # also after its end, until it is started again


def test_what_refuses_each_start_is_said_once(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background_process, "available_bytes", lambda: 1 << 40)
    monkeypatch.setattr(background_process, "_AGAIN_SECONDS", 0.0)
    starts = []

    async def read_only() -> None:
        starts.append(f"/tmp/{len(starts)}")
        raise OSError(30, "Read-only file system", starts[-1])

    host = WorkerHost(HostTable.create(1), Place(0, 0), tmp_path)
    process = BackgroundProcess(Settings(), host, read_only)

    async def run() -> None:
        supervising = asyncio.create_task(process.supervise())
        host.want_background()
        async with asyncio.timeout(SECONDS):
            while len(starts) < 3:
                await asyncio.sleep(0.01)
        supervising.cancel()
        await process.end(0)

    asyncio.run(run())
    assert caplog.messages == [
        "The background process does not start: [Errno 30] Read-only file system: '/tmp/0'"
    ]


def test_signals_wait_until_it_has_handlers(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its interpreter starts, SIGTERM would end it by the signal, which is no drain."""
    inherited: list[set[int]] = []

    def start(task: WorkerTask) -> subprocess.Popen[bytes]:
        inherited.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
        return process_of_nothing(task)

    monkeypatch.setattr(WorkerTask, "start", start)
    process = BackgroundProcess(
        Settings(), WorkerHost(HostTable.create(1), Place(0, 0), tmp_path), nothing
    )
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    process._begin()
    assert inherited == [set(before) | {signal.SIGTERM, signal.SIGINT}]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    process.kill()
    asyncio.run(process.end(0))
