"""The quota of processor time, from files as the kernel has them."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import pytest

from runtime.foundation.processor_quota import quota_cores

POD = "kubepods.slice/pod7.slice/runstep.scope"
V2 = {"proc/self/cgroup": f"0::/{POD}\n"}
V1 = {"proc/self/cgroup": f"9:memory:/{POD}\n4:cpu,cpuacct:/{POD}\n1:name=systemd:/\n0::/\n"}


def v2(group: str, limit: str) -> dict[str, str]:
    return {f"sys/fs/cgroup/{group}/cpu.max": limit}


def v1(group: str, quota: str, period: str = "100000\n") -> dict[str, str]:
    folder = f"sys/fs/cgroup/cpu/{group}"
    return {f"{folder}/cpu.cfs_quota_us": quota, f"{folder}/cpu.cfs_period_us": period}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),  # no Linux
        (V2, None),
        ({**V2, **v2(POD, "max 100000\n")}, None),
        ({**V2, **v2(POD, "200000 100000\n")}, 2),
        ({**V2, **v2(POD, "150000 100000\n")}, 2),
        ({**V2, **v2(POD, "5000 100000\n")}, 1),
        ({**V2, **v2(POD, "640000 10000\n")}, 64),
        # The smallest quota of the group and of those around it.
        ({**V2, **v2(POD, "max 100000"), **v2("kubepods.slice", "300000 100000")}, 3),
        ({**V2, **v2(POD, "400000 100000"), **v2("kubepods.slice", "300000 100000")}, 3),
        ({**V2, **v2(POD, "200000 100000"), **v2("kubepods.slice", "300000 100000")}, 2),
        ({**V2, **v2(POD, "max 100000"), **v2("another.slice", "300000 100000")}, None),
        # The container sees its own group as the top, and the path is the host's.
        ({**V2, **v2("", "200000 100000")}, 2),
        ({"proc/self/cgroup": "0::/../../other\n", **v2("", "200000 100000")}, 2),
        ({"proc/self/cgroup": "0::/../x\n", "sys/fs/x/cpu.max": "200000 100000"}, None),
        ({"proc/self/cgroup": "0::" + "/a" * 5000 + "\n", **v2("", "200000 100000")}, 2),
        ({**V1, **v1(POD, "-1\n")}, None),
        ({**V1, **v1(POD, "250000\n")}, 3),
        ({**V1, **v1(POD, "-1\n"), **v1("kubepods.slice", "100000\n", "50000\n")}, 2),
        ({**V1, **v1("", "200000\n")}, 2),
        ({**V1, "sys/fs/cgroup/cpu.max": "100000 100000"}, 1),  # of the hierarchy of version 2
        # Odd files.
        ({**V2, **v2(POD, "")}, None),
        ({**V2, **v2(POD, "200000")}, None),
        ({**V2, **v2(POD, "200000 0")}, None),
        ({**V2, **v2(POD, "0 100000")}, None),
        ({**V2, **v2(POD, "-5 100000")}, None),
        ({**V2, **v2(POD, "2e5 100000")}, None),
        ({**V2, **v2(POD, "²00000 100000")}, None),
        ({**V2, **v2(POD, f"{'9' * 5000} 100000")}, None),
        ({**V2, **v2(POD, "200000 100000 7")}, None),
        ({**V1, **v1(POD, "200000\n", "")}, None),
        ({"proc/self/cgroup": "nonsense\n\n:\n0::/\0\n", **v2("", "200000 100000")}, 2),
    ],
)
def test_the_quota(files: Mapping[str, str], expected: int | None, tmp_path: pathlib.Path) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert quota_cores(tmp_path) == expected


def test_a_folder_in_the_place_of_a_file_is_no_quota(tmp_path: pathlib.Path) -> None:
    (tmp_path / "proc/self/cgroup").mkdir(parents=True)
    assert quota_cores(tmp_path) is None
