"""Static hash tables: forks share contents, and no thread sees a table half initialised."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runtime.foundation.errors import FailedPreconditionError
from runtime.framework.dtypes import DataType
from runtime.framework.resources import lookup_table
from runtime.framework.resources.lookup_table import HashTable
from tests.unit.runtime.framework.resources.concurrent_calls import Concurrent

KEYS = np.array([b"a", b"b"], object)
VALUES = np.array([1, 2], np.int64)
MISSING = np.array(-1, np.int64)
NUMBERS = np.array([1, 2, 3], np.int64)


def test_forks_of_a_filled_table_share_its_contents() -> None:
    table = HashTable(DataType.STRING, DataType.INT64)
    table.initialize(KEYS, VALUES)
    fork = table.fork()
    assert fork.find(KEYS, MISSING).tolist() == [1, 2]
    assert fork.export_values()[1] is table.export_values()[1]
    assert table.bytes_held == fork.bytes_held == 0


def test_forks_of_an_empty_table_are_filled_apart() -> None:
    table = HashTable(DataType.STRING, DataType.INT64)
    fork = table.fork()
    table.initialize(KEYS, VALUES)
    assert table.size == 2
    assert not fork.is_initialized


def while_filling(monkeypatch: pytest.MonkeyPatch, call: Concurrent) -> list[str]:
    """Start `call` while a HashTable is filled; the list then holds what `start` returned."""
    original, started = lookup_table._Contents.of_rows, list[str]()

    def of_rows(*arguments: Any) -> Any:
        if not started:
            started.append("begins")
            started[0] = call.start()
        return original(*arguments)

    monkeypatch.setattr(lookup_table._Contents, "of_rows", of_rows)
    return started


def test_two_initialisations_with_other_contents_do_not_both_succeed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = HashTable(DataType.INT64, DataType.INT64)
    other = Concurrent(table, lambda: table.initialize(NUMBERS[:2], NUMBERS[:2]))
    started = while_filling(monkeypatch, other)
    table.initialize(NUMBERS, NUMBERS)
    assert started == ["waits"]
    with pytest.raises(FailedPreconditionError) as caught:
        other.result()
    assert caught.value.message == "Table was already initialized with different data."
    assert table.size == 3


def test_a_fork_during_an_initialisation_shares_the_contents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = HashTable(DataType.INT64, DataType.INT64)
    fork = Concurrent(table, table.fork)
    started = while_filling(monkeypatch, fork)
    table.initialize(NUMBERS, NUMBERS)
    assert started == ["waits"]
    assert fork.result().size == 3
    assert table.bytes_held == fork.result().bytes_held == 0
