"""Sparse tensors that are fed and made dense."""

from __future__ import annotations

import runtime.client as tf


def test_sparse_tensors(graph):
    fed = tf.sparse_placeholder(tf.float32)
    given = tf.SparseTensor([[0, 1]], [2.0], [2, 2])
    with tf.Session() as session:
        assert session.run(tf.sparse_tensor_to_dense(given)).tolist() == [[0, 2], [0, 0]]
        dense = tf.sparse_tensor_to_dense(fed, default_value=-1.0)
        assert session.run(dense, {fed: ([[1]], [4.0], [2])}).tolist() == [-1, 4]
