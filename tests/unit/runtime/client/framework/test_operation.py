"""Operations and tensors: how they print, their consumers, and uses that need a value."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.client import (
    OperatorNotAllowedInGraphError,
    constant,
    float32,
    identity,
    no_op,
    placeholder,
)


def test_how_tensors_and_operations_print(graph):
    x = placeholder(float32, [None, 3], name="x")
    assert str(x) == 'Tensor("x:0", shape=(None, 3), dtype=float32)'
    assert repr(x) == "<tf.Tensor 'x:0' shape=(None, 3) dtype=float32>"
    assert repr(x.op) == "<tf.Operation 'x' type=Placeholder>"
    assert str(placeholder(float32, name="any")) == 'Tensor("any:0", dtype=float32)'
    assert str(no_op(name="grp")) == 'name: "grp"\nop: "NoOp"\n'


def test_what_needs_a_value(graph):
    one = constant(1.0, name="one")
    for call, kind, message in (
        (lambda: bool(one), OperatorNotAllowedInGraphError, "as a Python `bool` is not allowed"),
        (lambda: list(one), OperatorNotAllowedInGraphError, "Iterating over a symbolic"),
        (lambda: len(one), TypeError, "len is not well defined for a symbolic Tensor"),
        (lambda: np.array(one), NotImplementedError, "Cannot convert a symbolic tf.Tensor"),
    ):
        with pytest.raises(kind, match=message):
            call()
    assert one != constant(1.0)
    assert {one: 1}[one] == 1


def test_consumers_of_a_tensor(graph):
    a = constant(1.0)
    reader = identity(a).op
    assert a.consumers() == [reader]
    assert reader.inputs == (a,)
    assert reader.get_attr("T") is float32
    with pytest.raises(ValueError, match="has no attr named 'zz'"):
        reader.get_attr("zz")
