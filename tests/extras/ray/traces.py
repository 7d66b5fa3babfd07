"""What a program leaves behind, and what it may find instead of a cluster."""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import tempfile
import threading
from collections.abc import Iterator

import pytest

from tests.ray_cluster import MARK, RayCluster

Traces = dict[str, set[str]]
_MEMORY = pathlib.Path("/dev/shm")
_MARK = f"{MARK}={os.environ[MARK]}".encode()


def traces(cluster: RayCluster | None = None) -> Traces:
    """Ray's processes of these tests, files in shared memory, and the actors of a cluster."""
    return {
        "files": {path.name for path in _MEMORY.iterdir() if path.is_file()},
        # A worker that starts does not have the name yet that it will have.
        "workers": {
            process.name
            for process in _processes()
            if b"ray::" in _content(process / "cmdline")[:5]
            or b"default_worker.py" in _content(process / "cmdline")
        },
        "actors": set() if cluster is None else set(cluster.actors()),
    }


def new_traces(before: Traces, cluster: RayCluster | None = None) -> Traces:
    """What there is now that was not `before`; files that others have open are theirs."""
    found = {kind: there - before[kind] for kind, there in traces(cluster).items()}
    # Semaphores are closed as soon as they are mapped, and those of others end with them.
    found["files"] = {name for name in found["files"] if not name.startswith("sem.")}
    if found["files"]:
        found["files"] -= _open_elsewhere()
        found["files"] &= traces()["files"]
    return {kind: there for kind, there in found.items() if there}


def _processes(*, ours: bool = True) -> Iterator[pathlib.Path]:
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        if (_MARK in _content(process / "environ")) == ours:
            yield process


def _open_elsewhere() -> set[str]:
    """The names of files in shared memory that processes have open which are not of these tests."""
    found: set[str] = set()
    for process in _processes(ours=False):
        with contextlib.suppress(OSError):  # it has ended
            paths = [os.readlink(descriptor) for descriptor in (process / "fd").iterdir()]
            lines = (process / "maps").read_text().splitlines()
            paths += [line.split(maxsplit=5)[-1] for line in lines]
            found |= {name for path in paths if (name := path.removeprefix(f"{_MEMORY}/")) != path}
    return found


def _content(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@contextlib.contextmanager
def listening(answer: bytes | None) -> Iterator[str]:
    """A server that says nothing, or the same to everyone."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    connections.append(connection)
                    if answer is not None:
                        connection.sendall(answer)
                        connection.close()

        connections: list[socket.socket] = []
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in connections:
                connection.close()


@contextlib.contextmanager
def own_temporary_folder(folder: pathlib.Path) -> Iterator[None]:
    """Let processes that the block starts have their temporary files in a folder; Ray's are not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", tempfile.gettempdir())
        patch.setenv("TMPDIR", str(folder))
        yield
