"""Graphs: unique names, collections, and parts of a graph as messages."""

from __future__ import annotations

from runtime.client import (
    add_to_collection,
    constant,
    float32,
    get_collection,
    placeholder,
)


def test_names_are_made_unique(graph):
    names = [constant(1, name=name).op.name for name in ("c", "c", "C", "c")]
    assert names == ["c", "c_1", "C_2", "c_3"]
    assert constant(1).name == "Const:0"
    assert graph.unique_name("c", mark_as_used=False) == "c_4"
    assert graph.unique_name("c") == "c_4"


def test_collections(graph):
    a, b = constant(1, name="a"), constant(2, name="x/b")
    add_to_collection("k", a)
    graph.add_to_collections(["k", "l"], b)
    assert get_collection("k") == [a, b]
    assert get_collection("k", scope="x/") == [b]
    get_collection("k").append(1)
    assert get_collection("k") == [a, b]
    graph.get_collection_ref("k").append("c")
    assert get_collection("k") == [a, b, "c"]
    assert graph.get_all_collection_keys() == ["k", "l"]
    graph.clear_collection("k")
    assert get_collection("k") == []


def test_parts_of_the_graph_as_messages(graph):
    constant(1.0, name="a")
    before = graph.version
    placeholder(float32, [None, 2], name="b")
    part = graph.as_graph_def(from_version=before, add_shapes=True)
    assert [node.name for node in part.node] == ["b"]
    assert part.node[0].attr["_output_shapes"].list.shape[0].dim[1].size == 2
    assert part.versions.producer == 2474
