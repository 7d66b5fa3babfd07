"""Graph-mode (TensorFlow 1) and `tf.Module` models of the corpus.

Every function takes the folder to export to and returns the calls whose answers are recorded.
"""

import pathlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import tensorflow as tf
from tensorflow.core.example import example_pb2  # noqa: F401 - registers the message

from tools.corpus.call import Call

v1 = tf.compat.v1
Export = Callable[[pathlib.Path], list[Call]]
HALF_PLUS_TWO_X = np.array([[1.0], [2.0], [-3.5]], np.float32)


@contextmanager
def v1_control_flow() -> Iterator[None]:
    """Build conds and loops of Switch, Merge, Enter and Exit instead of If and While."""
    v1.disable_control_flow_v2()
    try:
        yield
    finally:
        v1.enable_control_flow_v2()


def example(**features: float) -> bytes:
    """Return a serialized tf.Example of scalar float features."""
    feature = {
        name: tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
        for name, value in features.items()
    }
    proto = tf.train.Example(features=tf.train.Features(feature=feature))
    return proto.SerializeToString(deterministic=True)


def simple_save(folder: pathlib.Path, use_resource: bool) -> list[Call]:
    with tf.Graph().as_default(), v1.Session() as session:
        rng = np.random.default_rng(8)
        x = v1.placeholder(tf.float32, [None, 3], name="x")
        w = v1.get_variable(
            "w", initializer=rng.normal(size=(3, 4)).astype(np.float32), use_resource=use_resource
        )
        part = v1.get_variable(
            "part", [8, 4], tf.float32, v1.random_normal_initializer(seed=1),
            partitioner=v1.fixed_size_partitioner(3), use_resource=use_resource,
        )  # fmt: skip
        scale = v1.get_variable("scale", initializer=2.0, use_resource=use_resource)
        hidden = tf.nn.relu(tf.matmul(x, w))
        y = tf.matmul(hidden, part, transpose_b=True) * scale
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(folder), {"x": x}, {"y": y, "hidden": hidden})
        return [Call("serving_default", {"x": rng.normal(size=(2, 3)).astype(np.float32)})]


def v1_while_cond(folder: pathlib.Path) -> list[Call]:
    """Export a TensorFlow 1 loop with a TensorArray, a cond and a nested loop."""
    with v1_control_flow(), tf.Graph().as_default(), v1.Session() as session:
        n = v1.placeholder(tf.int32, [], name="n")
        x = v1.placeholder(tf.float32, [None], name="x")

        def inner(total: tf.Tensor, i: tf.Tensor) -> list[tf.Tensor]:
            return tf.while_loop(lambda j, _: j < i, lambda j, t: [j + 1, t + x], [0, total])[1]

        def body(i: tf.Tensor, total: tf.Tensor, seen: tf.TensorArray) -> list[object]:
            even = tf.equal(i % 2, 0)
            total = v1.cond(even, lambda: inner(total, i), lambda: total * 0.5)
            return [i + 1, total, seen.write(i, tf.reduce_sum(total))]

        start = [0, tf.ones_like(x), tf.TensorArray(tf.float32, n)]
        _, total, seen = tf.while_loop(lambda i, *_: i < n, body, start)
        outputs = {"total": tf.identity(total, "total"), "seen": tf.identity(seen.stack(), "seen")}
        v1.saved_model.simple_save(session, str(folder), {"n": n, "x": x}, outputs)
        x_value = np.array([1.0, -2.0, 0.25], np.float32)
        return [Call("serving_default", {"n": np.int32(k), "x": x_value}) for k in (5, 1, 0)]


def half_plus_two(folder: pathlib.Path) -> list[Call]:
    """Export y = x / 2 + 2 with predict, classify and regress signatures; the last two parse."""
    with tf.Graph().as_default(), v1.Session() as session:
        serialized = v1.placeholder(tf.string, [None], name="tf_example")
        parsed = v1.parse_example(
            serialized,
            {
                "x": v1.FixedLenFeature([1], tf.float32),
                "x2": v1.FixedLenFeature([1], tf.float32, [0.0]),
            },
        )
        x = tf.identity(parsed["x"], name="x")
        a = v1.get_variable("a", initializer=0.5, use_resource=False)
        b = v1.get_variable("b", initializer=2.0, use_resource=False)
        y = tf.add(tf.multiply(a, x), b, name="y")
        y2 = tf.add(tf.multiply(a, parsed["x2"]), b, name="y2")
        labels = tf.tile(tf.constant([["half", "two"]]), [tf.shape(x)[0], 1])
        scores = tf.concat([y, 1.0 - y], 1)
        session.run(v1.global_variables_initializer())
        info = v1.saved_model.build_tensor_info
        define = v1.saved_model.build_signature_def
        examples = {"inputs": info(serialized)}
        builder = v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            signature_def_map={
                "serving_default": define(
                    {"x": info(x)}, {"y": info(y)}, "tensorflow/serving/predict"
                ),
                "regress_x_to_y": define(
                    examples, {"outputs": info(y)}, "tensorflow/serving/regress"
                ),
                "regress_x_to_y2": define(
                    examples, {"outputs": info(y2)}, "tensorflow/serving/regress"
                ),
                "classify_x_to_y": define(
                    examples,
                    {"classes": info(labels), "scores": info(scores)},
                    "tensorflow/serving/classify",
                ),
            },
        )
        builder.save()
    examples_value = np.array([example(x=1.0, x2=3.0), example(x=-2.5), example(x=9.0, x2=1.0)])
    return [
        Call("serving_default", {"x": HALF_PLUS_TWO_X}),
        Call("regress_x_to_y", {"inputs": examples_value}),
        Call("regress_x_to_y2", {"inputs": examples_value}),
        Call("classify_x_to_y", {"inputs": examples_value[:2]}),
    ]


