"""The memory of the process, of the machine and of control groups, read from files."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest

from runtime.foundation.machine_memory import available_bytes, resident_bytes

GROUP_2 = {
    "proc/self/cgroup": "0::/a/b\n",
    "sys/fs/cgroup/a/memory.max": "1000\n",
    "sys/fs/cgroup/a/memory.current": "700\n",
    "sys/fs/cgroup/a/memory.stat": "anon 1\ninactive_file 50\n",
    "sys/fs/cgroup/a/b/memory.max": "max\n",
    "sys/fs/cgroup/a/b/memory.current": "700\n",
}
IN_CONTAINER = {
    "proc/self/cgroup": "0::/path/of/the/host\n",
    "sys/fs/cgroup/memory.max": "5000\n",
    "sys/fs/cgroup/memory.current": "1000\n",
}
GROUP_1 = {
    "proc/self/cgroup": "9:cpu,cpuacct:/x\n4:memory:/docker/1\n",
    "sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "900\n",
    "sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes": "400\n",
    "sys/fs/cgroup/memory/docker/1/memory.stat": "total_inactive_file 30\n",
}


def files(root: Path, contents: dict[str, str]) -> Path:
    for name, text in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("contents", "left"),
    [
        ({}, None),
        ({"proc/meminfo": "MemFree: 1 kB\nMemAvailable:    2 kB\n"}, 2048),
        (GROUP_2, 350),
        ({**GROUP_2, "proc/meminfo": "MemTotal: 9 kB\nMemAvailable: 0 kB\n"}, 0),
        (IN_CONTAINER, 4000),
        (GROUP_1, 530),
    ],
)
def test_what_is_left(tmp_path: Path, contents: dict[str, str], left: int | None) -> None:
    assert available_bytes(files(tmp_path, contents)) == left


def test_resident_memory_is_that_without_files(tmp_path: Path) -> None:
    root = files(tmp_path, {"proc/self/statm": "900 500 200 1 0 3 0\n"})
    assert resident_bytes(root) == 300 * mmap.PAGESIZE
    assert resident_bytes(tmp_path / "absent") is None


def test_this_machine() -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("no proc file system")
    resident, left = resident_bytes(), available_bytes()
    assert resident is not None and resident > 1 << 20
    assert left is not None and left > 1 << 20
