"""Train small forests, export them as SavedModels and record TensorFlow's answers.

Run in an environment that has tensorflow, ydf and ydf_tf, from the root of the repository:

    python tools/export/forest_models.py [name …]

Each model lies in tests/extras/forests/models/NAME/1; answers.npz beside it has the inputs of its
signature `serving_default` as `in.NAME`, TensorFlow's outputs as `out.NAME`, and `ydf`, the
predictions of ydf itself.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
import ydf

MODELS = pathlib.Path(__file__).parents[2] / "tests" / "extras" / "forests" / "models"
ROWS = 300
COLOURS = np.array(["red", "green", "blau", "été", "黒"])
WORDS = np.array(["a", "bb", "ccc", "dd", "é"])


def columns(seed: int = 7) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    x, y = random.normal(size=(2, ROWS)).astype(np.float32)
    gappy = random.normal(size=ROWS).astype(np.float32)
    gappy[random.random(ROWS) < 0.2] = np.nan
    colour = COLOURS[random.integers(0, len(COLOURS), ROWS)]
    colour[random.random(ROWS) < 0.1] = ""
    return {
        "x": x, "y": y, "gappy": gappy, "colour": colour,
        "flag": random.random(ROWS) < 0.4,
        "size": random.integers(0, 6, ROWS),
        "words": [list(WORDS[random.integers(0, 5, random.integers(0, 4))]) for _ in range(ROWS)],
        "group": np.repeat(np.arange(ROWS // 10), 10),
    }  # fmt: skip


def score(data: dict[str, Any]) -> np.ndarray:
    has_word = np.array(["bb" in each for each in data["words"]])
    value = data["x"] * 2 - np.nan_to_num(data["gappy"], nan=1.5) + (data["colour"] == "red")
    return np.asarray(value + 1.5 * has_word - data["flag"] + 0.2 * data["size"], np.float32)


def binary() -> tuple[Any, dict[str, Any]]:
    data = columns()
    data["label"] = np.where(score(data) > 0.5, "yes", "no")
    learner = ydf.GradientBoostedTreesLearner(
        label="label", num_trees=12, features=["x", "y", "gappy", "colour"],
        min_vocab_frequency=2,
    )  # fmt: skip
    return learner.train(data), {}


def classes() -> tuple[Any, dict[str, Any]]:
    data = columns()
    data["label"] = np.array(["low", "middle", "high"])[np.digitize(score(data), [-0.5, 1.0])]
    learner = ydf.RandomForestLearner(
        label="label", num_trees=8, max_depth=6, features=["x", "y", "gappy", "colour", "flag"],
        min_vocab_frequency=2,
    )  # fmt: skip
    return learner.train(data), {}


def regression() -> tuple[Any, dict[str, Any]]:
    data = columns()
    data["label"] = score(data)
    learner = ydf.GradientBoostedTreesLearner(
        label="label", task=ydf.Task.REGRESSION, num_trees=12,
        features=["x", "y", "gappy", "flag", ("size", ydf.Semantic.CATEGORICAL)],
        min_vocab_frequency=2,
    )  # fmt: skip
    return learner.train(data), {}


def ranking() -> tuple[Any, dict[str, Any]]:
    data = columns()
    data["label"] = np.clip(np.rint(score(data)), 0, 4)
    learner = ydf.GradientBoostedTreesLearner(
        label="label", task=ydf.Task.RANKING, ranking_group="group", num_trees=10,
        features=["x", "y", "colour"], min_vocab_frequency=2,
    )  # fmt: skip
    return learner.train(data), {}


def sets() -> tuple[Any, dict[str, Any]]:
    data = columns()
    data["label"] = np.where(score(data) > 0.5, "yes", "no")
    learner = ydf.RandomForestLearner(
        label="label", num_trees=8, max_depth=6, min_vocab_frequency=2,
        features=["x", ("words", ydf.Semantic.CATEGORICAL_SET), "colour"],
    )  # fmt: skip
    return learner.train(data), {}


def examples() -> tuple[Any, dict[str, Any]]:
    model, _ = binary()
    return model, {"feed_example_proto": True, "servo_api": True}


def oblique() -> tuple[Any, dict[str, Any]]:
    data = columns()
    data["label"] = score(data)
    learner = ydf.RandomForestLearner(
        label="label", task=ydf.Task.REGRESSION, num_trees=6, max_depth=5,
        features=["x", "y", "gappy"], split_axis="SPARSE_OBLIQUE",
    )  # fmt: skip
    return learner.train(data), {}


def discretized() -> tuple[Any, dict[str, Any]]:
    data = columns()
    data["label"] = score(data)
    learner = ydf.GradientBoostedTreesLearner(
        label="label", task=ydf.Task.REGRESSION, num_trees=8, features=["x", "y", "gappy"],
        discretize_numerical_columns=True, num_discretized_numerical_bins=16,
    )  # fmt: skip
    return learner.train(data), {}


def keras() -> tuple[Any, dict[str, Any]]:
    model, _ = binary()
    return model, {"mode": "keras"}


MADE: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "binary": binary, "classes": classes, "regression": regression, "ranking": ranking,
    "sets": sets, "examples": examples, "oblique": oblique,
    "discretized": discretized, "keras": keras,
}  # fmt: skip


def given(model: Any) -> dict[str, Any]:
    """Return new rows for the model's features, some missing or unknown."""
    data = columns(11)
    data["colour"][:5] = "unknown"
    data["words"][:3] = [["unknown", "bb"], [], ["a"]]
    return {name: data[name] for name in model.input_feature_names()}


