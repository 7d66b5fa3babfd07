"""The faults of a soak, and the reloads of its changing model: a thread each."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable

from bench.soak.model_work import Versions
from bench.soak.models import DENSE, write_dense
from bench.soak.record import Failed, Record, WrongAnswer
from bench.soak.repeating_thread import RepeatingThread
from tests.attacks.models import children_of

LOAD_SECONDS = 120  # for a version to be available, beside everything else
KILLED = frozenset({("low: dense", "UNAVAILABLE"), ("low: products", "UNAVAILABLE")})
HALF_OPEN = 40  # connections with an unfinished request that are kept
PREDICT = b"POST /v1/models/half_plus_two:predict HTTP/1.1\r\nHost: localhost\r\n"
UNFINISHED = (
    b"",
    PREDICT + b"X-Long: ",
    PREDICT + b"Content-Length: 999\r\n\r\n{",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # the begin of a TLS handshake
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20,  # answers that nobody reads
)


class Repeated(RepeatingThread):
    """A thread that calls `act` every few seconds between `start` and `stop`, at least once."""

    def __init__(self, record: Record, name: str, seconds: float, act: Callable[[], None]) -> None:
        super().__init__()
        self._record, self._name, self._seconds, self._act = record, name, seconds, act

    def _run(self) -> None:
        while True:
            self._record.count(self._name)
            with self._record.watched(self._name):
                self._act()
            if self._stop.wait(self._seconds):
                return


class Connections:
    """Clients that begin a request and never end it, or never read the answer."""

    def __init__(self, address: str, seed: int) -> None:
        host, port = urllib.parse.urlsplit(address).netloc.split(":")
        self._address = (host, int(port))
        self._random = random.Random(seed)
        self._open: list[socket.socket] = []

    def open_some(self) -> None:
        """Open a few; close the oldest beyond HALF_OPEN."""
        for _ in range(4):
            opened = socket.create_connection(self._address, timeout=60)
            opened.sendall(self._random.choice(UNFINISHED))
            self._open.append(opened)
        while len(self._open) > HALF_OPEN:
            self._open.pop(0).close()

    def close(self) -> None:
        """Close all."""
        while self._open:
            self._open.pop().close()


class Kills:
    """Kills a child process of the server, which computes steps of low priority."""

    def __init__(self, process_id: int, record: Record, seed: int) -> None:
        self._process_id, self._record = process_id, record
        self._random = random.Random(seed)
        self.killed = 0

    def kill_one(self) -> None:
        """Kill one, if there is one."""
        children = children_of(self._process_id)
        if children:
            self._record.fault(KILLED)
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._random.choice(children), signal.SIGKILL)
                self.killed += 1


class Reloads:
    """Replaces the version of the changing model by the next one."""

    def __init__(self, address: str, base: pathlib.Path, versions: Versions) -> None:
        self._address, self._base, self._versions = address, base, versions
        self._version = 1

    def reload(self) -> None:
        """Add a version, wait until it answers, and remove the one before."""
        old, self._version = self._version, self._version + 1
        self._versions.allowed = frozenset({old, self._version})
        write_dense(self._base, self._version)
        self._until({str(self._version): "AVAILABLE"})
        shutil.rmtree(self._base / str(old))
        self._until({str(self._version): "AVAILABLE", str(old): "END"})
        self._versions.allowed = frozenset({self._version})

    def _until(self, states: dict[str, str]) -> None:
        end = time.monotonic() + LOAD_SECONDS
        while True:
            with urllib.request.urlopen(f"{self._address}/v1/models/{DENSE}") as answer:
                seen = {
                    each["version"]: each["state"]
                    for each in json.loads(answer.read())["model_version_status"]
                }
            if all(seen.get(version, "END") == state for version, state in states.items()):
                return
            if time.monotonic() > end:
                raise Failed("NOT_LOADED", f"{seen} instead of {states}")
            time.sleep(0.05)


class TensorFlowClient:
    """The program of TensorFlow's own client; `run` receives its lines between start and stop."""

    KIND = "TensorFlow: sessions"

    def __init__(self, python: str, target: str, record: Record) -> None:
        self._command = [
            python,
            str(pathlib.Path(__file__).parent / "tensorflow_client.py"),
            target,
        ]
        self._record = record
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread()

    def start(self) -> None:
        """Start the program; return once it has imported TensorFlow."""
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{self._command} did not start")
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Let the session that is used now be the last one."""
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.close()

    def stop(self) -> None:
        """Wait for the end of the program."""
        assert self._process is not None and self._process.stdout is not None
        self._thread.join()
        self._process.wait()
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        for line in self._process.stdout:
            seen = json.loads(line)
            self._record.count(self.KIND, seen["requests"])
            for text in seen["wrong"]:
                with self._record.watched(self.KIND):
                    raise WrongAnswer(text)
            for code, text in seen["failed"]:
                with self._record.watched(self.KIND):
                    raise Failed(code, text)
