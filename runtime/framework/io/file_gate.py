"""Gates, which decide which files a step may access: all files, no file, or files in given folders.

A graph that a client sent is not trusted with the file system, and a model that is being loaded
requires only its own folder. Kernels must call `context.step.files` before they open a file.

Guarantees: symbolic links are resolved before a path is checked. Therefore a link inside an allowed
folder gives no access to files outside that folder. A path that does not exist is checked in the
same way as one that exists.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from runtime.foundation.errors import PermissionDeniedError


class AllowAll:
    """A gate that allows all access, for programs that run graphs of their own."""

    def check_read(self, path: str) -> None:
        """Allow any path to be read."""

    def check_write(self, path: str) -> None:
        """Allow any path to be written."""


class FolderGate:
    """A gate that allows reading in `folders` and, if `write` is true, also writing there."""

    def __init__(self, folders: Sequence[str], write: bool = False, setting: str = "") -> None:
        """Resolve symbolic links in `folders` once; error messages show the resolved paths.

        They name `setting` too, if the folders are those of one.
        """
        self.folders = tuple(os.path.realpath(folder) for folder in folders)
        self.write = write
        self._source = f" ({setting})" if setting else ""

    def check_read(self, path: str) -> None:
        """Raise PermissionDeniedError unless `path` is in one of `folders`."""
        self._check(path, "read", self.folders)

    def check_write(self, path: str) -> None:
        """Raise PermissionDeniedError unless `write` is true and `path` is in one of `folders`."""
        self._check(path, "write", self.folders if self.write else ())

    def _check(self, path: str, verb: str, folders: Sequence[str]) -> None:
        if "\0" in path:  # no system call accepts such a path, and realpath would raise ValueError
            done = _PAST_PARTICIPLES[verb]
            raise PermissionDeniedError(f"A path with a NUL byte may not be {done}")
        resolved = os.path.realpath(path)
        for folder in folders:
            if resolved == folder or resolved.startswith(os.path.join(folder, "")):
                return
        raise PermissionDeniedError(
            f"This step may not {verb} {path}; it may {verb} files in: "
            f"{', '.join(folders) or 'no folder'}{self._source}"
        )


class DenyAll(FolderGate):
    """A gate that refuses all access."""

    def __init__(self) -> None:
        super().__init__(())


_PAST_PARTICIPLES = {"read": "read", "write": "written"}
