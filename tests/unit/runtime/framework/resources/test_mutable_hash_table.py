"""Mutable hash tables: forks, import and export."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.resources.mutable_hash_table import MutableDenseHashTable, MutableHashTable
from tests.unit.runtime.framework.resources.concurrent_calls import Concurrent

KEYS = np.array([b"a", b"b"], object)
VALUES = np.array([1, 2], np.int64)
MISSING = np.array(-1, np.int64)


def mutable_table() -> MutableHashTable:
    table = MutableHashTable(DataType.STRING, DataType.INT64)
    table.insert(KEYS, VALUES)
    return table


def dense_table() -> MutableDenseHashTable:
    reserved = np.array(0, np.int64), np.array(-1, np.int64)
    return MutableDenseHashTable(DataType.INT64, DataType.INT64, (), *reserved)


@pytest.mark.parametrize("writer", ["original", "fork"])
def test_a_write_after_a_fork_is_not_seen_by_the_other(writer: str) -> None:
    table = mutable_table()
    fork = table.fork()
    written, other = (table, fork) if writer == "original" else (fork, table)
    written.insert(KEYS[:1], VALUES[1:])
    written.remove(KEYS[1:])
    assert written.find(KEYS, MISSING).tolist() == [2, -1]
    assert other.find(KEYS, MISSING).tolist() == [1, 2]


def test_a_dense_table_takes_back_what_was_exported() -> None:
    table = dense_table()
    table.insert(np.array([5, 6]), np.array([50, 60]))
    keys, values = table.export_values()
    assert keys.shape == values.shape == (2, 1)
    copy = dense_table()
    copy.check_import(keys, values)
    copy.import_values(keys, values)
    assert copy.find(np.array([6, 7]), MISSING).tolist() == [60, -1]


def test_an_import_into_a_dense_table_skips_reserved_keys() -> None:
    table = dense_table()
    table.import_values(np.array([[0], [5], [-1]]), np.array([[1], [2], [3]]))
    assert table.export_values()[0].tolist() == [[5]]


def test_an_import_into_a_dense_table_needs_matrices() -> None:
    with pytest.raises(InvalidArgumentError, match=r"Expected shape \[2,1\] for key, got \[2\]"):
        dense_table().check_import(VALUES, VALUES)


def test_strings_keep_their_trailing_zero_bytes() -> None:
    table = MutableHashTable(DataType.STRING, DataType.STRING)
    table.insert(np.array([b"a\0"], object), np.array([b"b\0"], object))
    keys, values = table.export_values()
    assert (keys.tolist(), values.tolist()) == ([b"a\0"], [b"b\0"])


def test_the_size_of_a_table_is_that_before_or_after_a_removal() -> None:
    table = MutableHashTable(DataType.INT64, DataType.INT64)
    size = Concurrent(table, lambda: table.size)
    started: list[str] = []

    class Watched(dict[Any, Any]):
        def pop(self, *arguments: Any) -> Any:
            value = super().pop(*arguments)
            if not started:
                started.append(size.start())
            return value

    table._values = Watched({1: 1, 2: 2, 3: 3})
    table.remove(np.array([1, 2, 3], np.int64))
    assert started == ["waits"]
    assert size.result() == 0
