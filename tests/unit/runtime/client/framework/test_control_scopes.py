"""Control dependencies of operations in nested scopes."""

from __future__ import annotations

import pytest

from runtime.client import (
    constant,
    control_dependencies,
    identity,
    no_op,
)


def test_control_dependencies(graph):
    a, b = constant(1.0, name="a"), constant(2.0, name="b")
    with control_dependencies([a]):
        inner = constant(3.0)
        assert inner.op.control_inputs == [a.op]
        assert identity(a).op.control_inputs == []  # `a` is its data input
        assert identity(inner).op.control_inputs == []  # its input waits for `a`
        with control_dependencies([b.op, "a"]):
            assert no_op().control_inputs == [a.op, b.op]
        with control_dependencies(None):
            assert no_op().control_inputs == []
        with control_dependencies([]):
            assert no_op().control_inputs == [a.op]
    with pytest.raises(TypeError, match="Can not convert a int into a Tensor or Operation"):
        graph.control_dependencies([1]).__enter__()
