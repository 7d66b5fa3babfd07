"""How many cores the process counts for itself."""

from __future__ import annotations

import os

import pytest

from runtime.foundation import global_thread_pools
from runtime.foundation.global_thread_pools import GlobalThreadPools, schedulable_cores


@pytest.mark.parametrize(
    ("affinity", "quota", "expected"), [(64, None, 64), (64, 2, 2), (1, 2, 1), (3, 3, 3)]
)
def test_cores_are_those_of_the_affinity_and_of_the_quota(
    affinity: int, quota: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(affinity)), raising=False)
    monkeypatch.setattr(global_thread_pools, "_quota", lambda: quota)
    assert schedulable_cores() == expected
    pool = GlobalThreadPools().get_or_create("cores", 0)
    try:
        assert pool.num_threads == expected
    finally:
        pool.shutdown()


def test_without_an_affinity_the_machine_s_cores_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    monkeypatch.setattr(global_thread_pools, "_quota", lambda: None)
    assert schedulable_cores() == 5
