"""HostTurns: how many tasks of a thread pool run at the same time in all processes of a server.

The threads of a pool are divided among the processes, each of which has at least one. Where a pool
has fewer threads than there are processes, its tasks take turns.

Guarantees: thread-safe; a turn ends with its process, however that ends; a thread that waits for
its turn does not hold the interpreter lock; a thread that can't open the pool's files has its turn
at once. The system decides who is next, about in the order in which they came.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import threading
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path

_log = logging.getLogger(__name__)


class HostTurns:
    """The turns of one pool: `count` at the same time, in all processes that use `folder`."""

    def __init__(self, folder: Path, name: str, count: int) -> None:
        self._paths = [folder / f"{name.encode().hex()}.{number}" for number in range(count)]
        self._next = 0
        self._local = threading.local()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn, which ends with the context."""
        try:
            descriptor = self._begin()
        except OSError as error:  # such as too many open files
            _log.warning("A task does not wait for its turn: %s", error)
            yield
            return
        try:
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _begin(self) -> int:
        descriptors = self._descriptors()
        for descriptor in descriptors:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return descriptor
        self._next += 1  # threads may overwrite each other's counts
        descriptor = descriptors[self._next % len(descriptors)]
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return descriptor

    def _descriptors(self) -> list[int]:
        """Return the calling thread's descriptors, each of which can hold a lock of its own."""
        found: _Descriptors | None = getattr(self._local, "found", None)
        if found is None:
            found = self._local.found = _Descriptors(self._paths)
        return found.numbers


class _Descriptors:
    """Descriptors of files, which are closed when the thread that has this object ends."""

    def __init__(self, paths: Iterable[Path]) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self.numbers: list[int] = []
        weakref.finalize(self, _close, self.numbers)
        for path in paths:
            self.numbers.append(os.open(path, flags, 0o600))


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
