"""A run of a form that may need much memory is counted; what is not left, numpy kernels refuse."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.clusters.running import cluster as cluster_module
from runtime.executors.clustered import ClusteredExecutor
from runtime.framework.memory_account import MemoryAccount
from tests.unit.runtime.executors.clustered_steps import (
    cluster_of,
    eager,
    executor_of,
    new_step,
    ones,
    relu_of_sum,
    warm_up,
)

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.usefixtures("eager")
__all__ = ["eager"]
BYTES = 2 * 3 * 4  # of each tensor


class SeenAccount(MemoryAccount):
    """An account that keeps what was reserved."""

    def __init__(self, limit: int) -> None:
        super().__init__("the test", limit)
        self.reserved: list[int] = []

    def reserve(self, size: int) -> None:
        super().reserve(size)
        self.reserved.append(size)


def run(executor: ClusteredExecutor, memory: MemoryAccount) -> None:
    step = new_step()
    step.memory = memory
    (value,) = executor.run(step, [ones(2, 3), ones(2, 3)])
    np.testing.assert_array_equal(value, 2 * ones(2, 3))


@pytest.fixture
def executor() -> ClusteredExecutor:
    made = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(made, ones(2, 3), ones(2, 3))
    return made


def test_a_small_run_is_not_counted(executor: ClusteredExecutor) -> None:
    memory = SeenAccount(1 << 20)
    (form,) = cluster_of(executor).forms
    runs = form.runs
    run(executor, memory)
    assert form.runs == runs + 1
    assert memory.reserved == []


def test_a_large_run_is_set_aside_each_time(
    monkeypatch: pytest.MonkeyPatch, executor: ClusteredExecutor
) -> None:
    monkeypatch.setattr(cluster_module, "_UNCOUNTED_BYTES", BYTES)
    cluster_of(executor)._set_forms(cluster_of(executor).forms)  # forget what is known
    memory = SeenAccount(1 << 20)
    (form,) = cluster_of(executor).forms
    runs = form.runs
    for _ in range(2):
        run(executor, memory)
    assert form.runs == runs + 2
    assert memory.reserved == [4 * BYTES] * 2
    assert memory.left == 1 << 20


def test_numpy_kernels_run_what_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, executor: ClusteredExecutor
) -> None:
    monkeypatch.setattr(cluster_module, "_UNCOUNTED_BYTES", BYTES)
    cluster_of(executor)._set_forms(cluster_of(executor).forms)
    (form,) = cluster_of(executor).forms
    runs = form.runs
    run(executor, SeenAccount(3 * BYTES))
    assert form.runs == runs