def as_tensors(data: dict[str, Any]) -> dict[str, Any]:
    made = {}
    for name, values in data.items():
        made[name] = (
            tf.ragged.constant(values, tf.string) if name == "words" else tf.constant(values)
        )
    return made


def serialized(data: dict[str, Any]) -> np.ndarray:
    rows = []
    for row in range(ROWS):
        features = {}
        for name, values in data.items():
            value = values[row]
            if isinstance(value, str):
                if value:
                    kind = tf.train.Feature(bytes_list=tf.train.BytesList(value=[value.encode()]))
                    features[name] = kind
            elif not np.isnan(value):
                features[name] = tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
        example = tf.train.Example(features=tf.train.Features(feature=features))
        rows.append(example.SerializeToString())
    return np.array(rows, object)


def export(name: str) -> None:
    model, options = MADE[name]()
    folder = MODELS / name / "1"
    shutil.rmtree(folder.parent, ignore_errors=True)
    model.to_tensorflow_saved_model(str(folder), **options)
    data = given(model)
    loaded = tf.saved_model.load(str(folder))
    signature = loaded.signatures["serving_default"]
    if options.get("feed_example_proto"):
        key = next(iter(signature.structured_input_signature[1]))
        tensors = {key: tf.constant(serialized(data))}
    else:
        tensors = as_tensors(data)
        specs = signature.structured_input_signature[1]
        if "words" in tensors:
            ragged = tensors.pop("words")
            parts = [key for key in specs if key.startswith("features")]
            splits, strings = sorted(parts, key=lambda key: specs[key].dtype == tf.string)
            tensors |= {strings: ragged.values, splits: ragged.row_splits}
        tensors = {key: tf.cast(tensors[key], specs[key].dtype) for key in specs}
    outputs = signature(**tensors)
    arrays = {f"in.{key}": plain(value) for key, value in tensors.items()}
    arrays |= {f"out.{key}": plain(value) for key, value in outputs.items()}
    arrays["ydf"] = model.predict(data)
    np.savez_compressed(folder.parent / "answers.npz", **arrays)
    shown = {key: (value.dtype.name, value.shape) for key, value in outputs.items()}
    print(name, "inputs", {key: (v.dtype.name, v.shape) for key, v in tensors.items()}, shown)


def plain(value: Any) -> np.ndarray:
    array = value.numpy()
    return array.astype(np.bytes_) if array.dtype == object else array


if __name__ == "__main__":
    ydf.verbose(0)
    for each in sys.argv[1:] or MADE:
        export(each)
