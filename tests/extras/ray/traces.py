"""What a program leaves behind, and what it may find instead of a cluster."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import tempfile
import threading
from collections.abc import Iterator

import pytest

from tests.ray_cluster import RayCluster


def traces(cluster: RayCluster | None = None) -> dict[str, object]:
    """Ray's processes, files in shared memory, and the actors of a cluster."""
    found: dict[str, object] = {
        # Semaphores are those of other programs, which may end meanwhile.
        "files": sorted(
            path.name
            for path in pathlib.Path("/dev/shm").iterdir()
            if not path.name.startswith("sem.")
        ),
        "workers": sorted(
            path.parent.name
            for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")
            if _command(path).startswith(b"ray::")
        ),
    }
    if cluster is not None:
        found["actors"] = cluster.num_actors()
    return found


def _command(path: pathlib.Path) -> bytes:
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
