"""The Unix sockets of the processes of one server: their folder, and the files of each process.

Guarantee: a file's name has the slot and the generation of its process, so that no process has the
name of one before it, and those of a process that has ended may be removed at any time.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from server.processes.session_ids import Place

_LONGEST_FOLDER = 60  # characters; the path of a Unix socket may have 107


def folder_for_sockets() -> Path:
    """Return the folder for temporary files, or /tmp if a Unix socket's path would be too long.

    Also where nothing can be written: only whoever makes a file there must fail.
    """
    try:
        usual = tempfile.gettempdir()
    except FileNotFoundError:
        return Path("/tmp")
    return Path(usual if len(usual) <= _LONGEST_FOLDER else "/tmp")


def http_socket(folder: Path, place: Place) -> Path:
    """Return the Unix socket of a process for HTTP requests of the others."""
    return folder / f"{place.slot}.{place.generation}.http"


def moved_socket(folder: Path, place: Place) -> Path:
    """Return the Unix socket of a process for connections that are handed over to it."""
    return folder / f"{place.slot}.{place.generation}.moved"


def remove_sockets_of(folder: Path, place: Place) -> None:
    """Remove the sockets of a process that has ended, as far as they are there."""
    for socket_of in (http_socket, moved_socket):
        socket_of(folder, place).unlink(missing_ok=True)
