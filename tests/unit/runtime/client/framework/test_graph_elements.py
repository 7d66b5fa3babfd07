"""Lookup of operations and tensors by name."""

from __future__ import annotations

import pytest

from runtime.client import (
    constant,
)


def test_operations_and_tensors_by_name(graph):
    a = constant(2.0, name="a")
    assert graph.get_operation_by_name("a") is a.op
    assert graph.get_tensor_by_name("a:0") is a
    assert graph.as_graph_element("a:0") is a
    form = 'Tensor names must be of the form "<op_name>:<output_index>".'
    nowhere = "refers to an Operation not in the graph."
    for call, kind, message in (
        (lambda: graph.get_operation_by_name("zz"), KeyError, f"The name 'zz' {nowhere}"),
        (
            lambda: graph.get_operation_by_name("a:0"),
            ValueError,
            "Name 'a:0' appears to refer to a Tensor, not a Operation.",
        ),
        (
            lambda: graph.get_operation_by_name(1),
            TypeError,
            "Operation names are strings (or similar), not int.",
        ),
        (
            lambda: graph.get_tensor_by_name(None),
            TypeError,
            "Tensor names are strings (or similar), not NoneType.",
        ),
        (
            lambda: graph.get_tensor_by_name("zz"),
            ValueError,
            f"The name 'zz' looks like an (invalid) Operation name, not a Tensor. {form}",
        ),
        (
            lambda: graph.get_tensor_by_name("a"),
            ValueError,
            f"The name 'a' refers to an Operation, not a Tensor. {form}",
        ),
        (
            lambda: graph.as_graph_element(a, allow_tensor=False),
            TypeError,
            "Can not convert a Tensor into a Operation.",
        ),
        (
            lambda: graph.as_graph_element("a", False, False),
            ValueError,
            "allow_tensor and allow_operation can't both be False.",
        ),
    ):
        with pytest.raises(kind) as error:
            call()
        assert error.value.args[0] == message
