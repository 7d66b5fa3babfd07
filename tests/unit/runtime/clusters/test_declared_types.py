"""Nodes of functions may declare types that their inputs don't have."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.clusters.declared_types import has_declared_types, is_usable_constant
from runtime.framework.tensor_codec import tensor_to_proto
from runtime.graph.graph import Graph as RuntimeGraph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.node import Node
from tests.conformance.case import Graph


def relu_of_constant(value: pb.TensorProto | None = None) -> Node:
    graph = Graph()
    constant = graph.add("Const", name="c", dtype="float32", value=np.float32([1, 2]))[0]
    graph.add("Relu", constant, name="y")
    if value is not None:
        graph.graph_def.node[0].attr["value"].tensor.CopyFrom(value)
    return extend_graph(RuntimeGraph(), graph.graph_def).nodes["y"]


def test_a_node_as_declared() -> None:
    assert has_declared_types(relu_of_constant())


def test_an_attribute_that_disagrees_with_the_input() -> None:
    node = relu_of_constant()
    node.node_def.attr["T"].type = pb.DT_INT32
    node.set_attrs({})
    assert not has_declared_types(node)


def test_a_constant_that_disagrees_with_its_value() -> None:
    assert not has_declared_types(relu_of_constant(tensor_to_proto(np.int32([1, 2]))))


@pytest.mark.parametrize(("size", "is_usable"), [(100, True), (1 << 24, False)])
def test_a_repeated_element_that_claims_much_memory(size: int, is_usable: bool) -> None:
    (source, _), *_ = relu_of_constant().inputs
    source.set_attrs({"value": np.broadcast_to(np.float32(1), (size,))})
    assert is_usable_constant(source) is is_usable
