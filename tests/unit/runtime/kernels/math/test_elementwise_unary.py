"""Elementwise functions whose answer for a type is not TensorFlow's."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.api import SessionOptions, new_session
from tests.conformance.case import Graph


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_an_integer_rounded_is_itself(dtype: type) -> None:
    graph = Graph()
    graph.add("Round", np.array([-3, 0, 7], dtype), name="result")
    session = new_session(SessionOptions())
    session.create(graph.graph_def)
    (rounded,) = session.run({}, ("result:0",))
    assert rounded.dtype == dtype
    np.testing.assert_array_equal(rounded, [-3, 0, 7])
    session.close()
