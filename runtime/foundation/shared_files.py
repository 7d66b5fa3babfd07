"""SharedFiles: files that the processes of one server share; one of them makes each file.

A process that needs a file has it made if no other process has, else it waits for it and maps it,
so its pages exist once. The files are in a folder of the server, which nobody else changes: that
the access to a mapping can't fail, because a file has become shorter, relies on it.

A file has a header of HEADER_BYTES, which marks it as complete and is written last. Users of a file
have a shared lock on it, its maker has an exclusive one. The system ends the locks of a process
that ends, so the next process finds an incomplete file that nobody makes, and makes it.

Guarantees: thread-safe. A file is removed when its last user releases it; if that user has been
killed, when the folder is.

Source: flock(2), mmap(2).
"""

from __future__ import annotations

import contextlib
import mmap
import os
import time
import weakref
from collections.abc import Callable
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a Unix system: nothing is shared
    fcntl = None  # type: ignore[assignment] # tested before use

HEADER_BYTES = 64  # so that what follows is aligned
_COMPLETE = b"complete"
_LOOK_SECONDS = 0.01


class SharedFile:
    """A complete file; `release` must be called, or `keep_for`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor

    def mapped(self) -> mmap.mmap:
        """Map the file to read it; the file is released when the mapping ends."""
        size = os.fstat(self.descriptor).st_size
        mapping = mmap.mmap(self.descriptor, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
        self.keep_for(mapping)
        return mapping

    def contents(self) -> bytes:
        """Read what follows the header."""
        size = os.fstat(self.descriptor).st_size
        return os.pread(self.descriptor, size - HEADER_BYTES, HEADER_BYTES)

    def keep_for(self, owner: object) -> None:
        """Release the file when `owner` ends."""
        weakref.finalize(owner, self.release)

    def release(self) -> None:
        """End the use of the file; remove it, and files beside it, if it was the last use."""
        try:
            if _is_current(self.path, self.descriptor, fcntl.LOCK_EX):
                _remove(self.path)
        finally:
            os.close(self.descriptor)


class SharedFiles:
    """The files in one folder, or none before `use_folder`."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def use_folder(self, folder: Path | None) -> None:
        """Share files in `folder`, which must exist; None ends that."""
        self._folder = folder

    @property
    def is_on(self) -> bool:
        """Whether there is a folder for files."""
        return self._folder is not None and fcntl is not None

    def open(
        self, name: str, make: Callable[[int, Path], None], check: Callable[[], None]
    ) -> SharedFile:
        """Return the file `name`.

        `make` is called if no process has made it, with a descriptor to which it writes what
        follows the header, and the path: files that it makes beside have names that begin with
        `name` and a dot. `check` is called while another process makes the file; it may raise to
        end the wait.

        Raises OSError, and what `make` raises.
        """
        assert self._folder is not None
        path = self._folder / name
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if _is_ready(path, descriptor, make):
                    return SharedFile(path, descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
            check()
            time.sleep(_LOOK_SECONDS)


shared_files = SharedFiles()


def _is_ready(path: Path, descriptor: int, make: Callable[[int, Path], None]) -> bool:
    """Return whether this process has the shared lock of a complete file, which it may make."""
    if not _is_current(path, descriptor, fcntl.LOCK_SH):
        return False
    if os.pread(descriptor, len(_COMPLETE), 0) == _COMPLETE:
        return True
    # Until the process has the exclusive lock, another one may make the file, or remove it.
    if not _is_current(path, descriptor, fcntl.LOCK_EX):
        return False
    if os.pread(descriptor, len(_COMPLETE), 0) != _COMPLETE:
        try:
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, HEADER_BYTES, os.SEEK_SET)
            make(descriptor, path)
            os.pwrite(descriptor, _COMPLETE.ljust(HEADER_BYTES, b"\0"), 0)
        except BaseException:
            _remove(path)
            raise
    return _locked(descriptor, fcntl.LOCK_SH)


def _is_current(path: Path, descriptor: int, kind: int) -> bool:
    """Return whether the file could be locked and still has its name."""
    if not _locked(descriptor, kind):
        return False
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove(path: Path) -> None:
    """Remove a file, whose exclusive lock the caller has, and the files beside it."""
    for each in (*path.parent.glob(f"{path.name}.*"), path):
        with contextlib.suppress(FileNotFoundError):
            each.unlink()
