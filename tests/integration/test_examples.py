"""The shipped example models do what examples/README.md says."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import protos as pb
from runtime.api import SavedModelBundle, SessionOptions, load_saved_model

MODELS = pathlib.Path(__file__).parents[2] / "examples" / "models"
# A zero of the test data, 8 x 8 grey values.
ZERO = """
    0 0 5 13 9 1 0 0   0 0 13 15 10 15 5 0   0 3 15 2 0 11 8 0   0 4 12 0 0 8 8 0
    0 5 8 0 0 9 8 0    0 4 11 0 1 12 7 0     0 2 14 5 10 12 0 0  0 0 6 13 10 0 0 0
"""


def load(name: str) -> SavedModelBundle:
    return load_saved_model(SessionOptions(), None, str(MODELS / name / "1"), {"serve"})


def call(bundle: SavedModelBundle, key: str, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    signature = bundle.signatures[key]
    feeds = {signature.inputs[name].name: value for name, value in inputs.items()}
    names = list(signature.outputs)
    values = bundle.session.run(feeds, [signature.outputs[name].name for name in names])
    return dict(zip(names, map(np.asarray, values), strict=True))


def test_half_plus_two() -> None:
    bundle = load("half_plus_two")
    y = call(bundle, "serving_default", x=np.array([1, 5], np.float32))["y"]
    assert y.tolist() == [2.5, 4.5]
    features = {"x": pb.Feature(float_list=pb.FloatList(value=[10.0]))}
    example = pb.Example(features=pb.Features(feature=features)).SerializeToString()
    examples = np.array([example], object)
    assert call(bundle, "regress_x_to_y", inputs=examples)["outputs"].tolist() == [[7.0]]
    classified = call(bundle, "classify_x_to_y", inputs=examples)
    assert classified["scores"].tolist() == [[7.0]]
    assert classified["classes"].tolist() == [[b"y"]]
    methods = {key: signature.method_name for key, signature in bundle.signatures.items()}
    assert methods["regress_x_to_y"] == "tensorflow/serving/regress"
    assert methods["classify_x_to_y"] == "tensorflow/serving/classify"


def test_counter() -> None:
    bundle = load("counter")
    steps: list[tuple[str, dict[str, np.ndarray], float]] = [
        ("get_counter", {}, 0),
        ("incr_counter", {}, 1),
        ("incr_counter_by", {"delta": np.array(2.5, np.float32)}, 3.5),
        ("get_counter", {}, 3.5),
        ("reset_counter", {}, 0),
        ("get_counter", {}, 0),
    ]
    for key, inputs, count in steps:
        assert call(bundle, key, **inputs)["output"] == count, key


def test_digits() -> None:
    image = np.array(ZERO.split(), np.float32).reshape(1, 8, 8)
    (probabilities,) = call(load("digits"), "serving_default", image=image).values()
    assert probabilities.shape == (1, 10)
    assert probabilities.sum() == pytest.approx(1, abs=1e-5)
    assert probabilities.argmax() == 0
    assert probabilities.max() > 0.9
