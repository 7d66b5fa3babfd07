"""`runstep serve` as a process of its own, for tests that need the real thing."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import httpx

ROOT = pathlib.Path(__file__).parents[2]
SECONDS = 30  # for anything that a test waits for; on a quiet machine it takes one


def on_free_ports() -> dict[str, str]:
    """The environment of a server whose ports are any free ones; flags take precedence."""
    return {**os.environ, "RUNSTEP_REST__PORT": "free", "RUNSTEP_GRPC__PORT": "free"}


@contextlib.contextmanager
def stopped(process_id: int) -> Iterator[None]:
    """While the block runs, a process hangs; it goes on afterwards if it is still there."""
    os.kill(process_id, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process_id, signal.SIGCONT)


def children_of(process_id: int) -> list[int]:
    """The ids of the processes that a process has started and that run."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[1]) == process_id and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


class ServerProcess:
    """`runstep serve` on free ports; its log is read as it comes."""

    def __init__(self, *flags: str) -> None:
        command = [
            sys.executable,
            "-m",
            "server.main",
            "serve",
            *flags,
        ]
        self.follow(
            subprocess.Popen(
                command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=on_free_ports()
            )
        )

    def follow(self, process: subprocess.Popen[str]) -> None:
        """Read the log of a process until it serves."""
        self.process = process
        self.log: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.http_address = self._find_http()
        except AssertionError:
            self._kill()
            raise
        self.client = httpx.Client(base_url=self.http_address, timeout=SECONDS)

    def _find_http(self) -> str:
        address = re.search(r"https?://[^ ]*:(\d+)", self.wait_for("HTTP listens on"))
        assert address is not None
        return f"http://127.0.0.1:{address[1]}"

    @property
    def grpc_address(self) -> str:
        """`grpc://host:port`; the port opens a moment after HTTP's."""
        port = re.search(r"port (\d+)", self.wait_for("gRPC listens on port"))
        assert port is not None
        return f"grpc://127.0.0.1:{port[1]}"

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self.log.append(line)
                self._changed.notify_all()

    def wait_for(self, text: str) -> str:
        """The first line of the log with that text."""
        with self._changed:
            found = self._changed.wait_for(lambda: any(text in line for line in self.log), SECONDS)
            assert found, f"{text!r} is not in the log:\n{''.join(self.log)}"
            return next(line for line in self.log if text in line)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)

    def end(self) -> None:
        """Kill what is left."""
        self.client.close()
        self._kill()

    def _kill(self) -> None:
        own = children_of(self.process.pid)
        own.extend(each for child in tuple(own) for each in children_of(child))
        self.process.kill()
        self.process.wait()
        self._reader.join(SECONDS)
        is_held = self._reader.is_alive()  # by a process that should have ended with its parent
        if is_held:
            for each in own:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            self._reader.join(SECONDS)
        assert not is_held, f"Of the processes {own} one did not end:\n{''.join(self.log)}"
        assert self.process.stderr is not None
        self.process.stderr.close()
