"""Classes of tf.compat.v1: TensorArray, queues, tables, Saver, variables and their scopes."""

import numpy as np
import pytest

import runtime.client as tf
from runtime.foundation.errors import (
    CancelledError,
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def values(*tensors, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [np.asarray(each).tolist() for each in session.run(list(tensors), feeds)]


def test_arrays_of_tensors_in_loops():
    array = tf.TensorArray(tf.float32, size=4)
    _, filled = tf.while_loop(
        lambda i, _: i < 4,
        lambda i, a: (i + 1, a.write(i, tf.cast(i, tf.float32) ** 2)),
        [0, array],
    )
    other = tf.TensorArray(tf.int32, 0, dynamic_size=True).write(2, [5, 6])
    rows = tf.TensorArray(tf.int32, 2).unstack([[1, 2], [3, 4]])
    assert rows.read(1).shape == [2]
    chosen = tf.cond(tf.constant(True), lambda: rows.write(0, [9, 9]), lambda: rows)
    assert values(
        filled.stack(),
        filled.size(),
        other.read(2),
        rows.concat(),
        rows.gather([1]),
        chosen.read(0),
    ) == [[0, 1, 4, 9], 4, [5, 6], [1, 2, 3, 4], [[3, 4]], [9, 9]]
    with pytest.raises(ValueError, match="Inconsistent shapes"):
        rows.write(0, [1, 2, 3])
    with pytest.raises(ValueError, match="Argument `size` must be provided"):
        tf.TensorArray(tf.float32)


def test_queues():
    queue = tf.FIFOQueue(3, [tf.float32], shapes=[[]], name="q")
    one, many = queue.enqueue([1.0]), queue.enqueue_many([[2.0, 3.0]])
    with tf.Session() as session:
        session.run(one)
        session.run(many)
        assert session.run(queue.size()) == 3
        assert session.run(queue.dequeue()) == 1
        pair = queue.dequeue_many(2)
        assert pair.shape == [2]
        assert session.run(pair).tolist() == [2, 3]
        session.run(queue.close())
        with pytest.raises(OutOfRangeError, match="is closed and has insufficient elements"):
            session.run(queue.dequeue())
        with pytest.raises(CancelledError, match="is closed"):
            session.run(one)
    assert (queue.name, one.name) == ("q", "q_enqueue")
    with pytest.raises(ValueError, match=r"Shapes \(2,\) and \(\) are incompatible"):
        queue.enqueue([[1.0, 2.0]])
    with pytest.raises(ValueError, match="expected 1 components, but got 2"):
        queue.enqueue([1.0, 2.0])


def test_other_queues():
    padded = tf.PaddingFIFOQueue(4, [tf.int32], [[None]])
    shuffled = tf.RandomShuffleQueue(4, 0, tf.int32, shapes=[[]], seed=1)
    ordered = tf.PriorityQueue(4, [tf.string], shapes=[[]])
    named = tf.FIFOQueue(4, [tf.int32, tf.string], shapes=[[], []], names=["n", "s"])
    with tf.Session() as session:
        for row in ([1], [2, 3]):
            session.run(padded.enqueue([row]))
        assert session.run(padded.dequeue_many(2)).tolist() == [[1, 0], [2, 3]]
        session.run(shuffled.enqueue_many([[1, 2, 3]]))
        assert sorted(session.run(shuffled.dequeue_many(3))) == [1, 2, 3]
        session.run(ordered.enqueue_many([np.array([7, 3]), ["late", "soon"]]))
        assert session.run(ordered.dequeue()) == [3, b"soon"]
        session.run(named.enqueue({"n": 1, "s": "one"}))
        assert session.run(named.dequeue()) == {"n": 1, "s": b"one"}


def test_sparse_tensors():
    fed = tf.sparse_placeholder(tf.float32)
    given = tf.SparseTensor([[0, 1]], [2.0], [2, 2])
    with tf.Session() as session:
        assert session.run(tf.sparse_tensor_to_dense(given)).tolist() == [[0, 2], [0, 0]]
        dense = tf.sparse_tensor_to_dense(fed, default_value=-1.0)
        assert session.run(dense, {fed: ([[1]], [4.0], [2])}).tolist() == [-1, 4]


def test_tables(graph, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("zero\none\n")
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), default_value=-1
    )
    lines = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(
            str(words), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER,
        ),
        -1,
    )  # fmt: skip
    counts = tf.lookup.MutableHashTable(tf.string, tf.int64, 0)
    found = table.lookup(tf.constant([["a", "z"]]))
    assert found.shape == [1, 2]
    with tf.Session() as session:
        with pytest.raises(FailedPreconditionError, match="Table not initialized"):
            session.run(found)
        session.run(tf.tables_initializer())
        assert session.run(found).tolist() == [[1, -1]]
        assert session.run(lines.lookup(tf.constant(["one", "two"]))).tolist() == [1, -1]
        assert session.run([table.size(), lines.size()]) == [2, 2]
        session.run(counts.insert(["x", "y"], np.array([5, 6])))
        session.run(counts.remove(["y"]))
        assert session.run(counts.export())[0].tolist() == [b"x"]
        sparse = tf.SparseTensor([[0, 1]], ["x"], [1, 2])
        assert session.run(counts.lookup(sparse)).values.tolist() == [5]
    with pytest.raises(TypeError, match="Dtype of argument `keys` must be <dtype: 'string'>"):
        table.lookup(tf.constant([1]))
    assert len(graph.get_collection(tf.GraphKeys.ASSET_FILEPATHS)) == 1


def test_a_saver_comes_with_its_meta_graph(tmp_path):
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


def test_variables():
    variable = tf.get_variable("v", initializer=tf.constant(2.0))
    table = tf.Variable(tf.ones([2, 2]), name="table")
    limited = tf.count_up_to(tf.Variable(0), 2)
    replaced = tf.scatter_update(table, [0], [[9.0, 9.0]])
    increased = tf.scatter_add(table, [1], [[1.0, 2.0]])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(replaced).tolist() == [[9, 9], [1, 1]]
        assert session.run(increased).tolist() == [[9, 9], [2, 3]]
        variable.load(7.0, session)
        assert variable.eval() == 7
        assert [session.run(limited), session.run(limited)] == [0, 1]
        with pytest.raises(OutOfRangeError, match="Reached limit of 2"):
            session.run(limited)
        with pytest.raises(TypeError, match=r"The value of a feed cannot be a tf\.Tensor object"):
            session.run(table, {table: variable})
    with pytest.raises(
        ValueError, match=r"' v:0': Shape mismatch\.The variable shape \(\), and the"
    ):
        tf.assign(variable, [1.0, 2.0])
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'assign'"):
        tf.assign(tf.constant(1.0), 2.0)


def test_scopes_that_are_entered_again():
    with tf.variable_scope("a") as a, tf.variable_scope("b"):
        made = tf.get_variable("q", [1])
    with tf.variable_scope(a, reuse=tf.AUTO_REUSE) as again:
        found, operation = tf.get_variable("b/q", [1]), tf.identity(1.0, name="op")
    assert found is made
    assert operation.name == "a_1/op:0"
    assert (a.original_name_scope, again.original_name_scope) == ("a/", "a/")
    with pytest.raises(TypeError, match="name_or_scope must be a string or VariableScope"):
        tf.variable_scope(3).__enter__()
