"""Creating a session from a MetaGraphDef."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    RuntimeSession,
    SessionOptions,
    load_meta_graph_into_session,
)
from runtime.saved_model import meta_graph as meta_graph_module
from tests.conformance.case import Graph


def two() -> pb.MetaGraphDef:
    graph = Graph()
    graph.add("Const", name="two", dtype=np.float32, value=np.float32(2))
    return pb.MetaGraphDef(graph_def=graph.graph_def)


def test_the_session_has_the_graph() -> None:
    session = load_meta_graph_into_session(SessionOptions(), two())
    assert session.run({}, ["two"]) == [2.0]
    session.close()


def test_a_target_that_no_factory_accepts() -> None:
    with pytest.raises(NotFoundError, match="No session factory registered"):
        load_meta_graph_into_session(SessionOptions(target="local"), two())


def test_a_pool_of_another_size() -> None:
    def pool(num_threads: int) -> SessionOptions:
        entry = pb.ThreadPoolOptionProto(num_threads=num_threads, global_name="meta_graph")
        return SessionOptions(config=pb.ConfigProto(session_inter_op_thread_pool=[entry]))

    load_meta_graph_into_session(pool(2), two()).close()
    with pytest.raises(InvalidArgumentError) as caught:
        load_meta_graph_into_session(pool(3), two())
    assert caught.value.message == (
        "Pool meta_graph configured previously with num_threads=2; "
        "cannot re-configure with num_threads=3"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda node: node.attr["value"].tensor.tensor_shape.dim.add(size=-1),
            'Saved model contains node "two" (op "Const") which initializes from a tensor with '
            "-1 elements",
        ),
        (
            lambda node: setattr(node.attr["value"].tensor.tensor_shape, "unknown_rank", True),
            'Saved model contains node "two" (op "Const") which initializes from a tensor with '
            "-1 elements",
        ),
        (
            lambda node: node.attr.pop("value"),
            'Saved model contains node "two" which is a constant tensor but no value has been '
            "provided",
        ),
    ],
)
@pytest.mark.parametrize("inside", ["graph", "function"])
def test_constants_without_a_value(change: object, message: str, inside: str) -> None:
    meta_graph = two()
    node = meta_graph.graph_def.node[0]
    if inside == "function":
        function = meta_graph.graph_def.library.function.add()
        function.signature.name = "f"
        node = function.node_def.add()
        node.CopyFrom(meta_graph.graph_def.node[0])
    change(node)  # type: ignore[operator]
    with pytest.raises(FailedPreconditionError) as caught:
        load_meta_graph_into_session(SessionOptions(), meta_graph)
    assert caught.value.message == message


def test_a_function_that_is_its_own_op() -> None:
    meta_graph = two()
    function = meta_graph.graph_def.library.function.add()
    function.signature.name = "f"
    function.node_def.add(name="again", op="f")
    with pytest.raises(FailedPreconditionError, match="Function f is self recursive"):
        load_meta_graph_into_session(SessionOptions(), meta_graph)


def test_no_session_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[RuntimeSession] = []

    def remember(options: SessionOptions) -> RuntimeSession:
        made.append(original(options))
        return made[-1]

    original = meta_graph_module.new_session
    monkeypatch.setattr(meta_graph_module, "new_session", remember)
    broken = two()
    broken.graph_def.node.add(name="two", op="NoOp")
    with pytest.raises(InvalidArgumentError, match="Node 'two' is not unique"):
        load_meta_graph_into_session(SessionOptions(), broken)
    with pytest.raises(CancelledError, match="Session has been closed"):
        made[0].run({}, ["two"])
