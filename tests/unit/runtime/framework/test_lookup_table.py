"""Lookup tables between sessions: forks share until one of them writes."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.resources.lookup_table import HashTable
from runtime.framework.resources.mutable_hash_table import MutableDenseHashTable, MutableHashTable

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
