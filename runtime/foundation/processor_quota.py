"""The processor time that the control groups of this process allow it.

A container with a limit of `cpu` sees every core of its machine; the limit is a quota of time in
each period, after which all its threads wait for the next one.

Sources: cgroup v2 (`cpu.max`) and v1 (`cpu.cfs_quota_us`, `cpu.cfs_period_us`) of the Linux
kernel's documentation. A file that can't be read, or has something else, is no quota.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/")
_READ_BYTES = 1 << 14
_MOST_LEVELS = 64  # of groups within each other
_LIMIT = re.compile(r"([1-9]\d{0,17})\s+([1-9]\d{0,17})\s*\Z", re.ASCII)


def quota_cores(root: Path = _ROOT) -> int | None:
    """Return how many cores have as much time as the process may use, rounded up.

    Returns None if neither its own group nor one around it has a quota.
    """
    quotas = [-(-quota // period) for quota, period in _quotas(root)]
    return min(quotas) if quotas else None


def _quotas(root: Path) -> Iterator[tuple[int, int]]:
    """Yield the quota and the period of each group that has one, in microseconds."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        for group in _groups(top, path):
            limit = _LIMIT.match(
                f"{_read(group / 'cpu.cfs_quota_us')} {_read(group / 'cpu.cfs_period_us')}"
                if controllers
                else _read(group / "cpu.max")
            )
            if limit:  # "max" and -1: no quota
                yield int(limit[1]), int(limit[2])


def _groups(top: Path, path: str) -> Iterator[Path]:
    """Yield a group and those around it, up to the top."""
    parts = [part for part in path.split("/") if part]
    # In a container the path may be the host's, or lead out of what it sees.
    if ".." in parts or len(parts) > _MOST_LEVELS or not top.joinpath(*parts).is_dir():
        parts = []
    for count in range(len(parts), -1, -1):
        yield top.joinpath(*parts[:count])


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_READ_BYTES).decode("ascii", "replace")
    except (OSError, ValueError):  # a name with a zero byte
        return ""
