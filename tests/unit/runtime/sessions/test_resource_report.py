"""What a session holds, as people see it."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from runtime.foundation.errors import CancelledError, InvalidArgumentError, NotFoundError
from runtime.foundation.running_task import set_running_task
from runtime.framework.cancellation import CancellationManager
from runtime.framework.dtypes import DataType
from runtime.framework.resource_manager import ResourceManager
from runtime.framework.resources.lookup_table import HashTable
from runtime.framework.resources.queues import Queue
from runtime.framework.resources.variable import Variable
from runtime.sessions import resource_report
from runtime.sessions.resource_report import report_resources, variable_histogram


def manager(**values: np.ndarray | None) -> ResourceManager:
    """A manager with variables of these values."""
    resources = ResourceManager()
    for name, value in values.items():
        dtype = DataType.FLOAT if value is None else {
            "f": DataType.FLOAT, "i": DataType.INT32, "O": DataType.STRING, "b": DataType.BOOL,
            "c": DataType.COMPLEX64, "V": DataType.BFLOAT16, "d": DataType.DOUBLE,
        }["d" if value.dtype == np.float64 else value.dtype.kind]  # fmt: skip
        variable = Variable(dtype, name)
        if value is not None:
            variable.assign(value)
        resources.put("", name, variable)
    return resources


def test_variables_queues_and_tables_are_listed_with_their_fill() -> None:
    resources = manager(b=np.zeros((2, 3), np.float32), a=None, s=np.array([b"xyz"], object))
    queue = Queue("q", (DataType.FLOAT,), (), 5)
    queue.enqueue([(np.float32(1),), (np.float32(2),)], CancellationManager())
    resources.put("", "q", queue)
    resources.put("", "endless", Queue("endless", (DataType.FLOAT,), (), -1))
    resources.put("", "t", HashTable(DataType.STRING, DataType.INT64))
    report = report_resources(resources, 10)
    assert [(each.name, each.dtype, each.shape) for each in report.variables] == [
        ("a", "float32", None), ("b", "float32", (2, 3)), ("s", "string", (1,)),
    ]  # fmt: skip
    assert report.variables[0].bytes == 0 and report.variables[1].bytes == 24
    endless, filled = report.queues
    assert (endless.name, endless.kind, endless.size, endless.capacity) == (
        "endless", "FIFOQueue", 0, None,
    )  # fmt: skip
    assert (filled.size, filled.capacity) == (2, 5) and filled.bytes > 0
    assert [(each.name, each.kind, each.size) for each in report.others] == [("t", "HashTable", 0)]
    assert not report.is_cut


def test_long_lists_are_cut() -> None:
    report = report_resources(manager(a=None, b=None, c=None), 2)
    assert [each.name for each in report.variables] == ["a", "b"] and report.is_cut


def test_the_weights_that_a_fork_shares_have_their_size() -> None:
    resources = manager(w=np.zeros(100, np.float32))
    fork = resources.fork()
    assert fork is not None
    assert report_resources(fork, 9).variables[0].bytes == 400


def test_a_histogram() -> None:
    values = np.array([0, 1, 1, 2, np.nan, 4, -np.inf], np.float32)
    found = variable_histogram(manager(v=values), "v", 4)
    assert (found.count, found.examined, found.non_finite) == (7, 7, 2)
    assert (found.minimum, found.maximum, found.mean) == (0.0, 4.0, 1.6)
    assert found.std == pytest.approx(np.std([0, 1, 1, 2, 4]))
    assert found.edges == [0, 1, 2, 3, 4] and found.counts == [1, 2, 1, 1]


@pytest.mark.parametrize(
    "value",
    [
        np.arange(12, dtype=np.int32).reshape(3, 4),
        np.arange(12, dtype=np.int32).reshape(4, 3).T,
        np.broadcast_to(np.arange(12, dtype=np.int32), (3, 12))[:, ::2],
        np.arange(12, dtype=ml_dtypes.bfloat16),
        np.array(3.0, np.float32),
        np.array([True, False, True]),
    ],
)
def test_values_of_any_layout_and_real_type_are_counted(value: np.ndarray, monkeypatch) -> None:
    monkeypatch.setattr(resource_report, "_CHUNK", 5)
    found = variable_histogram(manager(v=value), "v", 3)
    assert sum(found.counts) == found.count == value.size
    assert found.mean == pytest.approx(float(value.astype(np.float64).mean()))
    assert len(found.edges) == len(found.counts) + 1


def test_a_histogram_without_finite_values_is_empty() -> None:
    for value in (np.zeros(0, np.float32), np.full(3, np.nan, np.float32)):
        found = variable_histogram(manager(v=value), "v", 4)
        assert found.counts == found.edges == [] and found.mean is None
        assert found.non_finite == value.size


def test_a_range_beyond_the_largest_number_has_edges() -> None:
    most = float(np.finfo(np.float64).max)
    found = variable_histogram(manager(v=np.array([-most, 0, most])), "v", 2)
    assert found.edges == [-most, 0, most] and found.counts == [1, 2]


def test_of_many_values_every_nth_is_looked_at(monkeypatch) -> None:
    monkeypatch.setattr(resource_report, "MAX_VALUES", 10)
    monkeypatch.setattr(resource_report, "_CHUNK", 4)
    found = variable_histogram(manager(v=np.arange(25, dtype=np.float32)), "v", 2)
    assert (found.count, found.examined, sum(found.counts)) == (25, 9, 9)
    assert math.isclose(found.mean or 0, 12.0) and found.maximum == 24


def test_what_has_no_histogram() -> None:
    resources = manager(s=np.array([b"x"], object), c=np.zeros(1, np.complex64), empty=None)
    for name in ("s", "c"):
        with pytest.raises(InvalidArgumentError, match="only real numbers"):
            variable_histogram(resources, name, 4)
    with pytest.raises(InvalidArgumentError, match="no value"):
        variable_histogram(resources, "empty", 4)
    with pytest.raises(NotFoundError, match="no variable 'other'"):
        variable_histogram(resources, "other", 4)


def test_a_histogram_ends_when_its_task_has_ended() -> None:
    set_running_task([CancelledError("enough")])
    try:
        with pytest.raises(CancelledError, match="enough"):
            variable_histogram(manager(v=np.zeros(3, np.float32)), "v", 4)
    finally:
        set_running_task(())
