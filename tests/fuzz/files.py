"""Inputs that are files: names and contents as frames, written to a folder of the child."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping

from tests.fuzz.mutate_bytes import join_frames, smaller_bytes, split_frames

_MEMORY = pathlib.Path("/dev/shm")  # a file system that needs no disk


class Folder:
    """A folder for the files of one input, of the process that uses it first.

    It is made in the parent, and removed with this object there.
    """

    def __init__(self) -> None:
        base = _MEMORY if os.access(_MEMORY, os.W_OK) else None
        self._base = tempfile.mkdtemp(prefix="fuzz", dir=base)
        weakref.finalize(self, shutil.rmtree, self._base, ignore_errors=True)

    def fill(self, files: Mapping[str, bytes]) -> pathlib.Path:
        """Return the folder with these files and no others."""
        folder = pathlib.Path(self._base, str(os.getpid()))
        shutil.rmtree(folder, ignore_errors=True)
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder


def write_files(files: Mapping[str, bytes]) -> bytes:
    """Return the input of these files."""
    return join_frames([part for name, data in files.items() for part in (name.encode(), data)])


def read_files(data: bytes) -> dict[str, bytes]:
    """Return the files of an input."""
    frames = split_frames(data)
    return {name.decode(): content for name, content in zip(frames[::2], frames[1::2], strict=True)}


def smaller_files(data: bytes) -> Iterator[bytes]:
    """Yield inputs with fewer files, and with parts of their contents."""
    files = read_files(data)
    for name in files:
        yield write_files({key: value for key, value in files.items() if key != name})
    for name, content in files.items():
        for smaller in smaller_bytes(content):
            yield write_files({**files, name: smaller})
