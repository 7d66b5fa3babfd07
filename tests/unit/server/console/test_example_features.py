"""What a graph reads from serialized examples."""

from __future__ import annotations

import base64
import pathlib

import numpy as np
import pytest

import protos as pb
from runtime.framework.tensor_codec import tensor_to_proto
from runtime.saved_model.saved_model_files import find_meta_graph, read_saved_model
from server.console.example_features import required_features, serialized_example

MODELS = pathlib.Path(__file__).parents[3] / "fixtures" / "saved_models"


@pytest.mark.parametrize(
    ("model", "features"),
    [
        ("half_plus_two", {"x": [1.0], "x2": [1.0]}),
        ("half_plus_two_tf2", {"x": [1.0]}),  # in a function
        ("wide_and_deep", {"age": [1.0], "gains": [1.0, 1.0, 1.0]}),
        ("mlp_small", {}),
    ],
)
def test_features_of_models(model: str, features: dict[str, list[float]]) -> None:
    meta_graph_def = find_meta_graph(read_saved_model(str(MODELS / model)), ["serve"])
    assert required_features(meta_graph_def.graph_def) == features


def test_a_node_of_version_1_has_an_input_for_each_key() -> None:
    graph = pb.GraphDef()
    for name in ("s", "i"):
        key = graph.node.add(name=name, op="Const")
        key.attr["value"].tensor.CopyFrom(tensor_to_proto(np.array(name.encode(), object)))
    graph.node.add(name="fed", op="Placeholder")
    node = graph.node.add(name="p", op="ParseExample", input=["e", "names", "other", "s", "i"])
    node.attr["Nsparse"].i, node.attr["Ndense"].i = 1, 2
    node.attr["Tdense"].list.type.extend([pb.DT_STRING, pb.DT_INT64])
    node.attr["dense_shapes"].list.shape.add()
    node.attr["dense_shapes"].list.shape.add().dim.add(size=2)
    features = required_features(graph)
    assert features == {"s": [""], "i": [0, 0]}
    example = pb.Example.FromString(base64.b64decode(serialized_example(features)["b64"]))
    assert list(example.features.feature["i"].int64_list.value) == [0, 0]
    assert list(example.features.feature["s"].bytes_list.value) == [b""]
    node.input[4] = "fed"  # a key that only a step knows
    assert required_features(graph) == {}
