"""BackgroundProcess: starts the background process once it is wanted, and again when it has ended.

The process of the first slot does so. The background process ends with it.

Guarantees: used from one event loop. Until the background process is ready, and after it has ended,
the other processes answer its requests themselves; its sessions are gone with it. One that hangs is
killed (server/processes/beats.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable

from runtime.api import available_bytes, resident_bytes
from server.background.background_settings import background_settings
from server.processes.beats import BeatWatch
from server.processes.host_table import WorkerState
from server.processes.socket_files import remove_sockets_of
from server.processes.worker_host import WorkerHost
from server.processes.worker_task import Restarts, WorkerTask
from server.settings import Settings
from server.starting.early_signals import SIGNALS

_log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1  # between two looks whether it is wanted, or has ended
_AGAIN_SECONDS = 5.0  # after a start that the system refused, or for which memory lacked
# How much of the memory that this process takes must be left for another one, which has the models
# too.
_MEMORY_RATIO = 1.5
_KILL_SECONDS = 5.0  # after its time to drain


class BackgroundProcess:
    """The background process, as the first process sees it.

    `prepare` is called before each start, and may raise OSError.
    """

    def __init__(
        self, settings: Settings, host: WorkerHost, prepare: Callable[[], Awaitable[object]]
    ) -> None:
        self._settings = settings
        self._host = host
        self._table = host.table
        self._row = host.table.background
        self._prepare = prepare
        # The background process has the other end, which ends with this process.
        self._pipe_end, self._pipe = os.pipe()
        self._process: subprocess.Popen[bytes] | None = None
        # Goes on if `supervise` is cancelled meanwhile; `end` waits for it.
        self._starting: asyncio.Future[None] | None = None
        self._watch = BeatWatch()
        self._restarts = Restarts()
        self._has_too_little = False  # memory, logged once
        self._refusal = ""  # of the last start by the system, logged once
        self._drain_began_at = 0.0

    async def supervise(self) -> None:
        """Start it when it is wanted, and again when it has ended, until this is cancelled."""
        if self._row.process_id:  # of a first process that has ended; it drains, or has ended too
            if not self._host.listens(self._host.background):
                self._remove_sockets()
            self._table.end(self._table.count, "ended with the process that supervised it")
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            process, now = self._process, time.monotonic()
            if process is not None and self._watch.look(self._row, now):
                process.kill()
            if process is not None and process.poll() is not None:
                self._ended(process)
            if self._process is None and self._row.is_wanted and now >= self._restarts.due_at:
                self._restarts.due_at = now + _AGAIN_SECONDS
                if self._lacks_memory() or not await self._start():
                    self._row.is_put_off = 1

    def _lacks_memory(self) -> bool:
        left, taken = available_bytes(), resident_bytes()
        lacks = left is not None and taken is not None and left < taken * _MEMORY_RATIO
        if lacks and not self._has_too_little:
            _log.warning(
                "Requests of low priority have no process of their own: %d MB of memory are left, "
                "and this process takes %d MB", (left or 0) >> 20, (taken or 0) >> 20,
            )  # fmt: skip
        self._has_too_little = lacks
        return lacks

    async def _start(self) -> bool:
        """Start it; return whether that was possible."""
        self._row.state = WorkerState.STARTING
        try:
            await self._prepare()
            self._starting = asyncio.ensure_future(asyncio.to_thread(self._begin))
            await asyncio.shield(self._starting)
        except OSError as error:
            if self._refusal != (refusal := f"{error.strerror or error}"):
                _log.warning("The background process does not start: %s", error)
            self._refusal = refusal
            return False
        self._refusal = ""
        self._restarts.started_at = time.monotonic()
        return True

    def _begin(self) -> None:
        # In this thread, whose mask it inherits: it takes them once it has handlers. Before that, a
        # server that drains would end it as if it had been killed.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            self._process = process = self._task().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self._watch = BeatWatch()
        # Not on the event loop, which may be busy until the process has opened a session.
        self._table.begin(self._table.count, process.pid)
        self._row.is_put_off = 0

    def _task(self) -> WorkerTask:
        grpc = self._settings.grpc
        return WorkerTask(
            settings=background_settings(self._settings).model_dump(mode="json"),
            slot=self._table.count,
            generation=self._row.generation,
            count=self._table.count,
            table=self._table.descriptor,
            listeners=(),
            supervisor=self._pipe_end,
            folder=str(self._host.folder),
            turns=dict(self._host.turns),
            has_rpc=grpc.port != 0 or grpc.socket_path is not None or grpc.background_port != 0,
            sources="",
            notes=[],
        )

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        ending = self._note_end(process)
        self._restarts.has_ended(time.monotonic())
        _log.warning("The background process (%d) %s", process.pid, ending)

    def _note_end(self, process: subprocess.Popen[bytes]) -> str:
        ending = self._watch.how_it_ended(process.returncode)
        self._process = None
        self._remove_sockets()
        self._table.end(self._table.count, ending)
        self._row.is_put_off = 1  # until it is its time again: it may end again and again
        return ending

    def _remove_sockets(self) -> None:
        remove_sockets_of(self._host.folder, self._host.background)

    def begin_drain(self) -> None:
        """Let it finish what it has begun."""
        self._drain_began_at = time.monotonic()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once: it may hang, and take no other signal."""
        if self._process is not None:
            self._process.kill()

    async def end(self, grace_seconds: float) -> None:
        """Wait until it has drained, and kill it `grace_seconds` after it began, and a reserve."""
        if self._starting is not None and not self._starting.done():
            with contextlib.suppress(OSError):
                await self._starting
            self.begin_drain()
        process = self._process
        if process is None:
            return
        deadline = self._drain_began_at + grace_seconds + _KILL_SECONDS
        while process.poll() is None:
            if time.monotonic() >= deadline:
                _log.error("The background process (%d) does not end; it is killed", process.pid)
                process.kill()
                await asyncio.to_thread(process.wait)
                break
            await asyncio.sleep(LOOK_SECONDS / 2)
        ending = self._note_end(process)
        if process.returncode:
            _log.error("The background process (%d) %s before it had drained", process.pid, ending)
