"""Resource variables: values, and the messages of TensorFlow's errors."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import protos as pb
from runtime.api import FailedPreconditionError, InvalidArgumentError
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import FLOAT, X, direct_session, variable_graph


def test_a_resource_variable_before_anything_is_there() -> None:
    session = direct_session(variable_graph())
    with pytest.raises(FailedPreconditionError) as caught:
        session.run({}, ["read"])
    assert caught.value.message == (
        "Could not find variable rv. This could mean that the variable has been deleted. In TF1, "
        "it can also mean the variable is uninitialized. Debug info: container=localhost, status "
        "error message=Container localhost does not exist. "
        "(Could not find resource: localhost/rv)\n\t [[{{node read}}]]"
    )


def test_an_uninitialized_resource_variable() -> None:
    graph = variable_graph()
    other = graph.node.add(name="other", op="VarHandleOp")
    other.CopyFrom(graph.node[1])
    other.name, other.attr["shared_name"].s = "other", b"other"
    assign = graph.node.add()
    assign.CopyFrom(graph.node[2])
    assign.name = "assign_other"
    assign.input[0] = "other"
    session = direct_session(graph)
    assert session.run({}, ["is_initialized"]) == [False]
    session.run({"value": X}, [], ["assign_other"])
    with pytest.raises(FailedPreconditionError) as caught:
        session.run({}, ["read"])
    assert caught.value.message == (
        "Could not find variable rv. This could mean that the variable has been deleted. In TF1, "
        "it can also mean the variable is uninitialized. Debug info: container=localhost, status "
        "error message=Resource localhost/rv/N10tensorflow3VarE does not exist."
        "\n\t [[{{node read}}]]"
    )
    session.run({"value": X}, [], ["assign"])
    assert session.run({}, ["is_initialized", "read"]) == [True, 3]


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (np.zeros(2, np.float32), DataType.FLOAT,
         "Trying to assign to variable with tensor with wrong shape. Expected [] got [2]"),
        (np.int32(1), DataType.INT32,
         "Trying to assign variable with wrong dtype. Expected float got int32"),
    ],
)  # fmt: skip
def test_an_assign_of_another_shape_or_type(value: np.ndarray, dtype: DataType, text: str) -> None:
    graph = Graph()
    handle = graph.add("VarHandleOp", name="rv", dtype=FLOAT, shape=(), shared_name="rv")[0]
    graph.add("AssignVariableOp", handle, np.float32(1), name="first", dtype=FLOAT)
    graph.add("AssignVariableOp", handle, value, name="second", dtype=dtype, validate_shape=True)
    session = direct_session(graph.graph_def)
    session.run({}, [], ["first"])
    with pytest.raises(InvalidArgumentError) as caught:
        session.run({}, [], ["second"])
    assert caught.value.message.startswith(text)


def test_adding_is_atomic() -> None:
    graph = variable_graph()
    add = graph.node.add(name="add", op="AssignAddVariableOp", input=["rv", "value"])
    add.attr["dtype"].type = pb.DT_FLOAT
    session = direct_session(graph)
    session.run({"value": np.float32(0)}, [], ["assign"])

    def count() -> None:
        for _ in range(250):
            session.run({"value": np.float32(1)}, [], ["add"])

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.run({}, ["read"]) == [1000]
