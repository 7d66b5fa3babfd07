"""Static shapes and their refinement by set_shape."""

from __future__ import annotations

import pytest

from runtime.client import (
    TensorShape,
    float32,
    placeholder,
)


def test_shapes_are_added_to(graph):
    x = placeholder(float32, [None, 3])
    x.set_shape([2, None])
    assert x.shape == (2, 3)
    with pytest.raises(ValueError) as error:
        x.set_shape([3, 3])
    assert str(error.value) == (
        "Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2,3] and [3,3]."
    )
    with pytest.raises(ValueError, match="Shapes must be equal rank, but are 2 and 1"):
        x.set_shape([3])
    assert TensorShape([None, 3]).as_list() == [None, 3]
    assert TensorShape(None).rank is None
    assert TensorShape([2, 3]).num_elements() == 6
    assert not TensorShape([2, None]).is_fully_defined()
