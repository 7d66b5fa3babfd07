"""Faults that tests inject: a full disk or pipe, no descriptors, changing files, jumping clocks.

Nothing of the program is replaced. The limits of the process make the system itself refuse at a
known byte or descriptor, and clocks and files reach the program in the ways that are meant for
them: a Clock, a path, the gate that is consulted before each file.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import resource
from collections.abc import Callable, Iterator

from runtime.framework.io.file_gate import AllowAll
from server.sessions.clock import Clock


@contextlib.contextmanager
def full_disk(free_bytes: int) -> Iterator[None]:
    """Let no file become longer than `free_bytes`: a write beyond raises OSError (EFBIG).

    Of a write that crosses the limit, the system takes the part before it or nothing.
    """
    with _limit(resource.RLIMIT_FSIZE, free_bytes):
        yield


@contextlib.contextmanager
def full_pipe() -> Iterator[tuple[int, int]]:
    """The ends of a pipe that nobody reads and that has no room; its contents are spaces."""
    reader, writer = os.pipe()
    try:
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while os.write(writer, b" " * 4096):
                pass
        os.set_blocking(writer, True)
        yield reader, writer
    finally:
        os.close(reader)
        os.close(writer)


@contextlib.contextmanager
def no_descriptors(free: int = 0) -> Iterator[None]:
    """Let the process open at most `free` more files and sockets: OSError (EMFILE)."""
    opened = [os.open(os.devnull, os.O_RDONLY)]
    try:
        # The limit is on the number of a descriptor, and new ones get the lowest free number. So
        # the numbers below the highest must all be taken.
        highest = max(int(name) for name in os.listdir("/proc/self/fd"))
        while opened[-1] < highest:
            opened.append(os.open(os.devnull, os.O_RDONLY))
        with _limit(resource.RLIMIT_NOFILE, opened[-1] + 1 + free):
            yield
    finally:
        for descriptor in opened:
            os.close(descriptor)


@contextlib.contextmanager
def _limit(which: int, value: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(which)
    resource.setrlimit(which, (value, hard))
    try:
        yield
    finally:
        resource.setrlimit(which, (soft, hard))


class JumpingClock:
    """`now` passes for everybody; the wall clock can also be set, as an administrator would."""

    def __init__(self) -> None:
        self.now = 1000.0  # the monotonic clock
        self.wall = 1_700_000_000.0
        self.clock = Clock(monotonic=lambda: self.now, wall=lambda: self.wall)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.wall += seconds

    def jump(self, seconds: float) -> None:
        """Set the wall clock; no time passes."""
        self.wall += seconds


class ChangingFiles(AllowAll):
    """A gate that allows everything; it calls `change(path)` before a file is opened to be read."""

    def __init__(self, change: Callable[[str], object]) -> None:
        self._change = change

    def check_read(self, path: str) -> None:
        self._change(path)


def files_below(folder: pathlib.Path) -> dict[str, bytes]:
    """The contents of all files, by the path in `folder`."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
