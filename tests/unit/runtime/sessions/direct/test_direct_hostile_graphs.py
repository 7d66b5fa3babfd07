"""Small graphs that request large allocations are refused; the session remains usable."""

from __future__ import annotations

import pytest

import protos as pb
from runtime.api import InvalidArgumentError, ResourceExhaustedError
from runtime.framework.tensor_codec import tensor_from_proto
from tests.unit.runtime.sessions.graphs import X, direct_session, g1, graph_of


def test_a_count_is_limited_before_memory_is_taken() -> None:
    node = pb.NodeDef(name="parts", op="Unpack", input=["n"])
    node.attr["num"].i = 1 << 30
    node.attr["T"].type = pb.DT_FLOAT
    session = direct_session(g1())
    with pytest.raises(ResourceExhaustedError) as caught:
        session.extend(graph_of(node))
    assert caught.value.message.startswith(
        "Attr 'num' of node parts is 1073741824: the limit is 65536"
    )
    assert session.run({"x": X}, ["n"]) == [-6]


@pytest.mark.parametrize(
    ("shape", "message"),
    [((1 << 40, 0, 1 << 40), "has too many elements"), ((1,) * 65, "at most 64 are supported")],
)
def test_a_tensor_of_a_shape_that_no_array_has(shape: tuple[int, ...], message: str) -> None:
    proto = pb.TensorProto(dtype=pb.DT_FLOAT)
    for size in shape:
        proto.tensor_shape.dim.add(size=size)
    with pytest.raises(InvalidArgumentError, match=message):
        tensor_from_proto(proto)


def test_a_width_of_text_is_limited() -> None:
    graph = g1()
    node = graph.node.add(name="text", op="AsString", input=["n"])
    node.attr["T"].type = pb.DT_FLOAT
    node.attr["precision"].i = 1 << 40
    with pytest.raises(ResourceExhaustedError, match="OOM when allocating tensor with shape"):
        direct_session(graph).run({"x": X}, ["text"])
