"""What a session keeps between steps: variables, queues, session tensors; and what it shares."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    RunRequest,
    SessionOptions,
    new_session,
    reset,
)
from runtime.framework.dtypes import DataType
from runtime.framework.resource_manager import ResourceManager
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import FLOAT, X, direct_session, graph_of, neg, queue_graph

SHORT = pb.RunOptions(timeout_in_ms=50)


def variable_graph(**attrs: str) -> pb.GraphDef:
    """A resource variable `rv` of floats: `assign` takes `value`; `read`, `is_initialized`."""
    graph = Graph()
    value = graph.placeholder("float32", "value")
    handle = graph.add(
        "VarHandleOp", name="rv", dtype=FLOAT, shape=(), **({"shared_name": "rv"} | attrs)
    )[0]
    graph.add("AssignVariableOp", handle, value, name="assign", dtype=FLOAT)
    graph.add("ReadVariableOp", handle, name="read", dtype=FLOAT)
    graph.add("VarIsInitializedOp", handle, name="is_initialized")
    return graph.graph_def


# --- variables ------------------------------------------------------------------------------------


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


def test_an_uninitialized_reference_variable() -> None:
    graph = Graph()
    v = graph.add("VariableV2", name="v", dtype=FLOAT, shape=())[0]
    graph.add("Identity", v, name="read")
    with pytest.raises(FailedPreconditionError) as caught:
        direct_session(graph.graph_def).run({}, ["read"])
    assert caught.value.message.startswith("Attempting to use uninitialized value v")


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


def test_variables_stay_when_the_graph_is_extended() -> None:
    session = direct_session(variable_graph())
    session.run({"value": X}, [], ["assign"])
    session.extend(graph_of(neg("negated", "read")))
    assert session.run({}, ["negated"]) == [-3]


def test_a_stateful_kernel_goes_on_where_it_was_after_an_extension() -> None:
    graph = Graph()
    options = {"dtype": FLOAT, "seed": 1, "seed2": 2}
    graph.add("RandomUniform", np.array([2], np.int32), name="draw", **options)
    whole, extended = direct_session(graph.graph_def), direct_session(graph.graph_def)
    expected = [whole.run({}, ["draw"])[0].tolist() for _ in range(2)]
    first = extended.run({}, ["draw"])[0].tolist()
    extended.extend(graph_of(neg("negated", "draw")))
    second = extended.run({}, ["draw"])[0].tolist()
    assert [first, second] == expected
    assert first != second


@pytest.mark.parametrize("isolated", [False, True])
def test_sessions_do_not_share_variables(isolated: bool) -> None:
    config = pb.ConfigProto(isolate_session_state=isolated)
    first = direct_session(variable_graph(), config)
    second = direct_session(variable_graph(), config)
    first.run({"value": X}, [], ["assign"])
    assert second.run({}, ["is_initialized"]) == [False]


def in_containers(*containers: str) -> pb.GraphDef:
    """Variables of the name "n", one in each container, with nodes `assign<i>` and `read<i>`."""
    graph = Graph()
    value = graph.placeholder("float32", "value")
    for index, container in enumerate(containers):
        handle = graph.add(
            "VarHandleOp",
            name=f"handle{index}",
            dtype=FLOAT,
            shape=(),
            container=container,
            shared_name="n",
        )[0]
        graph.add("AssignVariableOp", handle, value, name=f"assign{index}", dtype=FLOAT)
        graph.add("ReadVariableOp", handle, name=f"read{index}", dtype=FLOAT)
    return graph.graph_def


def test_a_container_scopes_the_names_in_it() -> None:
    session = direct_session(in_containers("A", "B", "A", "", "localhost"))
    for index, value in ((0, 1), (1, 2), (3, 3)):
        session.run({"value": np.float32(value)}, [], [f"assign{index}"])
    assert session.run({}, ["read0", "read1", "read2", "read4"]) == [1, 2, 1, 3]


def test_reset_forgets_the_named_containers() -> None:
    session = direct_session(in_containers("A", "B"))
    session.run({"value": X}, [], ["assign0", "assign1"])
    reset("", ["A"])
    assert [container for container, _, _ in session.resources] == ["B"]
    reset("")


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


# --- queues ---------------------------------------------------------------------------------------


def test_a_queue_keeps_its_elements_between_runs() -> None:
    session = direct_session(queue_graph())
    assert session.run({}, ["size"]) == [0]
    session.run({"value": X}, [], ["enq"])
    assert session.run({}, ["size"]) == [1]
    assert session.run({}, ["deq"]) == [3]
    assert session.run({}, ["size"]) == [0]


def test_a_closed_queue() -> None:
    session = direct_session(queue_graph())
    waiting = session.run_async(RunRequest({}, ["deq"]))
    session.run({}, [], ["close"])
    insufficient = (
        r"^FIFOQueue '_\d+_q' is closed and has insufficient elements "
        r"\(requested 1, current size 0\)"
    )
    with pytest.raises(OutOfRangeError, match=insufficient):
        waiting.result(timeout=30)
    with pytest.raises(OutOfRangeError, match=insufficient):
        session.run({}, ["deq"])
    with pytest.raises(CancelledError, match=r"^FIFOQueue '_\d+_q' is closed\."):
        session.run({"value": X}, [], ["enq"])


def test_a_full_queue_blocks_until_it_is_closed() -> None:
    session = direct_session(queue_graph())
    for _ in range(2):
        session.run({"value": X}, [], ["enq"])
    with pytest.raises(DeadlineExceededError):
        session.run({"value": X}, [], ["enq"], SHORT)
    waiting = session.run_async(RunRequest({"value": X}, [], ["enq"]))
    session.run({}, [], ["close_cancelling"])
    with pytest.raises(CancelledError, match=r"^Enqueue operation was cancelled"):
        waiting.result(timeout=30)
    assert [session.run({}, ["deq"])[0] for _ in range(2)] == [3, 3]
    with pytest.raises(OutOfRangeError, match="is closed and has insufficient elements"):
        session.run({}, ["deq"])


def test_an_element_of_another_type() -> None:
    graph = queue_graph()
    wrong = graph.node.add(name="wrong", op="QueueEnqueueV2", input=["q", "number"])
    wrong.attr["Tcomponents"].list.type.append(pb.DT_INT32)
    number = graph.node.add(name="number", op="Placeholder")
    number.attr["dtype"].type = pb.DT_INT32
    with pytest.raises(InvalidArgumentError) as caught:
        direct_session(graph).run({"number": np.int32(1)}, [], ["wrong"])
    assert caught.value.message.startswith(
        "Signature mismatch, have: resource, int32-> expected: resource, float->"
    )


# --- session tensors ------------------------------------------------------------------------------


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


def test_a_queue_without_a_shared_name_ends_with_its_session_in_a_shared_manager() -> None:
    shared = ResourceManager()
    private, named = Graph(), Graph()
    for graph, name in ((private, ""), (named, "known")):
        queue = graph.add(
            "FIFOQueueV2", name="queue", component_types=[FLOAT], shapes=[()], shared_name=name
        )[0]
        graph.add("QueueEnqueueV2", queue, [np.float32(1)], name="enqueue")
        graph.add("QueueSizeV2", queue, name="size")
    for graph in (private, named):
        session = new_session(SessionOptions(resources=shared))
        session.create(graph.graph_def)
        session.run({}, (), ["enqueue"])
        assert session.run({}, ["size"])[0] == 1
        assert len(list(shared)) == 1
        session.destroy()
    assert [(container, name) for container, name, _ in shared] == [("localhost", "known")]
