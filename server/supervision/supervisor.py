"""Supervisor: opens the ports of a server, starts its processes, and replaces those that end.

It serves nothing itself. Each worker accepts on the HTTP sockets, which it inherits, so that a
connection that waits while a worker ends goes to another one; gRPC's port is shared by
SO_REUSEPORT, because gRPC can't take over a socket. A worker that hangs is killed: see
server/processes/beats.py.

The first SIGTERM or SIGINT drains every worker, the second one ends them. A worker that has not
ended RESERVE_SECONDS after its time to drain, or AT_ONCE_SECONDS after the second signal, hangs and
is killed. The exit code is 1 if a worker was killed before it had drained, by whomever. If a worker
can't start when the server does, the server ends with its exit code.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from runtime.errors import UnavailableError
from server.access.known_callers import read_knowledge
from server.addresses import address_of
from server.models.model_config import read_model_config_file
from server.processes.beats import BeatWatch
from server.processes.host_table import HostTable, WorkerState
from server.processes.http_sockets import http_sockets
from server.processes.reserved_port import reserved_port
from server.processes.session_ids import Place
from server.processes.socket_files import folder_for_sockets, remove_sockets_of
from server.processes.worker_task import Restarts, WorkerTask
from server.settings import Settings
from server.tls import read_tls_files, rpc_tls

_log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LOOK_SECONDS = 0.1
# More than a worker takes, after its time to drain, to close its connections and gRPC's port, each
# in 5 s at most, and to end the background process.
RESERVE_SECONDS = 20.0
AT_ONCE_SECONDS = 2.0


@dataclasses.dataclass(slots=True)
class _Slot:
    """One worker, or the wait for the next one."""

    process: subprocess.Popen[bytes] | None = None
    watch: BeatWatch = dataclasses.field(default_factory=BeatWatch)
    restarts: Restarts = dataclasses.field(default_factory=Restarts)


class Supervisor:
    """The workers of one server; `sources` and `notes` are what the log says about settings."""

    def __init__(self, settings: Settings, count: int, sources: str, notes: Sequence[str]) -> None:
        """Make the folder for sockets; raise UnavailableError if that is not possible.

        Raises the OpError of a file that is wrong and that each worker would read: it is said once,
        as one process does, and before anything is started.
        """
        _check_files(settings)
        self._settings = settings
        self._count = count
        self._sources = sources
        self._notes = list(notes)
        self._table = HostTable.create(count)
        self._slots = [_Slot() for _ in range(count)]
        self._folder = _socket_folder()
        # The workers read its end: it is closed when this process has ended.
        self._pipe_end, self._pipe = os.pipe()
        self._is_draining = False
        self._ends_at_once = False  # after a second signal
        self._kill_at = math.inf  # when the workers that have not ended are killed
        self._has_served = False
        self._exit_code = 0
        self._addresses: list[str] = []

    def run(self) -> int:
        """Serve until a signal, and return the exit code.

        Raises UnavailableError if a port is taken.
        """
        waited = {*_SIGNALS, signal.SIGCHLD}
        signal.pthread_sigmask(signal.SIG_BLOCK, waited)
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
            listeners = self._http_sockets(stack)
            settings = self._with_rpc_ports(stack)
            start = self._starter(settings, listeners)
            for slot in range(self._count):
                start(slot)
            while any(slot.process for slot in self._slots) or not self._is_draining:
                received = signal.sigtimedwait(waited, _LOOK_SECONDS)
                if received is not None and received.si_signo in _SIGNALS:
                    self._end_workers()
                self._look(start)
        return self._exit_code

    # --- ports --------------------------------------------------------------------------------

    def _http_sockets(self, stack: contextlib.ExitStack) -> list[socket.socket]:
        rest = self._settings.rest
        if rest.port == 0:
            return []
        listeners = http_sockets(stack, rest.host, 0 if rest.port == "free" else rest.port)
        scheme = "http" if self._settings.tls.certificate_file is None else "https"
        number = listeners[0].getsockname()[1]
        self._addresses.append(f"{scheme}://{address_of(rest.host, number)}")
        _log.info("HTTP listens on %s", self._addresses[-1])
        return listeners

    def _with_rpc_ports(self, stack: contextlib.ExitStack) -> Settings:
        """Return the settings with the numbers of gRPC's ports, which are kept for the workers."""
        grpc, host = self._settings.grpc, self._settings.rest.host
        update = {}
        if grpc.port != 0:
            port = reserved_port(stack, host, 0 if grpc.port == "free" else grpc.port)
            update["port"] = port
            self._addresses.append(f"grpc://{address_of(host, port)}")
            _log.info("gRPC listens on port %d", port)
        if grpc.tensorflow_port is not None:
            update["tensorflow_port"] = reserved_port(
                stack, grpc.tensorflow_host, grpc.tensorflow_port
            )
        settings = self._settings.model_copy(update={"grpc": grpc.model_copy(update=update)})
        if grpc.background_port == 0:
            return settings
        # It imports the runtime, which the supervisor does not require otherwise.
        from server.background.background_settings import with_background_port

        return stack.enter_context(with_background_port(settings))

    # --- workers ------------------------------------------------------------------------------

    def _starter(
        self, settings: Settings, listeners: Sequence[socket.socket]
    ) -> Callable[[int], None]:
        """Return a function that starts the worker of a slot."""
        of_host = settings.model_dump(mode="json")

        def start(number: int) -> None:
            task = WorkerTask(
                settings=of_host,
                slot=number,
                generation=self._table.rows[number].generation,
                count=self._count,
                table=self._table.descriptor,
                listeners=[each.fileno() for each in listeners],
                supervisor=self._pipe_end,
                folder=str(self._folder),
                sources=self._sources,
                notes=self._notes,
            )
            self._table.rows[number].state = WorkerState.STARTING
            process = task.start()
            slot = self._slots[number]
            slot.process, slot.restarts.started_at = process, time.monotonic()
            slot.watch = BeatWatch()
            self._table.begin(number, process.pid)

        return start

    def _look(self, start: Callable[[int], None]) -> None:
        """Note which workers have ended, and start those that are due."""
        now = time.monotonic()
        if now >= self._kill_at:
            self._kill_workers()
        for number, slot in enumerate(self._slots):
            if slot.process is not None and slot.watch.look(self._table.rows[number], now):
                slot.process.kill()
            if slot.process is not None and slot.process.poll() is not None:
                self._ended(number, slot, slot.process, now)
            if slot.process is None and not self._is_draining and now >= slot.restarts.due_at:
                start(number)
        is_ready = all(row.state == WorkerState.READY for row in self._table.workers)
        if is_ready and not self._has_served:
            self._has_served = True
            _log.info("Serving on %s with %d processes", " and ".join(self._addresses), self._count)

    def _ended(
        self, number: int, slot: _Slot, process: subprocess.Popen[bytes], now: float
    ) -> None:
        ending = slot.watch.how_it_ended(process.returncode)
        remove_sockets_of(self._folder, Place(number, self._table.rows[number].generation))
        self._table.end(number, ending)
        slot.process = None
        if self._is_draining:
            # After a second signal nobody expects that it drains, and this process may kill it.
            if process.returncode > 0 or (process.returncode and not self._ends_at_once):
                _log.error("Process %d (%d) %s before it had drained", number, process.pid, ending)
                self._exit_code = max(1, self._exit_code, process.returncode)
            return
        if not self._has_served:
            _log.error("Process %d %s before the server was ready", number, ending)
            self._exit_code = max(1, process.returncode)
            self._end_workers()
            return
        slot.restarts.has_ended(now)
        _log.error("Process %d (%d) %s; another one takes its place", number, process.pid, ending)

    def _end_workers(self) -> None:
        """Drain the workers; when they drain already, end them."""
        drain_seconds = self._settings.rest.drain_seconds + RESERVE_SECONDS
        self._ends_at_once = self._is_draining
        seconds = AT_ONCE_SECONDS if self._ends_at_once else drain_seconds
        self._kill_at = min(self._kill_at, time.monotonic() + seconds)
        self._is_draining = True
        for slot in self._slots:
            if slot.process is not None:
                slot.process.send_signal(signal.SIGTERM)

    def _kill_workers(self) -> None:
        """Kill the workers that have not ended, once."""
        self._kill_at = math.inf
        for number, slot in enumerate(self._slots):
            if slot.process is not None and slot.process.poll() is None:
                _log.error("Process %d (%d) does not end; it is killed", number, slot.process.pid)
                slot.process.kill()


def _check_files(settings: Settings) -> None:
    """Raise here, before a port is open, what each worker would raise."""
    read_tls_files(settings.tls)
    rpc_tls(settings).read()
    read_knowledge(settings)
    if settings.model_config_file is not None:
        read_model_config_file(Path(settings.model_config_file))
    batching = (settings.batching, *(model.batching for model in settings.models))
    for each in batching:
        if each is not None and each.parameters_file is not None:
            # It imports the runtime, which the supervisor does not require otherwise.
            from server.steps.batching.parameters import read_parameters

            read_parameters(Path(each.parameters_file))


def _socket_folder() -> Path:
    """Make a folder that only this user can open, with a path that a Unix socket may have."""
    folder = folder_for_sockets()
    try:
        return Path(tempfile.mkdtemp(prefix="runstep-", dir=folder))
    except OSError as error:
        raise UnavailableError(
            "Several processes require a folder for their sockets and shared weights, and nothing "
            f"can be written to {folder} (TMPDIR): {error.strerror}"
        ) from error
