"""Global norms of tensors and slices, and clipping by them."""

from __future__ import annotations

import numpy as np
import pytest

import runtime.client as tf


def test_norms_and_clips(session):
    slices = tf.IndexedSlices([[3.0, 0.0]], [1], [4, 2])
    tensors = [tf.constant([0.0, 4.0]), None, slices]
    assert session.run(tf.global_norm(tensors)) == 5
    clipped, norm = tf.clip_by_global_norm(tensors, 2.5)
    assert clipped[1] is None
    found = session.run([clipped[0], clipped[2], norm])
    assert found[0].tolist() == [0, 2]
    assert found[1].values.tolist() == [[1.5, 0]]
    assert found[2] == 5
    kept, _ = tf.clip_by_global_norm(tensors, 10.0)
    assert session.run(kept[0]).tolist() == [0, 4]
    infinite, _ = tf.clip_by_global_norm([tf.constant([np.inf])], 1.0)
    assert np.isnan(session.run(infinite[0])).all()
    assert session.run(tf.clip_by_norm(tf.constant([3.0, 4.0]), 1.0)) == pytest.approx([0.6, 0.8])
    assert session.run(tf.clip_by_norm(tf.constant([0.0, 0.0]), 1.0)).tolist() == [0, 0]
    with pytest.raises(TypeError, match="t_list should be a sequence"):
        tf.global_norm(tf.constant(1.0))
