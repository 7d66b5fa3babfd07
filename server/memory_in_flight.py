"""What large bodies and answers take together while requests are read and answered.

A request holds memory for its body and for its answer until it ends. What it is about to hold is
reserved before it is allocated, and refused if the requests in flight would take too much together.
A single request is never refused, so that every body that `rest.max_body_bytes` permits is read
when nothing else is.

Guarantees: `begin_request`, `hold` and `end_request` are called on one event loop.
"""

from __future__ import annotations

import contextvars
import os
import pathlib

from runtime.errors import ResourceExhaustedError

# Smaller bodies and answers are not counted; `max_connections` of them take little.
COUNTED_BYTES = 1 << 18
# The memory that a body takes at most while it is read, its own bytes included, and an answer while
# it is written: the arrays, the parts of the text, and the text.
TIMES_BODY = 4
TIMES_ANSWER = 3
_SHARE = 8  # of the machine's memory, by default
_CGROUP_LIMITS = (
    pathlib.Path("/sys/fs/cgroup/memory.max"),
    pathlib.Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


class MemoryInFlight:
    """The memory that the requests of one server hold; `limit` is in bytes."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = machine_bytes() // _SHARE if limit is None else limit
        self.held = 0

    def begin_request(self) -> Holding:
        """Return what the request of the current task holds, which is nothing yet."""
        holding = Holding()
        holding.memory = self
        current.set(holding)
        return holding


class Holding:
    """What one request holds, in bytes.

    There is one for each request, so that it is made without a call.
    """

    memory: MemoryInFlight
    size = 0

    def add(self, size: int) -> None:
        """Hold `size` bytes more.

        Raises ResourceExhaustedError if the requests in flight would hold too much. More than the
        limit counts as the limit; the allocation itself is refused.
        """
        memory = self.memory
        size = min(size, memory.limit)
        if memory.held + size > memory.limit and memory.held > self.size:
            raise ResourceExhaustedError(
                f"The requests in flight hold {memory.held} bytes, and this one needs {size} more; "
                f"rest.max_bytes_in_flight is {memory.limit}"
            )
        self.size += size
        memory.held += size

    def end(self) -> None:
        """Hold nothing any more."""
        self.memory.held -= self.size
        self.size = 0


current: contextvars.ContextVar[Holding | None] = contextvars.ContextVar("holding", default=None)


def hold(size: int) -> None:
    """Reserve `size` bytes for the request of the current task, until it ends.

    Raises ResourceExhaustedError if the requests in flight would hold too much. Outside requests,
    as in a warm-up, nothing is counted.
    """
    holding = current.get()
    if holding is not None:
        holding.add(size)


def machine_bytes() -> int:
    """Return the memory of the machine, or of the container if it may have less."""
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in _CGROUP_LIMITS:
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            size = min(size, int(text))
    return size
