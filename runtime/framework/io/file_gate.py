"""Which files a step may touch: everything, nothing, or what lies in given folders.

A graph that came over the wire is not trusted with the file system, and a model that is being
loaded needs its own folder only. Kernels ask `context.step.files` before they open a file.

Guarantees: symbolic links are followed before a path is judged, so a link inside an allowed
folder does not lead out of it; a path that does not exist is judged by where it would be.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from runtime.foundation.errors import PermissionDeniedError


class AllowAll:
    """For programs that run graphs of their own."""

    def check_read(self, path: str) -> None:
        """Any file may be read."""

    def check_write(self, path: str) -> None:
        """Any file may be written."""


class FolderGate:
    """Allows what lies in one of some folders; with `write=False` only reading it."""

    def __init__(self, folders: Sequence[str], write: bool = False) -> None:
        """Folders are resolved once, now; PermissionDeniedError texts name them as resolved."""
        self.folders = tuple(os.path.realpath(folder) for folder in folders)
        self.write = write

    def check_read(self, path: str) -> None:
        """PermissionDeniedError unless `path` lies in one of the folders."""
        self._check(path, "read", self.folders)

    def check_write(self, path: str) -> None:
        """PermissionDeniedError unless writing is allowed and `path` lies in a folder."""
        self._check(path, "write", self.folders if self.write else ())

    def _check(self, path: str, verb: str, folders: Sequence[str]) -> None:
        if "\0" in path:  # no file system call takes it
            raise PermissionDeniedError(f"A path with a NUL byte may not be {_DONE[verb]}")
        resolved = os.path.realpath(path)
        for folder in folders:
            if resolved == folder or resolved.startswith(os.path.join(folder, "")):
                return
        raise PermissionDeniedError(
            f"This step may not {verb} {path}; it may {verb} files in: "
            f"{', '.join(folders) or 'no folder'}"
        )


class DenyAll(FolderGate):
    """For steps that have no business with files."""

    def __init__(self) -> None:
        super().__init__(())


_DONE = {"read": "read", "write": "written"}
