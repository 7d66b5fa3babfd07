"""Static hash tables: forks share the contents of a table that was initialised."""

from __future__ import annotations

import numpy as np

from runtime.framework.dtypes import DataType
from runtime.framework.resources.lookup_table import HashTable

KEYS = np.array([b"a", b"b"], object)


VALUES = np.array([1, 2], np.int64)


MISSING = np.array(-1, np.int64)


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
