"""Read a file of unknown length up to a limit, without reserving the limit."""

from __future__ import annotations

import io
import os
from typing import IO

PART_BYTES = 1 << 20  # what is read first of a file whose size is not known


def read_at_most(file: IO[bytes], most: int) -> bytes:
    """Return the next bytes of `file`: all that it has, but at most `most`.

    `file.read(most)` would allocate `most` bytes before it reads. This allocates at most about
    three times what the file has, and PART_BYTES. Raises what `file.read` raises.
    """
    if most <= PART_BYTES:
        return file.read(most)
    first = min(most, max(_size_of(file) + 1, PART_BYTES))
    parts = [file.read(first)]
    length = len(parts[0])
    while parts[-1] and length < most:
        parts.append(file.read(min(most - length, max(length, PART_BYTES))))
        length += len(parts[-1])
    return parts[0] if len(parts[0]) == length else b"".join(parts)


def _size_of(file: IO[bytes]) -> int:
    """Return the size of a file on disk, compressed if it is; 0 if it is not on disk."""
    try:
        return os.fstat(file.fileno()).st_size
    except (OSError, io.UnsupportedOperation):
        return 0
