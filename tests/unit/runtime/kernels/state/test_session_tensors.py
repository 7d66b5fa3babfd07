"""Session tensors: kept, read, fed and deleted by their handles."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import InvalidArgumentError
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import FLOAT, X, direct_session


def session_tensor_graph() -> pb.GraphDef:
    """`keep` a value; `get` the value of a kept handle; `forget` it; `use` another resource."""
    graph = Graph()
    value = graph.placeholder("float32", "value")
    graph.add("GetSessionHandleV2", value, name="keep")
    graph.add("GetSessionHandle", value, name="keep_as_string")
    handle = graph.placeholder("string", "handle")
    graph.add("GetSessionTensor", handle, name="get", dtype=FLOAT)
    graph.add("DeleteSessionTensor", handle, name="forget")
    graph.add("Neg", value, name="negated")
    graph.add("VarHandleOp", name="variable", dtype=FLOAT, shape=())
    taker = graph.placeholder("resource", "resource")
    graph.add("ReadVariableOp", taker, name="use", dtype=FLOAT)
    return graph.graph_def


def test_a_session_tensor_is_kept_given_and_forgotten() -> None:
    session = direct_session(session_tensor_graph())
    (handle,) = session.run({"value": X}, ["keep_as_string"])
    assert session.run({"handle": handle}, ["get"]) == [3]
    assert session.run({"handle": handle}, ["get"]) == [3]
    session.run({"handle": handle}, [], ["forget"])
    with pytest.raises(InvalidArgumentError, match="' is not in the session store"):
        session.run({"handle": handle}, ["get"])


def test_the_handle_of_a_session_tensor_may_be_fed_in_its_place() -> None:
    session = direct_session(session_tensor_graph())
    (handle,) = session.run({"value": X}, ["keep"])
    name = np.array(handle.name.encode(), object)
    assert session.run({"handle": name}, ["get"]) == [3]
    assert session.run({"value": handle}, ["negated"]) == [-3]


def test_no_other_resource_may_be_fed() -> None:
    session = direct_session(session_tensor_graph())
    (variable,) = session.run({}, ["variable"])
    with pytest.raises(InvalidArgumentError) as caught:
        session.run({"resource": variable}, ["use"])
    assert caught.value.message.startswith("Invalid resource type hash code: ")
