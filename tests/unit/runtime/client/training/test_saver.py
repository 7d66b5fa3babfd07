"""Checkpoints that a Saver writes and restores."""

from __future__ import annotations

import pytest

import runtime.client as tf
from runtime.api import FailedPreconditionError, NotFoundError


@pytest.mark.parametrize("use_resource", [True, False], ids=["resource", "reference"])
def test_a_checkpoint_brings_values_back(session, tmp_path, use_resource):
    first = tf.Variable([1.0, 2.0], name="first", use_resource=use_resource)
    second = tf.Variable(3, name="second", use_resource=use_resource)
    saver = tf.train.Saver()
    with pytest.raises(FailedPreconditionError):
        saver.save(session, tmp_path / "model")
    session.run(tf.global_variables_initializer())
    path = saver.save(session, tmp_path / "model", global_step=7)
    assert path == str(tmp_path / "model-7")
    session.run([tf.assign(first, [0.0, 0.0]), tf.assign(second, 9)])
    saver.restore(session, path)
    assert session.run(first).tolist() == [1, 2]
    assert session.run(second) == 3


def test_another_program_restores_it(session, tmp_path):
    variable = tf.get_variable("v", initializer=4.0)
    session.run(variable.initializer)
    path = tf.train.Saver().save(session, tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as other:
        tf.train.import_meta_graph(f"{path}.meta")
        tf.train.Saver().restore(other, tf.train.latest_checkpoint(str(tmp_path)))
        assert other.run("v:0") is not None
        assert other.run(tf.global_variables()[0]) == 4


def test_keys_of_ones_own(session, tmp_path):
    variable = tf.get_variable("v", initializer=4.0)
    session.run(variable.initializer)
    path = tf.train.Saver({"renamed": variable}).save(session, tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as other:
        renamed = tf.get_variable("renamed", [])
        tf.train.Saver().restore(other, path)
        assert other.run(renamed) == 4
        tf.get_variable("missing", [])
        with pytest.raises(NotFoundError, match="Key missing not found in checkpoint"):
            tf.train.Saver().restore(other, path)


def test_only_the_newest_stay(session, tmp_path):
    session.run(tf.get_variable("v", initializer=4.0).initializer)
    saver = tf.train.Saver(max_to_keep=2)
    for step in range(4):
        saver.save(session, tmp_path / "model", global_step=step)
    assert sorted(path.name for path in tmp_path.glob("*.index")) == [
        "model-2.index",
        "model-3.index",
    ]
    assert (tmp_path / "checkpoint").read_text() == (
        'model_checkpoint_path: "model-3"\n'
        'all_model_checkpoint_paths: "model-2"\n'
        'all_model_checkpoint_paths: "model-3"\n'
    )
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model-3")
    assert saver.last_checkpoints == [str(tmp_path / f"model-{step}") for step in (2, 3)]


def test_no_checkpoint(session, tmp_path):
    assert tf.train.latest_checkpoint(str(tmp_path)) is None
    with pytest.raises(ValueError, match="No variables to save"):
        tf.train.Saver()
    tf.get_variable("v", [])
    with pytest.raises(ValueError, match="The passed save_path is not a valid checkpoint: /none"):
        tf.train.Saver().restore(session, "/none")


def test_a_saver_comes_with_its_meta_graph(graph, tmp_path):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    y = tf.add(tf.matmul(x, tf.Variable([[1.0], [2.0]], name="w")), 0.5, name="y")
    tf.add_to_collection("ys", y)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(f"{path}.meta", clear_devices=True)
        saver.restore(session, path)
        assert session.run(tf.get_collection("ys")[0], {"x:0": [[1, 1]]}) == [[3.5]]
        with pytest.raises(ValueError, match="Can't load save_path when it is None"):
            saver.restore(session, None)
        renamed = tf.train.Saver({"other": tf.global_variables()[0]})
        with pytest.raises(
            NotFoundError, match=r"(?s)^Restoring from checkpoint failed.*Key other"
        ):
            renamed.restore(session, path)
    reader = tf.train.NewCheckpointReader(path)
    assert reader.get_variable_to_shape_map() == {"w": [2, 1]}
    assert reader.get_variable_to_dtype_map() == {"w": tf.float32}
    assert reader.has_tensor("w")
    assert reader.get_tensor("w").tolist() == [[1], [2]]
    assert tf.train.list_variables(str(tmp_path)) == [("w", [2, 1])]
    assert tf.train.load_variable(str(tmp_path), "w:0").tolist() == [[1], [2]]
