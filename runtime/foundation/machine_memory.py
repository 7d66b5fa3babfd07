"""The memory of this process, of the machine, and of the control group that the process is in.

Sources: proc(5), meminfo; cgroup v2 (`memory.max`, `memory.current`) and v1
(`memory.limit_in_bytes`, `memory.usage_in_bytes`) of the Linux kernel's documentation. On systems
without these files, nothing is known and the functions return None.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_ROOT = Path("/")
_READ_BYTES = 1 << 14
# (folder of the controller below /sys/fs/cgroup, limit, use, part of the use that can be reclaimed)
_VERSION_2 = ("", "memory.max", "memory.current", "inactive_file")
_VERSION_1 = ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def resident_bytes(root: Path = _ROOT) -> int | None:
    """Return the memory that the process itself occupies, without files that it maps.

    The kernel can write mapped files back or read them again, so mapped weights do not count.
    """
    fields = _read(root / "proc/self/statm").split()
    if len(fields) < 3:
        return None
    return (int(fields[1]) - int(fields[2])) * _PAGE


def available_bytes(root: Path = _ROOT) -> int | None:
    """Return how much more memory the process can have: what the machine and its groups have left.

    Files in the page cache do not count as used.
    """
    left = [*_left_of_machine(root), *_left_of_groups(root)]
    return max(0, min(left)) if left else None


def _left_of_machine(root: Path) -> Iterator[int]:
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _read(root / "proc/meminfo"), re.MULTILINE)
    if found:
        yield int(found[1]) << 10


def _left_of_groups(root: Path) -> Iterator[int]:
    """Yield what is left in each group that has a limit, from the process's own to the root."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        version = _VERSION_1 if controllers else _VERSION_2
        top = root / "sys/fs/cgroup" / version[0]
        group = top / path.strip("/")
        if not group.is_dir():  # in a container the path may be the host's
            group = top
        while True:
            yield from _left_of_group(group, version)
            if group in (top, group.parent):
                break
            group = group.parent


def _left_of_group(group: Path, version: tuple[str, str, str, str]) -> Iterator[int]:
    _, limit_file, use_file, reclaimable = version
    limit, use = _read(group / limit_file).strip(), _read(group / use_file).strip()
    if not limit.isdecimal() or not use.isdecimal():  # "max": no limit
        return
    cached = re.search(rf"^{reclaimable} (\d+)$", _read(group / "memory.stat"), re.MULTILINE)
    yield int(limit) - int(use) + (int(cached[1]) if cached else 0)


def _read(path: Path | str) -> str:
    """Return the text of a file, or nothing if it can't be read.

    Path.read_text makes five more system calls, and an event loop waits for this.
    """
    content = bytearray()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        while part := os.read(descriptor, _READ_BYTES):
            content += part
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return content.decode(errors="replace")
