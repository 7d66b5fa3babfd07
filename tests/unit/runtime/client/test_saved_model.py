"""SavedModels that are written from a session."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.api import SessionOptions, load_saved_model
from runtime.client import (
    GraphKeys,
    Session,
    SparseTensor,
    Variable,
    add_to_collection,
    cond,
    constant,
    float32,
    global_variables_initializer,
    int64,
    ops,
    placeholder,
    saved_model,
    string,
)


def test_a_saved_model_of_a_session(graph, tmp_path):
    x = placeholder(float32, [None, 2], name="x")
    weights = Variable([[1.0], [2.0]], name="w")
    offset = Variable(0.5, use_resource=False)
    y = cond(weights[0, 0] > 0, lambda: x @ weights + offset, lambda: x @ weights)
    out = tmp_path / "model"
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(weights.assign_add([[1.0], [1.0]]))
        saved_model.simple_save(session, out, {"x": x}, {"y": y})
        assert session.run(y, {x: [[1, 1]]}) == [[5.5]]  # the added nodes do not change it
    bundle = load_saved_model(SessionOptions(), None, str(out), {"serve"})
    signature = bundle.signatures["serving_default"]
    assert signature.inputs["x"].tensor_shape.dim[1].size == 2
    feeds = {signature.inputs["x"].name: np.ones((1, 2), np.float32)}
    assert bundle.session.run(feeds, [signature.outputs["y"].name])[0] == [[5.5]]


def test_a_saved_model_with_a_table_and_its_asset(graph, tmp_path):
    (tmp_path / "words.txt").write_text("a\nb\nc\n")
    path = constant(str(tmp_path / "words.txt"))
    add_to_collection(GraphKeys.ASSET_FILEPATHS, path)
    table = ops.HashTableV2(string, int64, shared_name="words")
    fill = ops.InitializeTableFromTextFileV2(table, path, -2, -1)
    words = placeholder(string, [None], name="words")
    found = ops.LookupTableFindV2(table, words, constant(-1, int64), name="found")
    with Session() as session:
        builder = saved_model.Builder(tmp_path / "model")
        signature = saved_model.predict_signature_def({"words": words}, {"found": found})
        builder.add_meta_graph_and_variables(
            session, [saved_model.SERVING], {"serving_default": signature}, main_op=fill
        )
        builder.save()
    (tmp_path / "words.txt").unlink()
    bundle = load_saved_model(SessionOptions(), None, str(tmp_path / "model"), {"serve"})
    values = bundle.session.run({"words:0": np.array([b"b", b"z"], object)}, ["found:0"])
    assert values[0].tolist() == [1, -1]


def test_signatures_are_made_of_tensors(graph):
    sparse = SparseTensor([[0, 0]], [1.0], [1, 1])
    info = saved_model.build_tensor_info(sparse)
    assert info.coo_sparse.values_tensor_name == sparse.values.name
    with pytest.raises(TypeError, match="A signature is made of tensors, got 1"):
        saved_model.build_tensor_info(1)
