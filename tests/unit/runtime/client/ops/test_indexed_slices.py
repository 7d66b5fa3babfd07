"""IndexedSlices that can not be converted to a tensor."""

from __future__ import annotations

import pytest

import runtime.client as tf


def test_slices_without_a_shape_are_no_tensor(session):
    slices = tf.IndexedSlices([[1.0]], [0])
    with pytest.raises(ValueError, match="IndexedSlices without dense_shape"):
        tf.convert_to_tensor(slices)
    assert session.run(slices).dense_shape is None