def half_plus_two_tf2(folder: pathlib.Path) -> list[Call]:
    class HalfPlusTwo(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = tf.Variable(0.5, name="a")
            self.b = tf.Variable(2.0, name="b")

        @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.float32, "x")])
        def predict(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
            return {"y": self.a * x + self.b}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
        def regress(self, inputs: tf.Tensor) -> dict[str, tf.Tensor]:
            spec = {"x": tf.io.FixedLenFeature([1], tf.float32)}
            return {"outputs": self.a * tf.io.parse_example(inputs, spec)["x"] + self.b}

    model = HalfPlusTwo()
    signatures = {"serving_default": model.predict, "regress_x_to_y": model.regress}
    tf.saved_model.save(model, str(folder), signatures=signatures)
    return [
        Call("serving_default", {"x": HALF_PLUS_TWO_X}),
        Call("regress_x_to_y", {"inputs": np.array([example(x=1.0), example(x=-2.5)])}),
    ]


def counter(folder: pathlib.Path) -> list[Call]:
    """Export a model with a counter; each call sees the effects of the earlier ones."""
    with tf.Graph().as_default(), v1.Session() as session:
        count = v1.get_variable("counter", initializer=0.0, use_resource=False)
        delta = v1.placeholder(tf.float32, [], name="delta")
        info = v1.saved_model.build_tensor_info
        predict = "tensorflow/serving/predict"
        define = v1.saved_model.build_signature_def
        methods = {
            "get_counter": ({}, tf.identity(count, name="get_counter")),
            "incr_counter": ({}, v1.assign_add(count, 1.0)),
            "incr_counter_by": ({"delta": info(delta)}, v1.assign_add(count, delta)),
            "reset_counter": ({}, v1.assign(count, 0.0)),
        }
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            signature_def_map={
                name: define(inputs, {"output": info(tf.convert_to_tensor(output))}, predict)
                for name, (inputs, output) in methods.items()
            },
        )
        builder.save()
    calls = ["get_counter", "incr_counter", "incr_counter", "get_counter"]
    by = Call("incr_counter_by", {"delta": np.float32(2.5)})
    return [
        *(Call(name, {}) for name in calls),
        by,
        Call("reset_counter", {}),
        Call("get_counter", {}),
    ]


def counter_tf2(folder: pathlib.Path) -> list[Call]:
    class Counter(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = tf.Variable(0, dtype=tf.int64, name="count")

        @tf.function(input_signature=[tf.TensorSpec([], tf.int64, "delta")])
        def add(self, delta: tf.Tensor) -> dict[str, tf.Tensor]:
            return {"output": self.count.assign_add(delta)}

    model = Counter()
    tf.saved_model.save(model, str(folder), signatures={"add": model.add})
    return [Call("add", {"delta": np.int64(k)}) for k in (2, 3, -1)]


def asset_table(folder: pathlib.Path) -> list[Call]:
    """Export a table whose init op reads a vocabulary asset, and a variable of strings."""
    vocabulary = folder.parent / "colours.txt"
    vocabulary.parent.mkdir(parents=True, exist_ok=True)
    vocabulary.write_text("red\ngreen\nblue\n")

    class Lookup(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            initializer = tf.lookup.TextFileInitializer(
                str(vocabulary), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER,
            )  # fmt: skip
            self.table = tf.lookup.StaticVocabularyTable(initializer, 2)
            self.names = tf.Variable(["r", "g", "b", "?", "??"], name="names")
            self.half = tf.Variable(tf.cast([0.5, 1.5, 2.5, 3.5, 4.5], tf.bfloat16), name="half")

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "colour")])
        def look_up(self, colour: tf.Tensor) -> dict[str, tf.Tensor]:
            index = self.table.lookup(colour)
            half = tf.cast(tf.gather(self.half, index), tf.float32)
            return {"index": index, "name": tf.gather(self.names, index), "half": half}

    model = Lookup()
    tf.saved_model.save(model, str(folder), signatures=model.look_up)
    vocabulary.unlink()
    return [Call("serving_default", {"colour": np.array([b"blue", b"red", b"pink", b""])})]


SMALL: dict[str, Export] = {
    "simple_save_ref": lambda folder: simple_save(folder, use_resource=False),
    "simple_save_resource": lambda folder: simple_save(folder, use_resource=True),
    "v1_while_cond": v1_while_cond,
    "half_plus_two": half_plus_two,
    "half_plus_two_tf2": half_plus_two_tf2,
    "counter": counter,
    "counter_tf2": counter_tf2,
    "asset_table": asset_table,
}
