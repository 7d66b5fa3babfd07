"""What a ray:// target says, and what is wrong with one."""

from __future__ import annotations

import pytest

from runtime.api import InvalidArgumentError
from runtime.sessions.ray_cluster.ray_target import (
    Placement,
    RayTarget,
    parse_ray_target,
    split_address,
)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("ray://auto", RayTarget("auto", Placement())),
        ("ray://10.0.0.5:6379", RayTarget("10.0.0.5:6379", Placement())),
        ("ray://[::1]:6379", RayTarget("[::1]:6379", Placement())),
        (
            "ray://auto?num_cpus=2.5&memory=4GiB&node=10.0.0.5",
            RayTarget("auto", Placement(2.5, 4 * 2**30, node="10.0.0.5")),
        ),
        (
            "ray://auto?label.ray.io/zone=a&label.kind=%26&resources.tpu=1&isolation=actor",
            RayTarget(
                "auto",
                Placement(
                    resources={"tpu": 1}, labels={"ray.io/zone": "a", "kind": "&"}, is_isolated=True
                ),
            ),
        ),
        ("ray://auto?isolation=host&memory=512", RayTarget("auto", Placement(memory=512))),
    ],
)
def test_what_a_target_says(target: str, said: RayTarget) -> None:
    assert parse_ray_target(target) == said


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("ray://", "expected ray://auto or ray://HOST:PORT"),
        ("ray://head", "expected ray://auto or ray://HOST:PORT .* got 'head'"),
        ("ray://:6379", "expected ray://auto or ray://HOST:PORT"),
        ("ray://head:6379/path", "expected ray://auto or ray://HOST:PORT"),
        ("ray://head:port", "expected ray://auto or ray://HOST:PORT"),
        ("ray://head:99999", "expected a port from 1 to 65535, got 99999"),
        ("ray://head:10001", "10001 is the port of Ray Client"),
        ("ray://auto?cpus=1", "unknown option cpus; the options are num_cpus, memory"),
        ("ray://auto?num_cpus=1&num_cpus=2", "num_cpus is given twice"),
        ("ray://auto?num_cpus=many", "expected a number for num_cpus, with 4 decimal places"),
        ("ray://auto?num_cpus=nan", "at most, got 'nan'"),
        ("ray://auto?num_cpus=1_0", "at most, got '1_0'"),
        ("ray://auto?num_cpus=0.00001", "at most, got '0.00001'"),
        ("ray://auto?resources.tpu=-1", "expected a number for resources.tpu, with 4"),
        ("ray://auto?resources.CPU=1", "expected num_cpus in place of resources.CPU"),
        ("ray://auto?resources.memory=1", "expected memory in place of resources.memory"),
        ("ray://auto?resources.object_store_memory=1", "gives no actor a part of object_store_mem"),
        ("ray://auto?memory=4GB", "expected memory in bytes, KiB, MiB, GiB or TiB"),
        ("ray://auto?isolation=process", "expected isolation=host or actor, got 'process'"),
    ],
)
def test_a_wrong_target_is_refused(target: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        parse_ray_target(target)


def test_addresses_are_split() -> None:
    assert split_address("head:6379") == ("head", 6379)
    assert split_address("[::1]:6379") == ("::1", 6379)
