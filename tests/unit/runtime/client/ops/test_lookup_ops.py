"""Lookup tables: initialisers, lookups and updates."""

from __future__ import annotations

import numpy as np
import pytest

import runtime.client as tf
from runtime.foundation.errors import FailedPreconditionError


def test_tables(graph, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("zero\none\n")
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), default_value=-1
    )
    lines = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(
            str(words), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER,
        ),
        -1,
    )  # fmt: skip
    counts = tf.lookup.MutableHashTable(tf.string, tf.int64, 0)
    found = table.lookup(tf.constant([["a", "z"]]))
    assert found.shape == [1, 2]
    with tf.Session() as session:
        with pytest.raises(FailedPreconditionError, match="Table not initialized"):
            session.run(found)
        session.run(tf.tables_initializer())
        assert session.run(found).tolist() == [[1, -1]]
        assert session.run(lines.lookup(tf.constant(["one", "two"]))).tolist() == [1, -1]
        assert session.run([table.size(), lines.size()]) == [2, 2]
        session.run(counts.insert(["x", "y"], np.array([5, 6])))
        session.run(counts.remove(["y"]))
        assert session.run(counts.export())[0].tolist() == [b"x"]
        sparse = tf.SparseTensor([[0, 1]], ["x"], [1, 2])
        assert session.run(counts.lookup(sparse)).values.tolist() == [5]
    with pytest.raises(TypeError, match="Dtype of argument `keys` must be <dtype: 'string'>"):
        table.lookup(tf.constant([1]))
    assert len(graph.get_collection(tf.GraphKeys.ASSET_FILEPATHS)) == 1
